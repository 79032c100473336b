import { bindsThinking } from '../core/conversation/thoughts.ts';
import type { Item, RequestView } from '../core/conversation/view.ts';
import type { Answer } from '../core/dialects/dialect-answer.ts';
import type { AddressOf, FoundEntries, ThoughtFact } from '../core/ledger/entries.ts';
import { textDigest } from '../core/memory/reference.ts';
import { type Bond, placedMarks, type Placement, UNBOUND } from '../core/recall/injections.ts';
import type { Deadline } from './deadline.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Reading } from './conversations.ts';

/**
 * Records the thinking blocks that svc relays, with the recalled blocks and the left-out texts in front of each. A
 * provider may refuse a request if anything in front of a thinking block has changed since the block was made. So these
 * entries decide which blocks and which left-out texts a later request repeats.
 * Each thinking block is recorded before the client has the bytes that complete it. So svc takes a thinking block
 * without an entry for one that was made without svc. In a service with several nodes the end of the answer waits until
 * all of them can find the entry (`holdBack`).
 */
export class Bonds {
  readonly #dependencies: ProxyDependencies;

  constructor(dependencies: ProxyDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Returns the bond of this request: what must stay as it was, because thinking depends on it. The newest thinking
   * block decides, because its entry includes the facts of the earlier ones. Returns undefined if the ledger did not
   * answer in time, so that nothing is known about earlier requests.
   */
  async look(reading: Reading, deadline: Deadline): Promise<Bond | undefined> {
    const { view, state } = reading;
    const mark = boundAddress(reading);
    if (mark === undefined) return UNBOUND;
    const thoughtAt = view.items.findLastIndex(({ thoughts }) => thoughts.length > 0);
    const thought = thoughtPlace(reading, thoughtAt);
    const isMarked = state.boundFrom === mark.fingerprint;
    if (isMarked && thought === undefined)
      return this.#lookBehind(reading, deadline.msLeft / 2, ANSWERS_MAX);
    const mayBind = isMarked || (thought !== undefined && bindsThinking(modelOf(reading)));
    const asked = [isMarked ? [] : [mark], thought?.addresses ?? []].flat();
    const found = await this.#dependencies.ledger.find(
      asked,
      mayBind ? BOUND_MS : deadline.msLeft / 2,
    );
    const known = thought === undefined ? undefined : knownIn(found, thought);
    if (mayBind && known === undefined && found.missing !== undefined) return undefined;
    // Without an entry svc does not know which model made the thinking, and assumes the requested one.
    const isBound = isMarked || found.has(mark) || (known?.isBound ?? mayBind);
    if (!isBound) return { ...UNBOUND, thoughtAt };
    this.#mark(reading);
    if (thought === undefined) return this.#lookBehind(reading, deadline.msLeft / 2, ANSWERS_MAX);
    if (known === undefined) return { ...FOREIGN, thoughtAt };
    if (known.behind === thought.behind) return bondOf(known, thoughtAt);
    return this.#lookBefore(reading, thoughtAt);
  }

  /**
   * Returns the bond if the client has left its bound thinking out, as many do when a new prompt begins. No thinking
   * depends on the blocks any more. But the provider's cache has the conversation up to its newest recorded answer,
   * with the blocks of that time. A block that was not among them must not come back in front of that answer. `ms`: the
   * deadline of the ledger, in milliseconds. `answersMax`: how many of the last answers are looked up.
   */
  async #lookBehind(reading: Reading, ms: number, answersMax = Infinity): Promise<Bond> {
    const answers = finalAnswers(reading.view.items).slice(-answersMax);
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
   * Returns the bond if the client has edited its history; undefined if the ledger did not answer in time. The provider
   * ignores thinking after the edit, so the newest thinking whose own prefix is unchanged decides.
   */
  async #lookBefore(reading: Reading, end: number): Promise<Bond | undefined> {
    const thoughts = reading.view.items.slice(0, end).flatMap((_, index) => {
      const thought = thoughtPlace(reading, index);
      return thought === undefined ? [] : [{ index, thought }];
    });
    const addresses = thoughts.flatMap(({ thought }) => thought.addresses);
    const found = await this.#dependencies.ledger.find(addresses, BOUND_MS);
    if (found.missing !== undefined) return undefined;
    for (const { index, thought } of thoughts.toReversed()) {
      const known = knownIn(found, thought);
      if (known === undefined) return { ...FOREIGN, thoughtAt: index };
      if (known.behind === thought.behind) return bondOf(known, index);
    }
    return this.#lookBehind(reading, BOUND_MS);
  }

  /**
   * Records a thinking block of the answer. Call it before the client has the bytes that complete the block. `model`:
   * the model that the answer names.
   */
  relayed(thought: string, model: string | undefined, relayed: Relayed): void {
    if (this.#record(thought, model, relayed)) this.#mark(relayed.reading);
  }

  /**
   * Records an answer by its visible text, if the client may send it back without thinking that svc recognises:
   * - svc changed the request and saw no thinking, but the answer may have had some in a form that svc does not read;
   * - the answer ends a bound exchange, and many clients leave old thinking out when the next prompt begins.
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

  /** Records a thinking block, or an answer, under an id. Returns whether the thinking may be bound. */
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
   * Records that the conversation has bound thinking. If the client leaves that thinking out later, only this entry
   * shows that there was some.
   */
  #mark(reading: Reading): void {
    const mark = boundAddress(reading);
    if (mark === undefined || reading.state.boundFrom === mark.fingerprint) return;
    reading.state.boundFrom = mark.fingerprint;
    void this.#dependencies.ledger.record([{ ...mark, at: this.#dependencies.clock.now() }]);
  }
}

/**
 * The blocks and left-out texts of the request that the provider accepted. The ledger entry of each thinking block has
 * them.
 */
export interface Relayed extends Pick<ThoughtFact, 'isShortened' | 'batches' | 'whole'> {
  readonly reading: Reading;
  readonly bond: Bond | undefined;
  readonly placements: readonly Placement[];
}

/** The bond of thinking that svc did not relay: nothing of svc was in front of it. */
const FOREIGN = { isBound: true, placed: 'foreign', batches: [] } as const;

/** Returns the bond of a conversation with bound thinking, from the entry of its newest thinking. */
function bondOf({ isBound, blocks, ...fact }: ThoughtFact, thoughtAt: number): Bond {
  // Neither this thinking nor any before it is bound: the bound thinking was left out, or stands behind an edit.
  if (!isBound) return { ...UNBOUND, isBound: true, thoughtAt };
  const { batches, whole } = fact.isShortened ? fact : { batches: [], whole: [] };
  return { isBound: true, thoughtAt, placed: blocks, batches, whole };
}

/**
 * The number of last answers among which svc searches for the newest one with a ledger entry. An answer that the client
 * has changed has none.
 */
const ANSWERS_MAX = 4;

/**
 * Deadline of the ledger for a conversation that may be bound, in milliseconds. It is longer than a recall's: if svc
 * cannot repeat the blocks in front of the thinking, the provider may drop the thinking.
 */
export const BOUND_MS = 2_000;

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

/** The ledger addresses of a thinking block, and `behind` as in ThoughtFact. */
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

/**
 * Finds the answer that the item at `index` belongs to: its `behind` as in ThoughtFact, and the address of its text.
 */
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

/** Returns the fingerprint of the newest item that no model made; it is the `behind` of a ThoughtFact. */
function newestGiven({ items }: RequestView): string {
  return items.findLast(isGiven)?.fingerprint ?? '';
}

/** The roles of items that no model makes. */
const GIVEN: ReadonlySet<unknown> = new Set(['user', 'tool', 'system']);

function isGiven(item: Item | undefined): boolean {
  return GIVEN.has(item?.role);
}

/** Returns the index of the last item of each answer that something other than a tool result follows. */
function finalAnswers(items: readonly Item[]): readonly number[] {
  return items.flatMap((item, at) => {
    const next = items[at + 1];
    return !isGiven(item) && isGiven(next) && next?.toolResultIds.length === 0 ? [at] : [];
  });
}

/** Returns an id for an answer, from its visible text and its `behind`. No thoughtId begins with `said-`. */
function saidId(text: string, behind: string): string {
  return `said-${textDigest('assistant', text.trim())}-${behind}`;
}
