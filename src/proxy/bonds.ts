import { bindsThinking } from '../core/conversation/binding-models.ts';
import type { Item, RequestView } from '../core/conversation/view.ts';
import type { Answer } from '../core/dialects/answer.ts';
import type { AddressOf, FoundEntries, ThoughtFact } from '../core/ledger/entries.ts';
import { textDigest } from '../core/memory/reference.ts';
import { type Bond, placedMarks, type Placement, UNBOUND } from '../core/recall/injections.ts';
import type { Deadline } from './deadline.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Reading } from './conversations.ts';

/**
 * Knows which thinking svc relayed, and which blocks were in front of it. A provider may refuse a request whose
 * prefix differs from the one that a thinking block was made with, so these facts decide what a request carries.
 *
 * Each thinking block is recorded before the client has the bytes that complete it. So a block without an
 * entry was made without svc.
 */
export class Bonds {
  readonly #dependencies: ProxyDependencies;

  constructor(dependencies: ProxyDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Reads what binds this request. Undefined: the ledger could not be read in time, so it is not known what
   * was sent before. The newest thinking decides: its entry repeats what was true of the earlier ones.
   */
  async look(reading: Reading, deadline: Deadline): Promise<Bond | undefined> {
    const { view, state } = reading;
    const mark = boundAddress(reading);
    if (mark === undefined) return UNBOUND;
    const thoughtAt = view.items.findLastIndex(({ thoughts }) => thoughts.length > 0);
    const thought = this.#thoughtAt(reading, thoughtAt);
    const isMarked = state.boundFrom === mark.fingerprint;
    if (isMarked && thought === undefined) return { ...UNBOUND, isBound: true };
    const mayBind = isMarked || (thought !== undefined && bindsThinking(modelOf(reading)));
    const asked = [isMarked ? [] : [mark], thought?.addresses ?? []].flat();
    const found = await this.#dependencies.ledger.find(
      asked,
      mayBind ? LOOK_MS : deadline.msLeft / 2,
    );
    const known = thought === undefined ? undefined : knownIn(found, thought);
    if (mayBind && known === undefined && found.missing !== undefined) return undefined;
    // Who made it may not be known. Most people stay with a model, so the one that is asked now is taken for it.
    const isBound = isMarked || found.has(mark) || (known?.isBound ?? mayBind);
    if (!isBound) return { ...UNBOUND, thoughtAt };
    this.#mark(reading);
    if (thought === undefined) return { ...UNBOUND, isBound };
    if (known === undefined) return { ...FOREIGN, thoughtAt };
    if (known.behind === thought.behind) return bondOf(known, thoughtAt);
    return this.#lookBefore(reading, thoughtAt);
  }

  /**
   * Reads what binds the part of a history in front of an edit of the client. Thinking behind the edit is lost,
   * so the newest thinking whose own prefix is unchanged decides.
   */
  async #lookBefore(reading: Reading, end: number): Promise<Bond | undefined> {
    const thoughts = reading.view.items.slice(0, end).flatMap((_, index) => {
      const thought = this.#thoughtAt(reading, index);
      return thought === undefined ? [] : [{ index, thought }];
    });
    const addresses = thoughts.flatMap(({ thought }) => thought.addresses);
    const found = await this.#dependencies.ledger.find(addresses, LOOK_MS);
    if (found.missing !== undefined) return undefined;
    for (const { index, thought } of thoughts.toReversed()) {
      const known = knownIn(found, thought);
      if (known === undefined) return { ...FOREIGN, thoughtAt: index };
      if (known.behind === thought.behind) return bondOf(known, index);
    }
    return { ...UNBOUND, isBound: true };
  }

  #thoughtAt({ view, place: { tenant } }: Reading, index: number): ThoughtPlace | undefined {
    const id = view.items[index]?.thoughts.at(-1);
    if (id === undefined) return undefined;
    const behind = givenBefore(view, index);
    const said = saidId(textOf(view, index), behind);
    const addresses = [id, said].map((thought) => ({ kind: 'thought', tenant, thought }) as const);
    return { behind, addresses };
  }

  /**
   * Records a thinking block of the answer. To be called before the client has the bytes that complete it.
   * `model`: the one that the answer names. `placements`: the blocks that the accepted request carried.
   */
  relayed(
    thought: string,
    model: string | undefined,
    { reading, bond, placements, isShortened }: Relayed,
  ): void {
    const isBound = bond?.isBound !== false || bindsThinking(model ?? modelOf(reading));
    this.#record(thought, isBound, { reading, placements, isShortened });
    if (isBound) this.#mark(reading);
  }

  /**
   * Records an answer in which svc read no thinking, by its words: the client may send thinking back that came
   * in a form or an encoding that svc does not read.
   */
  answered(
    { text, thoughts, model }: Answer,
    { reading, bond, placements, isShortened }: Relayed,
  ): void {
    if (thoughts.length > 0 || (placements.length === 0 && !isShortened)) return;
    const { view } = reading;
    const isBound = bond?.isBound !== false || bindsThinking(model ?? modelOf(reading));
    const said = saidId(text, givenBefore(view, view.items.length));
    this.#record(said, isBound, { reading, placements, isShortened });
  }

  /** Never rejects. Where the entry cannot be written, this process knows it nevertheless. */
  #record(
    thought: string,
    isBound: boolean,
    { reading: { view, place }, placements, isShortened }: Omit<Relayed, 'bond'>,
  ): void {
    const behind = givenBefore(view, view.items.length);
    const blocks = placedMarks(placements);
    const at = this.#dependencies.clock.now();
    const address = { kind: 'thought', tenant: place.tenant, thought } as const;
    void this.#dependencies.ledger.record([
      { ...address, isBound, isShortened, behind, blocks, at },
    ]);
  }

  /** Records that the conversation holds bound thinking: its client may leave old thinking out later. */
  #mark(reading: Reading): void {
    const mark = boundAddress(reading);
    if (mark === undefined || reading.state.boundFrom === mark.fingerprint) return;
    reading.state.boundFrom = mark.fingerprint;
    void this.#dependencies.ledger.record([{ ...mark, at: this.#dependencies.clock.now() }]);
  }
}

export interface Relayed {
  readonly reading: Reading;
  readonly bond: Bond | undefined;
  readonly placements: readonly Placement[];
  /** The accepted request left something out. */
  readonly isShortened: boolean;
}

/** The bond of thinking that svc did not relay. */
const FOREIGN = { isBound: true, placed: 'foreign', isWhole: true } as const;

/** The bond of a conversation that is bound, by its newest thinking. */
function bondOf({ isBound, blocks, isShortened }: ThoughtFact, thoughtAt: number): Bond {
  // The bound thinking came later and is not in this request, or is that of a conversation that began alike.
  if (!isBound) return { ...UNBOUND, isBound: true, thoughtAt };
  return { isBound: true, thoughtAt, placed: blocks, isWhole: !isShortened };
}

/** A conversation whose state cannot be read loses its thinking, so svc waits for longer than for a recall. */
const LOOK_MS = 2_000;

function modelOf({ view }: Reading): string | undefined {
  const { model } = view.shell.value;
  return typeof model === 'string' ? model : undefined;
}

function boundAddress({ view, place }: Reading): AddressOf<'bound'> | undefined {
  const fingerprint = view.items[0]?.fingerprint;
  if (fingerprint === undefined) return undefined;
  const { tenant, conversation } = place;
  return { kind: 'bound', tenant, conversation, fingerprint };
}

/** The addresses of the entry of a thinking block, and the prefix with which the block is valid. */
interface ThoughtPlace {
  readonly behind: string;
  readonly addresses: readonly AddressOf<'thought'>[];
}

function knownIn(found: FoundEntries, { addresses }: ThoughtPlace): ThoughtFact | undefined {
  return addresses.flatMap((address) => found.get(address) ?? [])[0];
}

/** Fingerprint of the conversation up to the last item before `index` that no model made. */
function givenBefore({ items }: RequestView, index: number): string {
  return items[lastGiven(items, index)]?.fingerprint ?? '';
}

/** The index of the last item before `end` that no model made; -1 without one. */
function lastGiven(items: readonly Item[], end: number): number {
  let at = end - 1;
  while (at >= 0 && !GIVEN.has(items[at]?.role ?? '')) at -= 1;
  return at;
}

/** The roles of items that no model makes. */
const GIVEN: ReadonlySet<string> = new Set(['user', 'tool', 'system']);

/** Names an answer by its visible words, at its place. No thoughtId looks like it. */
function saidId(text: string, behind: string): string {
  return `said-${textDigest('assistant', text.trim())}-${behind}`;
}

/** The visible text of the answer that holds the item at `index`. */
function textOf({ items }: RequestView, index: number): string {
  const start = lastGiven(items, index) + 1;
  let end = index + 1;
  while (end < items.length && !GIVEN.has(items[end]?.role ?? '')) end += 1;
  const texts = items.slice(start, end).map(({ assistantText }) => assistantText);
  return texts.filter((text) => text !== '').join('\n\n');
}
