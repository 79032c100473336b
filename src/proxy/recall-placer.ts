import { isUnplaced } from '../core/request/space.ts';
import { forgetOldest } from '../core/bytes/forget-oldest.ts';
import { questionText } from '../core/memory/captures.ts';
import type { MemoryState } from '../core/plan/memory-state.ts';
import { groupExchanges } from '../core/conversation/exchanges.ts';
import { type BlockFact, conversationKeyOf, keyOf } from '../core/ledger/entries.ts';
import { isRefused, refusalAddresses, refusalEntries } from '../core/ledger/refusals.ts';
import {
  blockAddresses,
  entriesFor,
  type HumanItem,
  humanItems,
  type Placement,
  type Replay,
  replayBlocks,
  roomForBlock,
  unansweredItem,
} from '../core/recall/injections.ts';
import type { LedgerMiss } from '../core/ledger/found-entries.ts';
import { contentForm } from '../core/plan/item-edits.ts';
import type { Modes } from '../core/http/modes.ts';
import { MARK_TOKENS, markBlock } from '../core/recall/own-blocks.ts';
import { type RecallBlock, writeRecallBlock } from '../core/recall/recall-block.ts';
import type { ProxySettings } from '../core/settings/settings.ts';
import type { Item } from '../core/conversation/view.ts';
import { HeldDigests } from './held-digests.ts';
import type { ProxyParts } from './parts.ts';
import type { Reading } from './read-request.ts';
import { RecallGuard } from './recall-guard.ts';

/** The blocks that a request carries, and what the client is told about memory. */
export interface PlacedRecall {
  readonly placements: readonly Placement[];
  readonly state: MemoryState;
}

/** `isProvisional`: true of this request alone, so not to be repeated by heart. */
interface AskedRecall extends PlacedRecall {
  readonly isProvisional?: boolean;
}

// BM25 over more words than this finds the common ones: a question is a few sentences.
const QUESTION_CHARS_MAX = 4_096;
// Prompts whose blocks are known by heart; a prompt is asked about once a round, so the last few do.
const REPLAYS_MAX = 256;

const NOTHING: readonly Placement[] = [];
const NO_DIGESTS: ReadonlySet<string> = new Set();

interface MainCall {
  readonly reading: Reading;
  readonly settings: ProxySettings;
  readonly isCacheCold: boolean;
  /** Digests of what the request may leave out: it is recalled as if it were not there. */
  readonly leavesOut?: (() => Promise<ReadonlySet<string>>) | undefined;
}

interface LedgerCall extends Pick<MainCall, 'isCacheCold' | 'leavesOut'> {
  readonly unanswered: Item | undefined;
  /** The ledger's, when the request came. */
  readonly generation: number;
}

/** Replays what the ledger knows, recalls for a new prompt, and records what it placed. */
export class RecallPlacer {
  readonly #parts: ProxyParts;
  readonly #guard: RecallGuard;
  readonly #held = new HeldDigests();
  /** By the newest prompt's place in its conversation: what its tool loop carries in every round. */
  readonly #replays = new Map<string, readonly PlacedBlock[]>();

  #generation: number;

  constructor(parts: ProxyParts) {
    this.#parts = parts;
    this.#generation = parts.ledger.generation();
    this.#guard = new RecallGuard(parts.memory, parts.clock);
  }

  /** Never throws: what goes wrong is a state. */
  async place(call: {
    readonly reading: Reading | undefined;
    readonly modes: Modes;
    readonly settings: ProxySettings;
    readonly isCacheCold: boolean;
    readonly leavesOut?: (() => Promise<ReadonlySet<string>>) | undefined;
  }): Promise<PlacedRecall> {
    const { reading, modes, settings } = call;
    if (modes.memory === 'off') return { placements: NOTHING, state: 'off' };
    if (!modes.reads) return { placements: NOTHING, state: 'write_only' };
    if (reading === undefined) return { placements: NOTHING, state: 'skipped_unsupported' };
    if (reading.identity.kind !== 'main')
      return { placements: NOTHING, state: 'skipped_side_call' };
    if (reading.hasProviderState || isUnplaced(reading.place.space)) {
      return { placements: NOTHING, state: 'skipped_unsupported' };
    }
    // Shadow forwards the original request: there is nothing to recall for.
    if (modes.compression === 'shadow')
      return { placements: NOTHING, state: 'skipped_unsupported' };
    return this.#placeMain({
      reading,
      settings,
      isCacheCold: call.isCacheCold,
      leavesOut: call.leavesOut,
    });
  }

  /** The provider refused the changed request: this conversation is left alone for an hour. */
  async refused({ view, place }: Reading): Promise<void> {
    this.#replays.clear();
    const addresses = refusalAddresses(view, place, 'recall');
    await this.#parts.ledger.record(refusalEntries(addresses, this.#parts.clock.now()));
  }

  async #placeMain({ reading, settings, isCacheCold, leavesOut }: MainCall): Promise<PlacedRecall> {
    const generation = this.#dropForgotten();
    const unanswered = unansweredItem(reading.view);
    const loop = unanswered === undefined ? loopKey(reading) : '';
    const known = this.#replays.get(loop);
    if (known !== undefined) return stateOf(known.flatMap((block) => atItem(reading, block)));
    const placed = await this.#askLedger(reading, settings, {
      unanswered,
      isCacheCold,
      leavesOut,
      generation,
    });
    if (loop !== '' && placed.isProvisional !== true) {
      this.#replays.set(loop, placed.placements.map(blockOf));
      forgetOldest(this.#replays, REPLAYS_MAX);
    }
    return placed;
  }

  #dropForgotten(): number {
    const generation = this.#parts.ledger.generation();
    if (generation !== this.#generation) this.#replays.clear();
    this.#generation = generation;
    return generation;
  }

  async #askLedger(
    reading: Reading,
    settings: ProxySettings,
    { unanswered, isCacheCold, leavesOut, generation }: LedgerCall,
  ): Promise<AskedRecall> {
    const humans = humanItems(reading.view, reading.place);
    // One deadline for both: what the ledger takes, the recall does not get.
    const until = this.#parts.clock.monotonic() + settings.recallMs;
    const refusals = refusalAddresses(reading.view, reading.place, 'recall');
    const asked = [...refusals, ...blockAddresses(humans)];
    const found = await this.#parts.ledger.find(asked, settings.recallMs);
    const now = this.#parts.clock.now();
    if (isRefused(refusals, found, now)) {
      return { placements: NOTHING, state: 'skipped_unsupported', isProvisional: true };
    }
    const { isStated } = reading.place;
    const { recalledTokensMax } = settings;
    const facts = { unanswered, isStated, now, recalledTokensMax };
    const replay = replayBlocks(humans, found, facts);
    const human = humans.find(({ item }) => item === unanswered);
    const isKnown = replay.isWhole && (replay.isSettled || human === undefined);
    if (found.missing !== undefined && !isKnown) return knownInTime(replay, found.missing);
    await this.#parts.ledger.record(replay.pins);
    if (replay.isSettled || human === undefined) return stateOf(replay.placements);

    const room = roomForBlock(reading.view, replay.placements, { recalledTokensMax, isCacheCold });
    if (room === undefined) return this.#settle(human, replay.placements, undefined);
    const { passages, state } = await this.#guard.recall(
      this.#question(reading, human, {
        tokensMax: room.tokensMax,
        placed: replay.placements,
        leavesOut: (await leavesOut?.()) ?? NO_DIGESTS,
      }),
      Math.max(0, until - this.#parts.clock.monotonic()),
    );
    // What was found, or placed earlier, may be what was forgotten while the memory was asked.
    if (this.#parts.ledger.generation() !== generation) {
      return { placements: NOTHING, state: 'degraded_unavailable', isProvisional: true };
    }
    // A degraded recall is not recorded: the next request of this prompt asks again.
    if (state !== 'recalled' && state !== 'empty') return { placements: replay.placements, state };
    const earlier = room.dropsEarlier ? NOTHING : replay.placements;
    const told = earlier.map((placement) => placement.block);
    const written = writeRecallBlock(passages, room.tokensMax - MARK_TOKENS, told);
    const block = marked(written, this.#parts.blockKey);
    const form = contentForm(reading.view, human.item);
    if (block.text === '' || form === undefined) {
      return this.#settle(human, replay.placements, undefined);
    }
    const placement = { item: human.item, block: block.text, form, tokens: block.tokens };
    return this.#settle(human, [...earlier, placement], {
      block: block.text,
      form,
      dropsEarlier: room.dropsEarlier,
    });
  }

  /** Records the decision for this prompt before it is forwarded, so that a restart repeats it. */
  async #settle(
    human: HumanItem,
    placements: readonly Placement[],
    decided: BlockFact | undefined,
  ): Promise<PlacedRecall> {
    const nothing = { block: '', form: 'text', dropsEarlier: false } as const;
    await this.#parts.ledger.record(
      entriesFor(human, { ...(decided ?? nothing), at: this.#parts.clock.now() }),
    );
    return stateOf(placements);
  }

  #question(reading: Reading, human: HumanItem, { tokensMax, placed, leavesOut }: Room) {
    const blocks = placed.map(({ block }) => block);
    const { items } = reading.view;
    const exchanges = groupExchanges(items);
    const previous = exchanges.findLast(({ assistantText }) => assistantText !== '');
    return {
      space: reading.place.space,
      humanText: questionText(human.item.humanText, QUESTION_CHARS_MAX),
      assistantText: questionText(previous?.assistantText ?? '', QUESTION_CHARS_MAX),
      excludeDigests: this.#held
        .of(items, exchanges, blocks)
        .filter((digest) => !leavesOut.has(digest)),
      tokensMax,
      now: this.#parts.clock.now(),
    };
  }
}

/** A block and the index of its item, without the body that the item stands in. */
interface PlacedBlock extends Omit<Placement, 'item'> {
  readonly index: number;
}

function blockOf({ item, ...block }: Placement): PlacedBlock {
  return { ...block, index: item.soFar.humans?.index ?? -1 };
}

function atItem({ view }: Reading, { index, ...block }: PlacedBlock): readonly Placement[] {
  const item = view.items[index];
  return item === undefined ? [] : [{ ...block, item }];
}

/**
 * The blocks that are known although the ledger did not answer in time. What else was placed before is
 * not known: to place something new would break the prefix twice.
 */
function knownInTime({ placements }: Replay, missing: LedgerMiss): AskedRecall {
  const state = missing === 'late' ? 'degraded_timeout' : 'degraded_unavailable';
  return { placements, state, isProvisional: true };
}

/** Names the newest prompt of a conversation with its answer; '' without one. */
function loopKey({ view, place }: Reading): string {
  const newest = humanItems(view, place).at(-1)?.answered;
  return newest === undefined ? '' : `${keyOf(newest)}:${conversationKeyOf(place)}`;
}

interface Room {
  readonly tokensMax: number;
  /** The blocks of earlier prompts, which the request carries again. */
  readonly placed: readonly Placement[];
  readonly leavesOut: ReadonlySet<string>;
}

function stateOf(placements: readonly Placement[]): PlacedRecall {
  return { placements, state: placements.length === 0 ? 'empty' : 'recalled' };
}

function marked({ text, tokens }: RecallBlock, key: string): RecallBlock {
  return text === ''
    ? { text, tokens }
    : { text: markBlock(text, key), tokens: tokens + MARK_TOKENS };
}
