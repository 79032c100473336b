import { isUnplaced } from '../core/request/space.ts';
import { estimateTextTokens } from '../core/bytes/tokens.ts';
import { questionText } from '../core/memory/captures.ts';
import type { MemoryState } from '../core/plan/continuity.ts';
import { type Exchange, groupExchanges } from '../core/conversation/exchanges.ts';
import { isModelWork } from '../core/conversation/so-far.ts';
import {
  type BlockFact,
  isRefused,
  keyOf,
  type LedgerEntry,
  type LedgerMiss,
  refusalAddresses,
  refusalEntries,
} from '../core/ledger/entries.ts';
import {
  blockAddresses,
  type Bond,
  entriesFor,
  type HumanItem,
  humanItems,
  newestAnswered,
  NO_BLOCK,
  placedMarks,
  type Placement,
  replayBlocks,
  roomForBlock,
  SERVICE_BLOCK_MS,
  spokenEntries,
  unansweredItem,
} from '../core/recall/injections.ts';
import { firstUnsentItem } from '../core/recall/first-unsent.ts';
import type { Answer } from '../core/dialects/answer.ts';
import type { BatchMoment } from '../core/shortening/elisions.ts';
import { isOmitted, type Leaving } from '../core/shortening/omissions.ts';
import type { Item } from '../core/conversation/view.ts';
import { contentForm } from '../core/plan/item-edits.ts';
import type { Modes } from '../core/http/modes.ts';
import { MARK_TOKENS, markBlock } from '../core/recall/own-blocks.ts';
import { writeAgentBlock } from '../core/recall/agent-block.ts';
import { isOpening, offersTools } from '../core/recall/openings.ts';
import { quotedRecords } from '../core/recall/quoted-records.ts';
import { type RecallBlock, writeRecallBlock } from '../core/recall/recall-block.ts';
import type { ProxySettings } from '../core/settings/settings.ts';
import type { AgentFacts, RecallQuestion } from '../ports/memory.ts';
import type { KnownBlock, KnownBlocks } from './conversation-state.ts';
import type { Deadline } from './deadline.ts';
import { HeldDigests } from './held-digests.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Slices } from './slices.ts';
import type { Reading } from './read-request.ts';
import { checkAnswer, type CheckedAnswer } from './outgrown.ts';
import { RecallGuard } from './recall-guard.ts';

/** The blocks that a request carries, and the memory state that the client sees. */
export interface Recalled {
  readonly placements: readonly Placement[];
  readonly state: MemoryState;
  /** Blocks stay out for good, because the conversation was continued without svc. */
  readonly isForeign?: boolean;
  /** The generation that the memory answered from; undefined where it was not asked, or has none. */
  readonly generation?: string | undefined;
}

// BM25 over more words than this finds the common ones: a question is a few sentences.
const QUESTION_CHARS_MAX = 4_096;
// The end of the agent's last answer and its last prompts say what a short prompt is about.
const AROUND_CHARS = 1_500;
const PROMPTS_AROUND = 2;
// Fence included: four earlier sessions.
const BRIEF_TOKENS_MAX = 125;

// The entry was just recorded or used, so no table is asked.
const PIN_MS = 1_000;

/** A bound conversation without its blocks loses its thinking, so its ledger gets longer than a recall. */
const BOUND_MS = 2_000;

const NOTHING: readonly Placement[] = [];
const UNREADABLE: Recalled = { placements: NOTHING, state: 'degraded_unavailable' };
const DENIED = { state: 'degraded_denied' } as const;

export interface RecallCall {
  readonly reading: Reading | undefined;
  readonly modes: Modes;
  readonly settings: ProxySettings;
  /** Says what the request must repeat of earlier ones; undefined if the ledger could not be read. */
  readonly bond: Bond | undefined;
  readonly deadline: Deadline;
}

interface ReadCall extends RecallCall {
  readonly reading: Reading;
  readonly bond: Bond;
  /** Why nothing new is placed; undefined where something may be. */
  readonly silence: MemoryState | undefined;
  readonly leaving: () => Promise<Leaving>;
}

/** Blocks that were placed before; and the newest prompt, where nothing was decided for it yet. */
export type Replayed = Pick<BatchMoment, 'firstUnsent'> &
  ({ readonly kind: 'settled'; readonly recalled: Recalled } | OpenPrompt);

interface OpenPrompt {
  readonly kind: 'open';
  readonly call: ReadCall;
  readonly reading: Reading;
  readonly prompt: HumanItem;
  readonly placements: readonly Placement[];
  readonly leaving: Leaving;
  readonly isForeign: boolean;
  /** The ledger's, before it was asked. */
  readonly generation: number;
}

/** Replays the blocks that the ledger knows, recalls for a new prompt, and records what it placed. */
export class Recaller {
  readonly #dependencies: ProxyDependencies;
  readonly #guard: RecallGuard;
  readonly #held = new HeldDigests();
  readonly #slices: Slices;

  constructor(dependencies: ProxyDependencies, slices: Slices) {
    this.#dependencies = dependencies;
    this.#slices = slices;
    this.#guard = new RecallGuard(dependencies.memory, dependencies.clock);
  }

  /**
   * Finds the blocks that earlier requests of this conversation carried. `leaving`: the exchanges
   * that leave the request. They no longer count as known to the model, so their facts may be
   * recalled again.
   */
  async replay(call: RecallCall, leaving: () => Promise<Leaving>): Promise<Replayed> {
    const { reading, bond } = call;
    const silence = silenceOf(call);
    if (reading === undefined || !mayRepeat(call, silence)) {
      return settled({ placements: NOTHING, state: silence ?? 'skipped_unsupported' });
    }
    if (bond === undefined) return settled(UNREADABLE);
    const generation = this.#dependencies.ledger.generation();
    const loop = silence === undefined ? loopOf(reading) : undefined;
    const known = loop === undefined ? undefined : reading.state.blocks.get(loop);
    if (known?.generation === generation) {
      const placements = known.blocks.flatMap((block) => atItem(reading, block));
      if (isSame(placements, bond, known)) return settled(stateOf(placements));
    }
    const asked = { ...call, reading, bond, silence, leaving };
    const { replayed, isLasting } = await this.#askLedger(asked, generation);
    if (loop !== undefined && isLasting && replayed.kind === 'settled') {
      const blocks = replayed.recalled.placements.map(blockOf);
      const isForeign = bond.placed === 'foreign';
      reading.state.blocks.set(loop, { generation, blocks, isForeign });
    }
    return replayed;
  }

  /** Recalls for the newest prompt, if nothing was decided for it. */
  async recall(call: RecallCall, replayed: Replayed): Promise<Recalled> {
    if (replayed.kind === 'settled') return replayed.recalled;
    const { reading, prompt, placements, leaving } = replayed;
    const tokensMax = roomForBlock(placements, call.settings.recalledTokensMax);
    if (tokensMax === undefined) return this.#settle(replayed, placements, undefined);
    const agent = agentFactsOf(reading, call.settings);
    const question = await this.#question(reading, prompt, {
      tokensMax,
      placements,
      leaving,
      agent,
    });
    const { answer: found, state } = await this.#guard.recall(question, call.deadline.msLeft);
    const answer = await checkAnswer(found, {
      workplace: reading.workplace,
      code: this.#dependencies.code?.reader,
      // A disk that hangs must not take what the proofs need.
      withinMs: call.deadline.msLeft / 2,
    });
    const recalled = await this.#place(replayed, tokensMax, { answer, state });
    return { ...recalled, generation: found.generation };
  }

  /** Writes the block for a new prompt from what the memory answered. */
  async #place(
    open: OpenPrompt,
    tokensMax: number,
    { answer, state }: { readonly answer: CheckedAnswer; readonly state: MemoryState },
  ): Promise<Recalled> {
    const { reading, prompt, placements, generation, leaving } = open;
    // A forget ran while the memory was asked: the blocks that were found may hold forgotten text.
    const now = this.#dependencies.ledger.generation();
    if (now !== generation) {
      const { replayed } = await this.#askLedger(open.call, now);
      const { placements: left } = replayed.kind === 'open' ? replayed : replayed.recalled;
      return { placements: left, state: 'degraded_unavailable' };
    }
    // A degraded recall is not recorded: the next request of this prompt asks again.
    if (state !== 'recalled' && state !== 'empty') return { placements, state };
    const told = toldBy(placements, leaving);
    const written = blockFor(answer, tokensMax - MARK_TOKENS, told);
    const block = marked(written, this.#dependencies.blockKey);
    const form = contentForm(reading.view, prompt.item);
    if (block.text === '' || form === undefined) {
      return this.#settle(open, placements, undefined);
    }
    const { space } = reading.place;
    const quoted = quotedRecords(block.text, answer);
    const fact = { block: block.text, form, space, quoted };
    const { tokens } = block;
    const placement = { item: prompt.item, block: block.text, form, tokens, isNew: true } as const;
    return this.#settle(open, [...placements, placement], fact);
  }

  /**
   * Makes the blocks of a conversation's opening findable by its first answer. To be called before the client
   * has the answer's last byte: its next request may be another conversation that continues from here.
   */
  async answered(
    { view, place }: Reading,
    { text, callsTools }: Answer,
    placements: readonly Placement[],
  ): Promise<void> {
    // Behind an answer the same words so far are one conversation. A tool's result brings the call with it.
    if (callsTools || text.trim() === '' || view.items.some(isModelWork)) return;
    const humans = humanItems(view, place);
    const asked = humans.map(({ own }) => own);
    const found = await this.#dependencies.ledger.find(asked, PIN_MS);
    await this.#dependencies.ledger.record(spokenEntries(humans, found, { text, placements }));
  }

  /**
   * Takes refused blocks back. `isAtFault`: the provider took the request without them, so no later request
   * carries them, and nothing new is placed in this conversation for an hour. Otherwise svc decides about the prompt again.
   */
  async refused(
    { view, place, state }: Reading,
    placements: readonly Placement[],
    isAtFault: boolean,
  ): Promise<void> {
    if (placements.length === 0) return;
    state.blocks.clear();
    const at = this.#dependencies.clock.now();
    const humans = humanItems(view, place);
    const entries = placements.flatMap(({ item, isNew }): LedgerEntry[] => {
      const human = humans.find((one) => one.item === item);
      if (human === undefined) return [];
      const nothing = { ...NO_BLOCK, at, ...(!isAtFault && { isOpen: true as const }) };
      const own = { ...human.own, ...nothing };
      return isNew === true ? [own, { ...human.shared, ...nothing, replaces: true }] : [own];
    });
    const refusals = isAtFault ? refusalEntries(refusalAddresses(view, place, 'recall'), at) : [];
    await this.#dependencies.ledger.record([...entries, ...refusals]);
  }

  /** `isLasting`: true of the later requests of this prompt too. */
  async #askLedger(
    call: ReadCall,
    generation: number,
  ): Promise<{ readonly replayed: Replayed; readonly isLasting: boolean }> {
    const { reading, deadline, bond, silence } = call;
    const { view, place } = reading;
    const { ledger, memory } = this.#dependencies;
    const humans = humanItems(view, place);
    const refusals = refusalAddresses(view, place, 'recall');
    const asked = [...refusals, ...blockAddresses(humans)];
    const found = await ledger.find(asked, bond.isBound ? BOUND_MS : deadline.msLeft);
    if (found.missing !== undefined && bond.isBound) {
      return { replayed: settled(UNREADABLE), isLasting: false };
    }
    const now = this.#dependencies.clock.now();
    const { isStated } = place;
    const unanswered = silence === undefined ? unansweredItem(view) : undefined;
    const leaving = await call.leaving();
    const isGone = (item: Item): boolean => isOmitted(item, leaving.gone);
    const blockAgeMaxMs = memory.supports.kind === 'hosted' ? SERVICE_BLOCK_MS : undefined;
    const mayRead = (space: string): boolean => this.#mayRead(space);
    const facts = { unanswered, isStated, now, bond, mayRead, blockAgeMaxMs, isGone };
    const replay = replayBlocks(humans, found, facts);
    const { placements, isSettled, isWhole, pins } = replay;
    const prompt = isSettled ? undefined : humans.find(({ item }) => item === unanswered);
    if (found.missing !== undefined && !(isWhole && prompt === undefined)) {
      // To place something new beside blocks that are not known would break the prefix twice.
      const recalled = { placements, state: stateOfMiss(found.missing) };
      return { replayed: settled(recalled), isLasting: false };
    }
    const isKnown = found.missing === undefined;
    // Where they are not known elsewhere, another node finds the same blocks by the shared entries.
    if (isKnown && silence === undefined) await ledger.commit(pins);
    const marks = { isForeign: replay.isForeign, ...(replay.isDenied && DENIED) };
    if (silence !== undefined) {
      const recalled = { placements, state: silence, ...marks };
      return { replayed: settled(recalled), isLasting: false };
    }
    const firstUnsent = isKnown ? firstUnsentItem(humans, found) : undefined;
    if (prompt === undefined) {
      const recalled = { ...stateOf(placements), ...marks };
      return { replayed: { ...settled(recalled), firstUnsent }, isLasting: !replay.isForeign };
    }
    const isOff = isRefused(refusals, found, now);
    if (reading.hasProviderState || isOff || replay.isDenied) {
      const state = placements.length === 0 ? 'skipped_unsupported' : 'recalled';
      return { replayed: settled({ placements, state, ...marks }), isLasting: false };
    }
    const { isForeign } = replay;
    const open = { kind: 'open', call, reading, prompt, placements, leaving, generation } as const;
    return { replayed: { ...open, firstUnsent, isForeign }, isLasting: false };
  }

  /** Whether the caller may read what a block quotes from this space. */
  #mayRead(space: string): boolean {
    const { memory, mayRead } = this.#dependencies;
    return memory.supports.read && mayRead?.(space) !== false;
  }

  /**
   * Records the decision for this prompt before it is forwarded, so that a restart or another node
   * repeats it. A decision that could not be recorded is not carried out.
   */
  async #settle(
    { prompt, placements: before, isForeign }: OpenPrompt,
    placements: readonly Placement[],
    decided: BlockFact | undefined,
  ): Promise<Recalled> {
    const at = this.#dependencies.clock.now();
    const entries = entriesFor(prompt, { ...(decided ?? NO_BLOCK), at });
    const isKnown = await this.#dependencies.ledger.commit(entries);
    if (!isKnown) return { placements: before, state: 'degraded_unavailable', isForeign };
    return { ...stateOf(placements), isForeign };
  }

  async #question(reading: Reading, human: HumanItem, asked: Asked): Promise<RecallQuestion> {
    const { tokensMax, placements, leaving, agent } = asked;
    const blocks = toldBy(placements, leaving);
    const left = digestsOf(leaving);
    const { items } = reading.view;
    const exchanges = groupExchanges(items);
    const previous = exchanges.findLast(({ assistantText }) => assistantText !== '');
    const held = await this.#slices.run(this.#held.steps(items, exchanges, blocks));
    return {
      space: reading.place.space,
      olderSpaces: reading.olderSpaces,
      humanText: questionText(human.item.humanText, QUESTION_CHARS_MAX),
      assistantText:
        agent === undefined
          ? questionText(previous?.assistantText ?? '', QUESTION_CHARS_MAX)
          : aroundPrompt(previous?.assistantText ?? '', exchanges),
      excludeDigests: held.filter((digest) => !left.has(digest)),
      tokensMax,
      now: this.#dependencies.clock.now(),
      ...(agent !== undefined && { agent }),
    };
  }
}

/**
 * Undefined for a chat without tools. A client that svc knows is an agent always: for some models
 * Codex lists its tools elsewhere.
 */
function agentFactsOf(
  { view, identity, place, branch = '' }: Reading,
  { sessionBrief, recallQuietPercent }: ProxySettings,
): AgentFacts | undefined {
  if (identity.client === 'unknown' && !offersTools(view)) return undefined;
  const briefTokensMax = sessionBrief && isOpening(view) ? BRIEF_TOKENS_MAX : 0;
  const { conversation } = place;
  return { conversation, branch, quietShare: recallQuietPercent / 100, briefTokensMax };
}

function aroundPrompt(answer: string, exchanges: readonly Exchange[]): string {
  const prompts = exchanges
    .filter(({ humanText }) => humanText !== '')
    .slice(-1 - PROMPTS_AROUND, -1)
    .map(({ humanText }) => questionText(humanText, AROUND_CHARS));
  return [questionText(answer.slice(-AROUND_CHARS), AROUND_CHARS), ...prompts].join('\n');
}

function blockFor(
  { passages, exchanges, sessions = [] }: CheckedAnswer,
  tokensMax: number,
  told: readonly string[],
): RecallBlock {
  if (exchanges === undefined) return writeRecallBlock(passages, tokensMax, told);
  const standing = passages.map(({ text }) => text);
  const limits = { tokensMax, briefTokensMax: BRIEF_TOKENS_MAX - MARK_TOKENS };
  return writeAgentBlock({ standing, exchanges, sessions }, limits, told);
}

/** Names the tool loop that the request continues, by its prompt and its answer; undefined outside of one. */
function loopOf({ view, place }: Reading): string | undefined {
  const answered = newestAnswered(view, place);
  const isLoop = answered !== undefined && unansweredItem(view) === undefined;
  return isLoop ? keyOf(answered) : undefined;
}

function blockOf({ item, ...block }: Placement): KnownBlock {
  return { ...block, index: item.soFar.humans?.index ?? -1 };
}

function atItem({ view }: Reading, { index, ...block }: KnownBlock): readonly Placement[] {
  const item = view.items[index];
  return item === undefined ? [] : [{ ...block, item }];
}

interface Asked {
  readonly agent: AgentFacts | undefined;
  readonly tokensMax: number;
  /** The blocks of earlier prompts, which the request carries again. */
  readonly placements: readonly Placement[];
  readonly leaving: Leaving;
}

/** The blocks that the model still reads. */
function toldBy(placements: readonly Placement[], { going }: Leaving): readonly string[] {
  return placements.flatMap(({ item, block }) => (isOmitted(item, going) ? [] : [block]));
}

/** The digests of the leaving exchanges: recall treats the request as if it did not hold them. */
function digestsOf({ gone, going }: Leaving): ReadonlySet<string> {
  return new Set([...gone, ...going].flatMap(({ texts }) => texts.map(({ digest }) => digest)));
}

/** Why nothing new is placed in this request; undefined where something may be. */
function silenceOf({ reading, modes }: RecallCall): MemoryState | undefined {
  if (modes.memory === 'off') return 'off';
  if (!modes.reads) return 'write_only';
  if (reading === undefined) return 'skipped_unsupported';
  if (reading.identity.kind !== 'main') return 'skipped_side_call';
  // Shadow forwards the original request: there is nothing to recall for.
  const isShadow = modes.compression === 'shadow';
  const isElsewhere = reading.hasProviderHistory || isUnplaced(reading.place.space);
  return isShadow || isElsewhere ? 'skipped_unsupported' : undefined;
}

/**
 * Whether blocks that were placed before are placed again. A provider checks them in requests of every kind.
 * Where thinking is bound to them no mode takes them back; only shadow forwards the original.
 */
function mayRepeat(
  { reading, modes, bond }: RecallCall,
  silence: MemoryState | undefined,
): boolean {
  if (reading === undefined || reading.hasProviderHistory) return false;
  if (modes.compression === 'shadow') return false;
  const isBound = bond === undefined || bond.isBound;
  return isBound || silence === undefined || silence === 'skipped_side_call';
}

/** Whether these known blocks are the ones in front of the newest bound thinking. */
function isSame(
  placements: readonly Placement[],
  { placed, thoughtAt }: Bond,
  { isForeign }: KnownBlocks,
): boolean {
  if (placed === undefined) return true;
  const before = placements.filter(({ item }) => (item.soFar.humans?.index ?? 0) < thoughtAt);
  if (placed === 'foreign') return isForeign && before.length === 0;
  const marks = placedMarks(before);
  return (
    marks.length === placed.length &&
    marks.every(({ item, block }, at) => placed[at]?.item === item && placed[at]?.block === block)
  );
}

/**
 * Marks the block and counts its tokens as later requests do, so that the client sees one number.
 */
function marked({ text, tokens }: RecallBlock, key: string): RecallBlock {
  if (text === '') return { text, tokens };
  const block = markBlock(text, key);
  return { text: block, tokens: estimateTextTokens(block) };
}

function settled(recalled: Recalled): Replayed {
  return { kind: 'settled', recalled };
}

function stateOf(placements: readonly Placement[]): Recalled {
  return { placements, state: placements.length === 0 ? 'empty' : 'recalled' };
}

function stateOfMiss(missing: LedgerMiss): MemoryState {
  return missing === 'late' ? 'degraded_timeout' : 'degraded_unavailable';
}
