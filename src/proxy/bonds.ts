import { bindsThinking } from '../core/conversation/binding-models.ts';
import type { RequestView } from '../core/conversation/view.ts';
import type { Answer } from '../core/dialects/answer.ts';
import type { AddressOf } from '../core/ledger/entries.ts';
import { textDigest } from '../core/memory/reference.ts';
import { type Bond, placedMarks, type Placement, UNBOUND } from '../core/recall/injections.ts';
import type { Deadline } from './deadline.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Reading } from './read-request.ts';

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
   * was sent before. The newest thinking alone decides: its entry repeats what was true of the earlier ones.
   */
  async look(reading: Reading, deadline: Deadline): Promise<Bond | undefined> {
    const { view, state } = reading;
    const mark = boundAddress(reading);
    if (mark === undefined) return UNBOUND;
    const thoughtAt = view.items.findLastIndex(({ thoughts }) => thoughts.length > 0);
    const thought = thoughtAddress(reading, view.items[thoughtAt]?.thoughts.at(-1), thoughtAt);
    const isMarked = state.boundFrom === mark.fingerprint;
    if (isMarked && thought === undefined) return { ...UNBOUND, isBound: true };
    const mayBind = isMarked || (thought !== undefined && bindsThinking(modelOf(reading)));
    const said = thought === undefined ? undefined : saidAddress(thought, textOf(view, thoughtAt));
    const asked = [isMarked ? undefined : mark, thought, said].flatMap((one) => one ?? []);
    const found = await this.#dependencies.ledger.find(
      asked,
      mayBind ? LOOK_MS : deadline.msLeft / 2,
    );
    const [known] = [thought, said].flatMap((one) => (one && found.get(one)) ?? []);
    if (mayBind && known === undefined && found.missing !== undefined) return undefined;
    // Who made it may not be known. Most people stay with a model, so the one that is asked now is taken for it.
    const isBound = isMarked || found.has(mark) || (known?.isBound ?? mayBind);
    if (!isBound) return { ...UNBOUND, thoughtAt };
    this.#mark(reading);
    if (thought === undefined) return { ...UNBOUND, isBound };
    return { isBound, thoughtAt, placed: known?.blocks ?? 'foreign' };
  }

  /**
   * Records a thinking block of the answer. To be called before the client has the bytes that complete it.
   * `model`: the one that the answer names. `placements`: the blocks that the accepted request carried.
   */
  relayed(
    thought: string,
    model: string | undefined,
    { reading, bond, placements }: Relayed,
  ): void {
    const address = thoughtAddress(reading, thought, reading.view.items.length);
    const isBound = bond?.isBound !== false || bindsThinking(model ?? modelOf(reading));
    const at = this.#dependencies.clock.now();
    const blocks = placedMarks(placements);
    // Never rejects. Where it cannot be written, this process knows it nevertheless.
    if (address !== undefined) {
      void this.#dependencies.ledger.record([{ ...address, isBound, blocks, at }]);
    }
    if (isBound) this.#mark(reading);
  }

  /**
   * Records an answer in which svc read no thinking, by its words: the client may send thinking back that came
   * in a form or an encoding that svc does not read.
   */
  answered({ text, thoughts, model }: Answer, { reading, bond, placements }: Relayed): void {
    if (thoughts.length > 0 || placements.length === 0) return;
    const address = thoughtAddress(reading, '', reading.view.items.length);
    if (address === undefined) return;
    const isBound = bond?.isBound !== false || bindsThinking(model ?? modelOf(reading));
    const at = this.#dependencies.clock.now();
    const entry = { ...saidAddress(address, text), isBound, blocks: placedMarks(placements), at };
    void this.#dependencies.ledger.record([entry]);
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

/**
 * The address of a thinking block in the item at `index`: its name, behind the last item that the model did not
 * make. So a provider whose signatures repeat confuses no two conversations.
 */
function thoughtAddress(
  { view, place }: Reading,
  thought: string | undefined,
  index: number,
): AddressOf<'thought'> | undefined {
  if (thought === undefined) return undefined;
  const before = view.items.slice(0, index).findLast(({ role }) => GIVEN.has(role));
  const fingerprint = before?.fingerprint ?? '';
  return { kind: 'thought', tenant: place.tenant, thought, fingerprint };
}

/** The roles of items that no model makes. */
const GIVEN: ReadonlySet<string> = new Set(['user', 'tool', 'system']);

/** The same place, by the visible words of the answer. */
function saidAddress(address: AddressOf<'thought'>, text: string): AddressOf<'thought'> {
  return { ...address, thought: `said-${textDigest('assistant', text.trim())}` };
}

/** The visible text of the answer that holds the item at `index`. */
function textOf({ items }: RequestView, index: number): string {
  const start = items.slice(0, index).findLastIndex(({ role }) => GIVEN.has(role)) + 1;
  const length = items.slice(index).findIndex(({ role }) => GIVEN.has(role));
  const end = length === -1 ? items.length : index + length;
  const texts = items.slice(start, end).map(({ assistantText }) => assistantText);
  return texts.filter((text) => text !== '').join('\n\n');
}
