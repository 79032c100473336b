import { isUnplaced } from '../core/request/space.ts';
import { estimateTextTokens } from '../core/bytes/tokens.ts';
import { questionText } from '../core/memory/captures.ts';
import type { MemoryState } from '../core/plan/memory-state.ts';
import { type Exchange, groupExchanges } from '../core/conversation/exchanges.ts';
import { isModelWork } from '../core/conversation/so-far.ts';
import { type BlockFact, keyOf } from '../core/ledger/entries.ts';
import { isRefused, refusalAddresses, refusalEntries } from '../core/ledger/refusals.ts';
import {
  blockAddresses,
  entriesFor,
  type HumanItem,
  humanItems,
  newestAnswered,
  NO_BLOCK,
  type Placement,
  replayBlocks,
  roomForBlock,
  SERVICE_BLOCK_MS,
  spokenEntries,
  unansweredItem,
} from '../core/recall/injections.ts';
import { firstUnsentItem } from '../core/recall/first-unsent.ts';
import type { LedgerMiss } from '../core/ledger/found-entries.ts';
import type { Answer } from '../core/dialects/answer.ts';
import type { BatchMoment } from '../core/shortening/elisions.ts';
import { isOmitted, type Leaving } from '../core/shortening/omissions.ts';
import type { Item } from '../core/conversation/view.ts';
import { contentForm } from '../core/plan/item-edits.ts';
import type { Modes } from '../core/http/modes.ts';
import { MARK_TOKENS, markBlock } from '../core/recall/own-blocks.ts';
import { writeAgentBlock } from '../core/recall/agent-block.ts';
import { isOpening, offersTools } from '../core/recall/openings.ts';
import { type RecallBlock, writeRecallBlock } from '../core/recall/recall-block.ts';
import type { ProxySettings } from '../core/settings/settings.ts';
import type { AgentFacts, RecallQuestion } from '../ports/memory.ts';
import type { KnownBlock } from './conversation-state.ts';
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

const NOTHING: readonly Placement[] = [];

export interface RecallCall {
  readonly reading: Reading | undefined;
  readonly modes: Modes;
  readonly settings: ProxySettings;
  readonly isCacheCold: boolean;
  readonly deadline: Deadline;
}

interface ReadCall extends RecallCall {
  readonly reading: Reading;
  readonly leaving: () => Promise<Leaving>;
}

/** Blocks that were placed before; and the newest prompt, where nothing was decided for it yet. */
export type Replayed = Pick<BatchMoment, 'firstUnsent'> &
  ({ readonly kind: 'settled'; readonly recalled: Recalled } | OpenPrompt);

interface OpenPrompt {
  readonly kind: 'open';
  readonly reading: Reading;
  readonly prompt: HumanItem;
  readonly placements: readonly Placement[];
  readonly leaving: Leaving;
  /** The ledger's, before it was asked. */
  readonly generation: number;
}

type BlockRoom = NonNullable<ReturnType<typeof roomForBlock>>;

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
    const { reading } = call;
    const state = stateWithout(call);
    if (reading === undefined || state !== undefined) {
      return settled({ placements: NOTHING, state: state ?? 'skipped_unsupported' });
    }
    const generation = this.#dependencies.ledger.generation();
    const loop = loopOf(reading);
    const known = loop === undefined ? undefined : reading.state.blocks.get(loop);
    if (known?.generation === generation) {
      return settled(stateOf(known.blocks.flatMap((block) => atItem(reading, block))));
    }
    const asked = { ...call, reading, leaving };
    const { replayed, isLasting } = await this.#askLedger(asked, generation);
    if (loop !== undefined && isLasting && replayed.kind === 'settled') {
      const blocks = replayed.recalled.placements.map(blockOf);
      reading.state.blocks.set(loop, { generation, blocks });
    }
    return replayed;
  }

  /** Recalls for the newest prompt, if nothing was decided for it. */
  async recall(call: RecallCall, replayed: Replayed): Promise<Recalled> {
    if (replayed.kind === 'settled') return replayed.recalled;
    const { reading, prompt, placements, leaving } = replayed;
    const { recalledTokensMax } = call.settings;
    const facts = { recalledTokensMax, isCacheCold: call.isCacheCold };
    const room = roomForBlock(reading.view, placements, facts);
    if (room === undefined) return this.#settle(replayed, placements, undefined);
    const { tokensMax } = room;
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
    const recalled = await this.#place(replayed, room, { answer, state });
    return { ...recalled, generation: found.generation };
  }

  /** Writes the block for a new prompt from what the memory answered. */
  async #place(
    open: OpenPrompt,
    { tokensMax, dropsEarlier }: BlockRoom,
    { answer, state }: { readonly answer: CheckedAnswer; readonly state: MemoryState },
  ): Promise<Recalled> {
    const { reading, prompt, placements, generation, leaving } = open;
    // A forget ran while the memory was asked: the blocks found or placed before may hold forgotten
    // text.
    if (this.#dependencies.ledger.generation() !== generation) {
      return { placements: NOTHING, state: 'degraded_unavailable' };
    }
    // A degraded recall is not recorded: the next request of this prompt asks again.
    if (state !== 'recalled' && state !== 'empty') return { placements, state };
    const earlier = dropsEarlier ? NOTHING : placements;
    const told = toldBy(earlier, leaving);
    const written = blockFor(answer, tokensMax - MARK_TOKENS, told);
    const block = marked(written, this.#dependencies.blockKey);
    const form = contentForm(reading.view, prompt.item);
    if (block.text === '' || form === undefined) {
      return this.#settle(open, placements, undefined);
    }
    const placement = { item: prompt.item, block: block.text, form, tokens: block.tokens };
    return this.#settle(open, [...earlier, placement], {
      block: block.text,
      form,
      dropsEarlier,
    });
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

  /** The provider refused the changed request: this conversation is left alone for an hour. */
  async refused({ view, place, state }: Reading): Promise<void> {
    state.blocks.clear();
    const addresses = refusalAddresses(view, place, 'recall');
    await this.#dependencies.ledger.record(
      refusalEntries(addresses, this.#dependencies.clock.now()),
    );
  }

  /** `isLasting`: true of the later requests of this prompt too. */
  async #askLedger(
    { reading, settings, deadline, leaving: leavingLater }: ReadCall,
    generation: number,
  ): Promise<{ readonly replayed: Replayed; readonly isLasting: boolean }> {
    const { view, place } = reading;
    const humans = humanItems(view, place);
    const refusals = refusalAddresses(view, place, 'recall');
    const asked = [...refusals, ...blockAddresses(humans)];
    const found = await this.#dependencies.ledger.find(asked, deadline.msLeft);
    const now = this.#dependencies.clock.now();
    if (isRefused(refusals, found, now)) {
      const recalled = { placements: NOTHING, state: 'skipped_unsupported' } as const;
      return { replayed: settled(recalled), isLasting: false };
    }
    const { isStated } = place;
    const { recalledTokensMax } = settings;
    const unanswered = unansweredItem(view);
    const leaving = await leavingLater();
    const isGone = (item: Item): boolean => isOmitted(item, leaving.gone);
    const isElsewhere = this.#dependencies.memory.supports.kind === 'hosted';
    const blockAgeMaxMs = isElsewhere ? SERVICE_BLOCK_MS : undefined;
    const facts = { unanswered, isStated, now, recalledTokensMax, blockAgeMaxMs, isGone };
    const { placements, isSettled, isWhole, pins } = replayBlocks(humans, found, facts);
    const prompt = isSettled ? undefined : humans.find(({ item }) => item === unanswered);
    if (found.missing !== undefined && !(isWhole && prompt === undefined)) {
      // To place something new beside blocks that are not known would break the prefix twice.
      const recalled = { placements, state: stateOfMiss(found.missing) };
      return { replayed: settled(recalled), isLasting: false };
    }
    const isKnown = found.missing === undefined;
    // Where they are not known elsewhere, another node finds the same blocks by the shared entries.
    if (isKnown) await this.#dependencies.ledger.commit(pins);
    const firstUnsent = isKnown ? firstUnsentItem(humans, found) : undefined;
    if (prompt === undefined) {
      return { replayed: { ...settled(stateOf(placements)), firstUnsent }, isLasting: true };
    }
    if (reading.hasProviderState) {
      const state = placements.length === 0 ? 'skipped_unsupported' : 'recalled';
      return { replayed: settled({ placements, state }), isLasting: false };
    }
    const open = { kind: 'open', reading, prompt, placements, leaving, generation } as const;
    return { replayed: { ...open, firstUnsent }, isLasting: false };
  }

  /**
   * Records the decision for this prompt before it is forwarded, so that a restart or another node
   * repeats it. A decision that could not be recorded is not carried out.
   */
  async #settle(
    { prompt, placements: before }: OpenPrompt,
    placements: readonly Placement[],
    decided: BlockFact | undefined,
  ): Promise<Recalled> {
    const at = this.#dependencies.clock.now();
    const entries = entriesFor(prompt, { ...(decided ?? NO_BLOCK), at });
    const isKnown = await this.#dependencies.ledger.commit(entries);
    return isKnown ? stateOf(placements) : { placements: before, state: 'degraded_unavailable' };
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

/** The state of a request that carries no block, whatever the ledger knows. */
function stateWithout({ reading, modes }: RecallCall): MemoryState | undefined {
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
