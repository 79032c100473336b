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
 * Knows which thinking blocks svc relayed, and which recalled blocks were in front of each. A provider may refuse a
 * request whose prefix differs from the one that a thinking block was made with, so these facts decide what a
 * request carries.
 * Each thinking block is recorded before the client has the bytes that complete it. So a thinking block without an
 * entry was made without svc. With several nodes the end of the answer waits until all of them can find the entry
 * (`holdBack`).
 */
export class Bonds {
  readonly #dependencies: ProxyDependencies;

  constructor(dependencies: ProxyDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Finds the bond of this request: what must stay as it was because thinking depends on it. The newest thinking
   * block decides, because its entry repeats the facts of the earlier ones. Undefined: the ledger could not be read
   * in time, so nothing is known about earlier requests.
   */
  async look(reading: Reading, deadline: Deadline): Promise<Bond | undefined> {
    const { view, state } = reading;
    const mark = boundAddress(reading);
    if (mark === undefined) return UNBOUND;
    const thoughtAt = view.items.findLastIndex(({ thoughts }) => thoughts.length > 0);
    const thought = thoughtPlace(reading, thoughtAt);
    const isMarked = state.boundFrom === mark.fingerprint;
    if (isMarked && thought === undefined) return this.#lookBehind(reading, deadline);
    const mayBind = isMarked || (thought !== undefined && bindsThinking(modelOf(reading)));
    const asked = [isMarked ? [] : [mark], thought?.addresses ?? []].flat();
    const found = await this.#dependencies.ledger.find(
      asked,
      mayBind ? LOOK_MS : deadline.msLeft / 2,
    );
    const known = thought === undefined ? undefined : knownIn(found, thought);
    if (mayBind && known === undefined && found.missing !== undefined) return undefined;
    // The ledger may not know which model made the thinking. Most users stay with one model, so the requested model
    // is assumed.
    const isBound = isMarked || found.has(mark) || (known?.isBound ?? mayBind);
    if (!isBound) return { ...UNBOUND, thoughtAt };
    this.#mark(reading);
    if (thought === undefined) return this.#lookBehind(reading, deadline);
    if (known === undefined) return { ...FOREIGN, thoughtAt };
    if (known.behind === thought.behind) return bondOf(known, thoughtAt);
    return this.#lookBefore(reading, thoughtAt);
  }

  /**
   * Finds the bond when the client has left its thinking out, as many do when a new prompt begins. Nothing is bound
   * to the blocks then, but a block that stayed away in front of a known answer must not come back: the
   * provider's cache has that prefix without it.
   */
  async #lookBehind(reading: Reading, { msLeft }: Deadline): Promise<Bond> {
    const newest = finalAnswers(reading.view.items).slice(-ANSWERS_MAX);
    return this.#boundBehind(reading, newest, msLeft / 2);
  }

  /** Finds the bond of a conversation without thinking that counts, from the newest known one of these answers. */
  async #boundBehind(reading: Reading, answers: readonly number[], ms: number): Promise<Bond> {
    const places = answers.map((at) => ({ at, ...answerPlace(reading, at) }));
    const addresses = places.map(({ said }) => said);
    const found = await this.#dependencies.ledger.find(addresses, ms);
    const cached = places.flatMap(({ at, said }) => {
      const known = found.get(said);
      return known === undefined ? [] : [{ answerAt: at, blocks: known.blocks }];
    });
    return { ...UNBOUND, isBound: true, cached: cached.at(-1) };
  }

  /**
   * Finds the bond when the client has edited its history. The provider ignores thinking behind the edit, so the
   * newest thinking whose own prefix is unchanged decides.
   */
  async #lookBefore(reading: Reading, end: number): Promise<Bond | undefined> {
    const thoughts = reading.view.items.slice(0, end).flatMap((_, index) => {
      const thought = thoughtPlace(reading, index);
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
    return this.#boundBehind(reading, finalAnswers(reading.view.items), LOOK_MS);
  }

  /**
   * Records a thinking block of the answer. Call it before the client has the bytes that complete it. `model`: the
   * model that the answer names. `placements`: the recalled blocks that the accepted request carried.
   */
  relayed(thought: string, model: string | undefined, relayed: Relayed): void {
    if (this.#record(thought, model, relayed)) this.#mark(relayed.reading);
  }

  /**
   * Records an answer by its visible text, if the client may send it back without thinking that svc can read:
   * - its thinking may have come in a form or an encoding that svc does not read;
   * - it ends a bound exchange, and many clients leave old thinking out when the next prompt begins.
   */
  answered({ text, thoughts, callsTools, model }: Answer, relayed: Relayed): void {
    const { reading, bond, placements, isShortened } = relayed;
    const { view } = reading;
    const isUnread = thoughts.length === 0 && (placements.length > 0 || isShortened);
    const isBound =
      (thoughts.length > 0 && bindsThinking(model ?? modelOf(reading))) ||
      (bond?.placed ?? bond?.cached) !== undefined;
    if (!isUnread && (callsTools || !isBound)) return;
    this.#record(saidId(text, newestGiven(view)), model, relayed);
  }

  /** Returns whether the thinking is bound. If the entry cannot be written, this process still remembers it. */
  #record(
    thought: string,
    model: string | undefined,
    { reading, bond, placements, isShortened, batches, whole }: Relayed,
  ): boolean {
    const { view } = reading;
    const isBound = bond?.isBound !== false || bindsThinking(model ?? modelOf(reading));
    const behind = newestGiven(view);
    const blocks = placedMarks(placements);
    const at = this.#dependencies.clock.now();
    const address = thoughtAddress(reading, thought);
    void this.#dependencies.ledger.record([
      { ...address, isBound, isShortened, batches, whole, behind, blocks, at },
    ]);
    return isBound;
  }

  /**
   * Records that the conversation holds bound thinking. The client may leave that thinking out later, and then only
   * this entry shows it.
   */
  #mark(reading: Reading): void {
    const mark = boundAddress(reading);
    if (mark === undefined || reading.state.boundFrom === mark.fingerprint) return;
    reading.state.boundFrom = mark.fingerprint;
    void this.#dependencies.ledger.record([{ ...mark, at: this.#dependencies.clock.now() }]);
  }
}

/** `isShortened`, `batches` and `whole` are those of the accepted request. */
export interface Relayed extends Pick<ThoughtFact, 'isShortened' | 'batches' | 'whole'> {
  readonly reading: Reading;
  readonly bond: Bond | undefined;
  readonly placements: readonly Placement[];
}

/** The bond of thinking that svc did not relay. */
const FOREIGN = { isBound: true, placed: 'foreign', batches: [] } as const;

/** Returns the bond of a bound conversation, from the entry of its newest thinking. */
function bondOf({ isBound, blocks, ...fact }: ThoughtFact, thoughtAt: number): Bond {
  // The bound thinking is not in this request: it came later, or it belongs to another conversation with the same
  // beginning.
  if (!isBound) return { ...UNBOUND, isBound: true, thoughtAt };
  const { batches, whole } = fact.isShortened ? fact : { batches: [], whole: [] };
  return { isBound: true, thoughtAt, placed: blocks, batches, whole };
}

/** How many answers are looked up to find the newest known one: a client may have changed the last ones. */
const ANSWERS_MAX = 4;

/** Deadline for reading the bond, longer than a recall's: without it a conversation loses its thinking. */
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

function thoughtPlace(reading: Reading, index: number): ThoughtPlace | undefined {
  const id = reading.view.items[index]?.thoughts.at(-1);
  if (id === undefined) return undefined;
  const { behind, said } = answerPlace(reading, index);
  return { behind, addresses: [thoughtAddress(reading, id), said] };
}

function thoughtAddress({ place: { tenant } }: Reading, thought: string): AddressOf<'thought'> {
  return { kind: 'thought', tenant, thought };
}

/** Finds the answer that holds the item at `index`: its prefix, and the address of its visible text. */
function answerPlace(reading: Reading, index: number) {
  const { items } = reading.view;
  let [start, end] = [index, index + 1];
  while (start > 0 && !isGiven(items[start - 1])) start -= 1;
  while (end < items.length && !isGiven(items[end])) end += 1;
  const texts = items.slice(start, end).map(({ assistantText }) => assistantText);
  const text = texts.filter((one) => one !== '').join('\n\n');
  const behind = items[start - 1]?.fingerprint ?? '';
  return { behind, said: thoughtAddress(reading, saidId(text, behind)) };
}

function knownIn(found: FoundEntries, { addresses }: ThoughtPlace): ThoughtFact | undefined {
  return addresses.flatMap((address) => found.get(address) ?? [])[0];
}

/** Returns the fingerprint of the newest item that no model made. It identifies the conversation up to there. */
function newestGiven({ items }: RequestView): string {
  return items.findLast(isGiven)?.fingerprint ?? '';
}

/** The roles of items that no model makes. */
const GIVEN: ReadonlySet<unknown> = new Set(['user', 'tool', 'system']);

function isGiven(item: Item | undefined): boolean {
  return GIVEN.has(item?.role);
}

/** Returns the last item of each answer that calls no tools, as an index. */
function finalAnswers(items: readonly Item[]): readonly number[] {
  return items.flatMap((item, at) => {
    const next = items[at + 1];
    return !isGiven(item) && isGiven(next) && next?.toolResultIds.length === 0 ? [at] : [];
  });
}

/** Names an answer by its visible words and its place. The prefix keeps it apart from every thoughtId. */
function saidId(text: string, behind: string): string {
  return `said-${textDigest('assistant', text.trim())}-${behind}`;
}
