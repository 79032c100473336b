import { type HookTexts, hookTextsIn, proxyBlockAddress } from '../core/hooks/hook-texts.ts';
import { GLOBAL_SPACE } from '../core/request/space.ts';
import { isUnplaced } from '../core/request/space-names.ts';
import { estimateTextTokens } from '../core/bytes/tokens.ts';
import type { MemoryState } from '../core/plan/continuity.ts';
import { type Exchange, groupExchanges, isModelWork } from '../core/conversation/exchanges.ts';
import {
  type BlockFact,
  type EntryOf,
  isRefused,
  keyOf,
  type LedgerEntry,
  type LedgerMiss,
  refusalAddresses,
  refusalEntries,
} from '../core/ledger/entries.ts';
import {
  blockAddresses,
  type BlockItem,
  blockItems,
  type Bond,
  entriesFor,
  humanItems,
  newestAnswered,
  newestPromptIndex,
  NO_BLOCK,
  placedMarks,
  type Placement,
  replayBlocks,
  resultItems,
  roomForBlock,
  roomForLook,
  roomLeft,
  SERVICE_BLOCK_MS,
  spokenEntries,
  unansweredItem,
  firstUnsentItem,
  BRIEF_TOKENS_MAX,
  QUESTION_CHARS_MAX,
  limitsOfBlock,
} from '../core/recall/injections.ts';
import type { Answer } from '../core/dialects/dialect-answer.ts';
import type { BatchMoment } from '../core/shortening/elisions.ts';
import { isOmitted, type Leaving } from '../core/shortening/omissions.ts';
import type { Item } from '../core/conversation/view.ts';
import { contentForm } from '../core/plan/item-edits.ts';
import type { Modes } from '../core/http/modes.ts';
import { markBlock } from '../core/recall/own-blocks.ts';
import { offersTools } from '../core/request/identity.ts';
import { quietShareAt } from '../core/recall/running-share.ts';
import type { RecallBlock } from '../core/recall/recall-block.ts';
import {
  type Action,
  actionOf,
  hasActed,
  newestResult,
  wordsOf,
} from '../core/recall/second-look.ts';
import type { HandlerSettings } from '../core/settings/settings.ts';
import type { AgentFacts, RecallAnswer, RecallQuestion, RequestMemory } from '../ports/memory.ts';
import { BOUND_MS } from './bonds.ts';
import type { KnownBlock, KnownBlocks, Reading } from './conversations.ts';
import { type Deadline, type Slices, withinDeadline } from './deadline.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { QuotedAnswer, Texts } from '../ports/texts.ts';
import type { Clock } from '../ports/clock.ts';
import { holdsNow } from '../core/memory/outgrown.ts';
import type { Code, Workplace } from '../ports/provenance.ts';
import type { CleanExchange } from '../core/memory/captures.ts';
import { Pace, type Steps } from '../core/bytes/steps.ts';
import { MemoryError, type MemoryFailure } from '../core/errors.ts';

/** The recalled texts (blocks) that a request carries, and the memory state that the client sees. */
export interface Recalled {
  readonly placements: readonly Placement[];
  readonly state: MemoryState;
  /** True if the newest thinking was made without svc, so that no block may stand in front of it. */
  readonly isForeign?: boolean;
  /** The generation of the memory's space when it answered; undefined if it was not asked, or has none. */
  readonly generation?: string | undefined;
}

// Most characters of each text around a prompt, and the number of earlier prompts; see aroundPrompt.
const AROUND_CHARS = 1_500;
const PROMPTS_AROUND = 2;

// Deadline for the ledger after the answer, in milliseconds. The ledger usually has the entries in memory, because this
// process wrote them for the same request.
const PIN_MS = 1_000;

const NOTHING: readonly Placement[] = [];
const BY_HOOK = 'recalled_by_hook';
const UNREADABLE: Recalled = { placements: NOTHING, state: 'degraded_unavailable' };
const DENIED = { state: 'degraded_denied' } as const;
/** The members with which #askLedger() says that its result counts only for this request. */
const PASSING = { isLasting: false, mayLook: false } as const;
export const NOTHING_LEAVES: Leaving = { gone: [], going: [] };

export interface RecallCall {
  readonly reading: Reading;
  readonly modes: Modes;
  readonly settings: HandlerSettings;
  /** What may not change, because thinking depends on it (see Bonds.look); undefined if the ledger was not readable. */
  readonly bond: Bond | undefined;
  readonly deadline: Deadline;
}

interface ReadCall extends RecallCall {
  readonly bond: Bond;
  /** The state that says why no new block may be placed; undefined if one may be. */
  readonly silence: MemoryState | undefined;
  /** Returns the exchanges that are left out of the request. */
  readonly leaving: () => Promise<Leaving>;
}

/**
 * The blocks of earlier requests. 'open': svc must still decide about the newest prompt. 'look': it must decide about a
 * second look. 'settled': nothing is left to decide.
 */
export type Replayed = Pick<BatchMoment, 'firstUnsent'> &
  (
    | { readonly kind: 'settled'; readonly recalled: Recalled }
    | ({ readonly kind: 'open' } & Open)
    | ({ readonly kind: 'look' } & Look)
  );

interface Open {
  readonly call: ReadCall;
  readonly reading: Reading;
  /** The item that gets a block, if there is one: the newest prompt, or for a second look the newest tool result. */
  readonly carrier: BlockItem;
  readonly placements: readonly Placement[];
  readonly leaving: Leaving;
  readonly isForeign: boolean;
  /** The ledger's generation before the memory was asked. */
  readonly generation: number;
  /** True if the provider refused the earlier decision about the prompt, so that svc decides again; see BlockFact. */
  readonly isReopened?: boolean;
}

/**
 * The facts for a second look: svc asks the memory once more after the model has called tools, at most once per prompt.
 */
interface Look extends Open {
  readonly action: Action;
  /** The prompt's text. */
  readonly humanText: string;
}

/** Repeats the blocks of earlier requests, recalls for a new prompt, and records the decisions. */
export class Recaller {
  readonly #dependencies: ProxyDependencies;
  readonly #guard: RecallGuard;
  readonly #held: HeldDigests;
  readonly #slices: Slices;

  constructor(dependencies: ProxyDependencies, slices: Slices) {
    this.#dependencies = dependencies;
    this.#slices = slices;
    this.#held = new HeldDigests(dependencies.texts);
    this.#guard = new RecallGuard(dependencies.memory, dependencies.clock);
  }

  /**
   * Finds the blocks of earlier requests of this conversation. `leaving`: returns the exchanges that are left out of
   * the request.
   */
  async replay(call: RecallCall, leaving: () => Promise<Leaving>): Promise<Replayed> {
    const { reading, bond } = call;
    const silence = silenceOf(call);
    if (!mayRepeat(call, silence)) {
      return settled({ placements: NOTHING, state: silence ?? 'skipped_unsupported' });
    }
    if (bond === undefined) return settled(UNREADABLE);
    const generation = this.#dependencies.ledger.generation();
    const loop = silence === undefined ? loopOf(reading) : undefined;
    const known = loop === undefined ? undefined : reading.state.blocks.get(loop);
    const asked = { ...call, reading, bond, silence, leaving };
    const kept = known?.generation === generation ? atItems(reading, known) : undefined;
    if (known !== undefined && kept !== undefined) {
      const mayLook = known.mayLook && hasActed(reading.view, newestPromptIndex(reading.view));
      const looks = mayLook ? await this.#looksOf(asked) : 'none';
      if (looks !== 'some' && isSame(kept, asked, known)) {
        const before = { placements: kept, leaving: NOTHING_LEAVES, isForeign: false, generation };
        const open = { call: asked, reading, ...before };
        const look = mayLook && looks === 'none' ? this.#lookIn(open) : undefined;
        return look ?? settled(stateOf(kept));
      }
    }
    const { replayed, isLasting, mayLook } = await this.#askLedger(asked, generation);
    if (loop !== undefined && isLasting && replayed.kind !== 'open') {
      const { placements } = replayed.kind === 'look' ? replayed : replayed.recalled;
      remember({ ...asked, generation, mayLook }, placements);
    }
    return replayed;
  }

  /** Recalls for the newest prompt, or takes a second look, if `replayed` leaves that open. */
  async recall(call: RecallCall, replayed: Replayed): Promise<Recalled> {
    const { reading } = call;
    if (reading.identity.kind === 'main') {
      reading.state.newest = reading.view.items.at(-1)?.fingerprint;
    }
    const silence = silenceOf(call);
    const isHooked = silence === undefined && this.#hooksIn(reading).isAtPrompt;
    if (!isHooked && replayed.kind === 'open') return this.#recallFor(call, replayed);
    if (!isHooked && replayed.kind === 'look') return this.#lookAgain(call, replayed);
    // If svc's hooks have put a block into the transcript, they take second looks too, and the proxy adds no block.
    const recalled =
      replayed.kind === 'settled'
        ? replayed.recalled
        : await this.#settle(replayed, replayed.placements, undefined);
    return isHooked && recalled.state === 'empty' ? { ...recalled, state: BY_HOOK } : recalled;
  }

  #hooksIn({ view, identity }: Reading): HookTexts {
    return hookTextsIn(view, identity.client, this.#dependencies.hookKey);
  }

  async #recallFor(call: RecallCall, open: Open): Promise<Recalled> {
    const { reading, carrier, placements } = open;
    const tokensMax = roomForBlock(placements, call.settings.recalledTokensMax);
    if (tokensMax === undefined) return this.#settle(open, placements, undefined);
    const agent = this.#agentFactsOf(reading, call.settings);
    const { humanText } = carrier.item;
    const question = await this.#question(open, { humanText, tokensMax, agent });
    return this.#ask(call, open, question);
  }

  /**
   * Takes a second look, and records every outcome: the tool result is sent now, so what stands beside it must never
   * change.
   */
  async #lookAgain(call: RecallCall, look: Look): Promise<Recalled> {
    const { reading, placements, action, humanText } = look;
    const { generation } = look;
    const tokensMax = roomForLook(placements, call.settings.recalledTokensMax);
    let recalled: Recalled = { ...stateOf(placements), isForeign: look.isForeign };
    if (tokensMax === undefined) await this.#settle(look, placements, undefined);
    else {
      const agent = this.#agentFactsOf(reading, call.settings);
      const isHosted = this.#dependencies.memory.supports.kind === 'hosted';
      const asked =
        isHosted || agent === undefined
          ? { humanText: wordsOf(action), tokensMax, agent: undefined }
          : { humanText, tokensMax, agent: { ...agent, briefTokensMax: 0, action } };
      const question = await this.#question(look, asked);
      // A memory service gets no text of the session but the words of the action: no prompt, no answer, no facts.
      const told = isHosted ? { ...question, assistantText: '' } : question;
      recalled = await this.#ask(call, look, told);
      if (recalled.state.startsWith('degraded_')) await this.#settle(look, placements, undefined);
    }
    remember({ ...look.call, generation, mayLook: false }, recalled.placements);
    return recalled;
  }

  async #ask(call: RecallCall, open: Open | Look, question: RecallQuestion): Promise<Recalled> {
    const { reading } = open;
    const told = await this.#guard.recall(question, call.deadline.msLeft);
    const { state } = told;
    const found =
      'action' in open
        ? this.#dependencies.texts.aboutAction(told.answer, open.action, open.humanText)
        : told.answer;
    const answer = await checkAnswer(found, {
      workplace: reading.workplace,
      code: this.#dependencies.code?.reader,
      // Half of the time, so that a disk that does not answer leaves time for the proofs.
      withinMs: call.deadline.msLeft / 2,
    });
    const recalled = await this.#place(open, question.tokensMax, { answer, state });
    return { ...recalled, generation: found.generation };
  }

  /** Writes the block that quotes the memory's answer, and records it; places and records none if the recall failed. */
  async #place(
    open: Open | Look,
    tokensMax: number,
    { answer, state }: { readonly answer: QuotedAnswer; readonly state: MemoryState },
  ): Promise<Recalled> {
    const { reading, carrier, placements, generation, leaving } = open;
    // If the generation has changed during the recall, mostly because texts were forgotten, a block may quote such a
    // text.
    const now = this.#dependencies.ledger.generation();
    if (now !== generation) {
      const { replayed } = await this.#askLedger(open.call, now);
      const { placements: left } = replayed.kind === 'settled' ? replayed.recalled : replayed;
      return { placements: left, state: 'degraded_unavailable' };
    }
    // A failed recall is not recorded here, so the next request of this prompt asks again. Only #lookAgain() records
    // the failure of a second look.
    if (state !== 'recalled' && state !== 'empty') return { placements, state };
    const byHooks = this.#hooksIn(reading).placed.map((one) => one.block);
    const told = [...toldBy(placements, leaving), ...byHooks];
    const left = roomLeft(placements, open.call.settings.recalledTokensMax);
    const limits = limitsOfBlock({ tokensMax, left, isLook: 'action' in open });
    const news = this.#dependencies.texts.withoutStated(answer, reading.view);
    const written = this.#dependencies.texts.writeBlock(news, limits, told);
    const block = marked(written, this.#dependencies.blockKey);
    const form = carrier.isResult ? 'text' : contentForm(reading.view, carrier.item);
    if (block.text === '' || form === undefined) {
      return this.#settle(open, placements, undefined);
    }
    const { space } = reading.place;
    const fact = { block: block.text, form, space, quoted: written.quoted };
    const { tokens } = block;
    const { item } = carrier;
    const placement = { item, block: block.text, form, space, tokens, isNew: true } as const;
    return this.#settle(open, [...placements, placement], fact);
  }

  /**
   * Records the recalled texts (blocks) of a conversation's first prompts under its first answer. Call it before the
   * client has the answer's last byte, because the next request may come from a fork: a conversation that continues
   * this one under another id.
   */
  async answered(
    { view, place }: Reading,
    { text, callsTools }: Answer,
    placements: readonly Placement[],
  ): Promise<void> {
    // The first answer distinguishes conversations, so later answers need no entry. Nor does an answer with tool calls,
    // whose ids are unique.
    if (callsTools || text.trim() === '' || view.items.some(isModelWork)) return;
    const humans = humanItems(view, place);
    const asked = humans.map(({ own }) => own);
    const found = await this.#dependencies.ledger.find(asked, PIN_MS);
    await this.#dependencies.ledger.record(spokenEntries(humans, found, { text, placements }));
  }

  /**
   * Takes refused blocks back. `isAtFault`: the provider accepted the request without them. Then no later request of
   * this conversation has them, or gets a new block for an hour. Otherwise svc decides about the prompt again, but
   * not about a second look.
   */
  async refused(
    { view, place, state }: Reading,
    placements: readonly Placement[],
    isAtFault: boolean,
  ): Promise<void> {
    if (placements.length === 0) return;
    state.blocks.clear();
    const at = this.#dependencies.clock.now();
    const carriers = blockItems(view, place);
    const entries = placements.flatMap(({ item, isNew }): LedgerEntry[] => {
      const carrier = carriers.find((one) => one.item === item);
      if (carrier === undefined) return [];
      const nothing = { ...NO_BLOCK, at, ...(!isAtFault && { isOpen: true as const }) };
      const own = { ...carrier.own, ...nothing };
      return isNew === true ? [own, { ...carrier.shared, ...nothing, replaces: true }] : [own];
    });
    const refusals = isAtFault ? refusalEntries(refusalAddresses(view, place, 'recall'), at) : [];
    await this.#dependencies.ledger.record([...entries, ...refusals]);
  }

  /**
   * Finds the blocks of earlier requests in the ledger. `isLasting`: the result counts for the later requests of this
   * prompt too. `mayLook`: one of them may take a second look.
   */
  async #askLedger(
    call: ReadCall,
    generation: number,
  ): Promise<{
    readonly replayed: Replayed;
    readonly isLasting: boolean;
    readonly mayLook: boolean;
  }> {
    const { reading, deadline, bond, silence } = call;
    const { view, place } = reading;
    const { ledger, memory } = this.#dependencies;
    const carriers = blockItems(view, place);
    const refusals = refusalAddresses(view, place, 'recall');
    const asked = [...refusals, ...blockAddresses(carriers, bond.placed)];
    const found = await ledger.find(asked, bond.isBound ? BOUND_MS : deadline.msLeft);
    if (found.missing !== undefined && bond.isBound) {
      return { replayed: settled(UNREADABLE), ...PASSING };
    }
    const now = this.#dependencies.clock.now();
    const { isStated } = place;
    const unanswered = silence === undefined ? unansweredItem(view) : undefined;
    const leaving = await call.leaving();
    // The ledger's generation has changed, mostly because texts were forgotten. The found blocks may quote such a text.
    const newest = ledger.generation();
    if (newest !== generation) {
      if (bond.isBound || deadline.msLeft > 0) return this.#askLedger(call, newest);
      return { replayed: settled(UNREADABLE), ...PASSING };
    }
    const isGone = (item: Item): boolean => isOmitted(item, leaving.gone);
    const blockAgeMaxMs = memory.supports.kind === 'hosted' ? SERVICE_BLOCK_MS : undefined;
    const mayRead = (space: string): boolean =>
      memory.supports.read && this.#dependencies.mayRead?.(space) !== false;
    const facts = { unanswered, isStated, now, bond, mayRead, blockAgeMaxMs, isGone };
    const replay = replayBlocks(carriers, found, facts);
    const { placements, isSettled, isWhole, pins, isForeign } = replay;
    const prompt = isSettled ? undefined : carriers.find(({ item }) => item === unanswered);
    if (found.missing !== undefined && !(isWhole && prompt === undefined)) {
      // Some earlier blocks are unknown. A new block would change the cached prefix now, and the missing ones would
      // change it again in a later request.
      const recalled = { placements, state: stateOfMiss(found.missing) };
      return { replayed: settled(recalled), ...PASSING };
    }
    const isKnown = found.missing === undefined;
    // Records the repeated blocks for the hooks of this session too.
    const carrierOf = new Map(carriers.map((carrier) => [carrier.own.fingerprint, carrier]));
    const pinsForHooks = pins.flatMap((pin) => {
      const carrier = pin.kind === 'own-block' ? carrierOf.get(pin.fingerprint) : undefined;
      return carrier === undefined ? [] : this.#forHooks(reading, carrier, pin);
    });
    if (isKnown && silence === undefined) await ledger.commit([...pins, ...pinsForHooks]);
    const marks = { isForeign, ...(replay.isDenied && DENIED) };
    if (silence !== undefined) {
      const recalled = { placements, state: silence, ...marks };
      return { replayed: settled(recalled), ...PASSING };
    }
    const humans = carriers.filter(({ isResult }) => !isResult);
    const firstUnsent = isKnown ? firstUnsentItem(humans, found) : undefined;
    const isOff = reading.hasProviderState || isRefused(refusals, found, now) || replay.isDenied;
    const open = { call, reading, placements, leaving, generation };
    if (prompt === undefined) {
      const from = newestPromptIndex(view);
      const hasLooked = carriers.some(
        ({ isResult, index, own, shared }) =>
          isResult && index > from && (found.has(own) || found.has(shared)),
      );
      const mayLook = isKnown && !isOff && !hasLooked && this.#looks(call);
      const look = mayLook ? this.#lookIn({ ...open, isForeign }) : undefined;
      const recalled = { ...stateOf(placements), ...marks };
      const replayed = look ?? settled(recalled);
      return { replayed: { ...replayed, firstUnsent }, isLasting: !isForeign, mayLook };
    }
    if (isOff) {
      const state = placements.length === 0 ? 'skipped_unsupported' : 'recalled';
      return { replayed: settled({ placements, state, ...marks }), ...PASSING };
    }
    const isReopened = found.get(prompt.shared)?.isOpen === true;
    const asPrompt = { carrier: prompt, isForeign, firstUnsent, isReopened };
    return { replayed: { kind: 'open', ...open, ...asPrompt }, ...PASSING };
  }

  /** Returns the second look of this request; undefined if it takes none. */
  #lookIn(open: Omit<Open, 'carrier'>): ({ readonly kind: 'look' } & Look) | undefined {
    const { reading } = open;
    const { view, place, state } = reading;
    // This request was sent before. svc decided about a second look then.
    if (state.newest === view.items.at(-1)?.fingerprint) return undefined;
    const prompt = newestPromptIndex(view);
    const at = newestResult(view);
    const humanText = view.items[prompt]?.humanText;
    const action = at === undefined ? undefined : actionOf(view, prompt);
    if (at === undefined || action === undefined || humanText === undefined) return undefined;
    const [carrier] = resultItems(view, place, at);
    if (carrier === undefined) return undefined;
    return { kind: 'look', ...open, carrier, action, humanText };
  }

  /** Says whether second looks are switched on and the client is an agent. */
  #looks({ reading, settings }: ReadCall): boolean {
    const { secondLook } = settings;
    const { kind } = this.#dependencies.memory.supports;
    const isWanted = kind === 'hosted' ? secondLook === 'hosted' : secondLook !== 'off';
    return isWanted && isAgent(reading);
  }

  /**
   * Says whether any process has taken a second look in this tool loop; 'unknown' without the ledger's whole answer.
   */
  async #looksOf({ reading, deadline }: ReadCall): Promise<'none' | 'some' | 'unknown'> {
    const { view, place } = reading;
    const results = resultItems(view, place, newestPromptIndex(view) + 1);
    const asked = blockAddresses(results);
    const found = await this.#dependencies.ledger.find(asked, deadline.msLeft);
    if (asked.some((address) => found.has(address))) return 'some';
    return found.missing === undefined ? 'none' : 'unknown';
  }

  /**
   * Records which recalled text (block) an item gets. Call it before the request is forwarded, so that every later
   * request repeats the decision. If it cannot be recorded, the item gets no block. `decided`: undefined for no block.
   */
  async #settle(
    open: Open | Look,
    placements: readonly Placement[],
    decided: BlockFact | undefined,
  ): Promise<Recalled> {
    const { carrier, placements: before, isForeign, isReopened } = open;
    const at = this.#dependencies.clock.now();
    const entries = entriesFor(carrier, { ...(decided ?? NO_BLOCK), at }, isReopened);
    const forHooks =
      decided === undefined ? [] : this.#forHooks(open.reading, carrier, { ...decided, at });
    const isKnown = await this.#dependencies.ledger.commit([...entries, ...forHooks]);
    if (!isKnown) return { placements: before, state: 'degraded_unavailable', isForeign };
    return { ...stateOf(placements), isForeign };
  }

  /**
   * Returns entries for svc's hooks, which store answers and must not store what an answer repeats of a block; none for
   * an empty block, or if no hook has run yet.
   */
  #forHooks(
    { view, place }: Reading,
    { item, isResult }: BlockItem,
    fact: BlockFact & { readonly at: number },
  ): readonly EntryOf<'own-block'>[] {
    const prompt = view.items[item.soFar.humans?.index ?? -1];
    const isSilent = fact.block === '' || prompt === undefined;
    if (isSilent || this.#dependencies.hookKey?.() === undefined) return [];
    const { block, form, space, quoted, at } = fact;
    const address = proxyBlockAddress(place, prompt.humanText, isResult ? 'look' : 'prompt');
    return [{ ...address, block, form, space, ...(quoted && { quoted }), at }];
  }

  async #question(
    { reading, placements, leaving }: Open,
    { humanText, tokensMax, agent }: Asked,
  ): Promise<RecallQuestion> {
    const blocks = toldBy(placements, leaving);
    const left = digestsOf(leaving);
    const { items } = reading.view;
    const exchanges = groupExchanges(items);
    const previous = exchanges.findLast(({ assistantText }) => assistantText !== '');
    const humans = exchanges.map((one) => one.humanText).filter((text) => text !== '');
    const { texts } = this.#dependencies;
    const held = await this.#slices.run(this.#held.steps(items, exchanges, blocks));
    return {
      space: reading.place.space,
      olderSpaces: reading.olderSpaces,
      humanText: texts.questionText(humanText, QUESTION_CHARS_MAX),
      assistantText:
        agent === undefined
          ? texts.questionText(previous?.assistantText ?? '', QUESTION_CHARS_MAX)
          : aroundPrompt(texts, previous?.assistantText ?? '', humans.slice(0, -1)),
      excludeDigests: held.filter((digest) => !left.has(digest)),
      tokensMax,
      now: this.#dependencies.clock.now(),
      ...(agent !== undefined && { agent }),
    };
  }

  /** Returns the facts about an agent; undefined for a chat (see isAgent). */
  #agentFactsOf(
    reading: Reading,
    { sessionBrief, recallQuietPercent }: HandlerSettings,
  ): AgentFacts | undefined {
    if (!isAgent(reading)) return undefined;
    const { view, place, branch = '' } = reading;
    const { texts } = this.#dependencies;
    const briefTokensMax = sessionBrief && texts.isOpening(view) ? BRIEF_TOKENS_MAX : 0;
    const { conversation } = place;
    const files = texts.filesOfSession(view);
    const prompts = view.items.at(-1)?.soFar.humanCount ?? 0;
    const quietShare = quietShareAt(recallQuietPercent / 100, Math.max(0, prompts - 1));
    return { conversation, branch, files, quietShare, briefTokensMax };
  }
}

/**
 * Returns the text around a prompt: the end of the last answer, and the last prompts. It shows what a short prompt is
 * about.
 */
export function aroundPrompt(
  { questionText }: Pick<ProxyDependencies['texts'], 'questionText'>,
  answer: string,
  prompts: readonly string[],
): string {
  const before = prompts.slice(-PROMPTS_AROUND).map((text) => questionText(text, AROUND_CHARS));
  return [questionText(answer.slice(-AROUND_CHARS), AROUND_CHARS), ...before].join('\n');
}

/**
 * Says whether the client is an agent. A known client is one even if the request lists no tools: Codex may list them in
 * an item.
 */
function isAgent({ identity, view }: Reading): boolean {
  return identity.client !== 'unknown' || offersTools(view);
}

/** Returns a key of the tool loop that the request continues; undefined outside a tool loop. */
function loopOf({ view, place }: Reading): string | undefined {
  const answered = newestAnswered(view, place);
  const isLoop = answered !== undefined && unansweredItem(view) === undefined;
  return isLoop ? keyOf(answered) : undefined;
}

/**
 * Keeps the blocks of a request in a tool loop, so that later requests of the loop need not ask the ledger for them.
 */
function remember(
  {
    reading,
    bond,
    generation,
    mayLook,
  }: Pick<ReadCall, 'reading' | 'bond'> & Pick<KnownBlocks, 'generation' | 'mayLook'>,
  placements: readonly Placement[],
): void {
  const loop = loopOf(reading);
  if (loop === undefined) return;
  const blocks = placements.map(({ item, block, form, space, tokens }): KnownBlock => {
    const index = reading.view.items.indexOf(item);
    return { index, fingerprint: item.fingerprint, block, form, space, tokens };
  });
  const isForeign = bond.placed === 'foreign';
  reading.state.blocks.set(loop, { generation, blocks, isForeign, mayLook });
}

/**
 * Returns the remembered blocks at their items; undefined if the client has changed its history in front of one. Then
 * the ledger decides which blocks stay.
 */
function atItems({ view }: Reading, { blocks }: KnownBlocks): readonly Placement[] | undefined {
  const placements = blocks.flatMap(({ index, fingerprint, ...block }): Placement[] => {
    const item = view.items[index];
    return item?.fingerprint === fingerprint ? [{ ...block, item }] : [];
  });
  return placements.length === blocks.length ? placements : undefined;
}

interface Asked {
  readonly humanText: string;
  readonly agent: AgentFacts | undefined;
  readonly tokensMax: number;
}

/** Returns the blocks that the request keeps: not those of exchanges that it is the first to leave out. */
function toldBy(placements: readonly Placement[], { going }: Leaving): readonly string[] {
  return placements.flatMap(({ item, block }) => (isOmitted(item, going) ? [] : [block]));
}

/** Returns the digests of the texts that are left out. Recall may quote them again. */
function digestsOf({ gone, going }: Leaving): ReadonlySet<string> {
  return new Set([...gone, ...going].flatMap(({ texts }) => texts.map(({ digest }) => digest)));
}

/** Returns the state of modes in which no block is placed; undefined for the others. */
export function silenceOfModes({ memory, reads }: Modes): MemoryState | undefined {
  if (memory === 'off') return 'off';
  return reads ? undefined : 'write_only';
}

/** Returns the state that says why no new block is placed in this request; undefined if one may be. */
function silenceOf({ reading, modes }: RecallCall): MemoryState | undefined {
  const silence = silenceOfModes(modes);
  if (silence !== undefined) return silence;
  if (reading.identity.kind !== 'main') return 'skipped_side_call';
  // Shadow mode forwards the client's own bytes, so it places no block.
  const isShadow = modes.compression === 'shadow';
  const isElsewhere = reading.hasProviderHistory || isUnplaced(reading.place.space);
  return isShadow || isElsewhere ? 'skipped_unsupported' : undefined;
}

/**
 * Says whether this request carries the blocks of earlier requests again. No request does in shadow mode, or if the
 * provider stores the history. Otherwise, in a conversation that is or may be bound (see Bond), every request carries
 * them, because the provider checks the prefix in requests of every kind. In other conversations only side calls do,
 * and requests that may get a new block.
 */
function mayRepeat(
  { reading, modes, bond }: RecallCall,
  silence: MemoryState | undefined,
): boolean {
  if (reading.hasProviderHistory) return false;
  if (modes.compression === 'shadow') return false;
  const isBound = bond === undefined || bond.isBound;
  return isBound || silence === undefined || silence === 'skipped_side_call';
}

/** Says whether these blocks are the ones that stood in front of the newest thinking; true if no thinking is bound. */
function isSame(
  placements: readonly Placement[],
  { reading, bond: { placed, thoughtAt } }: Pick<ReadCall, 'reading' | 'bond'>,
  { isForeign }: KnownBlocks,
): boolean {
  if (placed === undefined) return true;
  const end = reading.view.items[thoughtAt]?.start ?? 0;
  const before = placements.filter(({ item }) => item.start < end);
  if (placed === 'foreign') return isForeign && before.length === 0;
  const marks = placedMarks(before);
  return (
    marks.length === placed.length &&
    marks.every(({ item, block }, at) => placed[at]?.item === item && placed[at]?.block === block)
  );
}

/** Adds svc's mark to a block, and estimates the tokens of the marked block. */
export function marked({ text, tokens }: RecallBlock, key: string): RecallBlock {
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

interface Answered {
  readonly answer: RecallAnswer;
  readonly state: MemoryState;
}

const NO_ANSWER: RecallAnswer = { passages: [] };

// After three failures in a row svc does not ask the memory for two seconds.
const FAILURES_MAX = 3;
const PAUSE_MS = 2_000;

const STATE_OF_FAILURE: Readonly<Record<MemoryFailure, MemoryState>> = {
  timeout: 'degraded_timeout',
  unavailable: 'degraded_unavailable',
  denied: 'degraded_denied',
  rate_limited: 'degraded_rate_limited',
  invalid: 'degraded_invalid',
};

/**
 * Asks the memory under a deadline. After repeated failures it does not ask for a while, so that a memory that does not
 * answer delays few requests. Every failure becomes a state.
 */
export class RecallGuard {
  readonly #memory: RequestMemory;
  readonly #clock: Clock;
  #failures = 0;
  #pausedUntil = 0;
  #pausedState: MemoryState = 'degraded_unavailable';

  constructor(memory: RequestMemory, clock: Clock) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /** Asks the memory. Never rejects. Resolves within `deadlineMs`. */
  async recall(question: RecallQuestion, deadlineMs: number): Promise<Answered> {
    const isPaused = this.#failures >= FAILURES_MAX && this.#clock.monotonic() < this.#pausedUntil;
    if (isPaused) return { answer: NO_ANSWER, state: this.#pausedState };
    try {
      const answer = await withinDeadline(deadlineMs, (signal) =>
        this.#memory.recall(question, signal),
      );
      this.#failures = 0;
      return { answer, state: isEmpty(answer) ? 'empty' : 'recalled' };
    } catch (error) {
      return { answer: NO_ANSWER, state: this.#failed(error) };
    }
  }

  #failed(error: unknown): MemoryState {
    this.#failures += 1;
    // After the pause a request asks again. If it fails too, a new pause begins.
    if (this.#failures >= FAILURES_MAX) this.#pausedUntil = this.#clock.monotonic() + PAUSE_MS;
    const reason = error instanceof MemoryError ? error.reason : 'unavailable';
    // The state during the pause. After a timeout or an invalid answer the memory counts as unavailable.
    const isLasting = reason === 'denied' || reason === 'rate_limited';
    this.#pausedState = STATE_OF_FAILURE[isLasting ? reason : 'unavailable'];
    return STATE_OF_FAILURE[reason];
  }
}

function isEmpty({ passages, exchanges = [], sessions = [] }: RecallAnswer): boolean {
  return passages.length + exchanges.length + sessions.length === 0;
}

/** Bound on the files that are compared, those of the best exchange first. Other files mark no exchange. */
const CHECKED_MAX = 40;

interface Checking {
  readonly workplace: Workplace | undefined;
  readonly code: Code | undefined;
  /** Deadline of the comparison, in milliseconds. Reading 20 files takes half a millisecond. */
  readonly withinMs: number;
}

/** Marks the exchanges of which a compared file (see CHECKED_MAX) has changed since they were stored. Never rejects. */
export async function checkAnswer(
  answer: RecallAnswer,
  { workplace, code, withinMs }: Checking,
): Promise<QuotedAnswer> {
  const { exchanges = [] } = answer;
  if (workplace === undefined || code === undefined) return answer;
  const { root } = workplace;
  const asked = exchanges
    .flatMap((exchange) => (exchange.provenance?.files ?? []).map((file) => ({ exchange, file })))
    // The memories of the global space may be of other projects, whose files are not in this folder.
    .filter(({ exchange }) => exchange.space !== GLOBAL_SPACE)
    .slice(0, CHECKED_MAX);
  if (asked.length === 0) return answer;
  const files = asked.map(({ file }) => file);
  const verdicts = await code.compare(root, files, withinMs);
  const checked = exchanges.map((one) => {
    const own = verdicts.filter((_, at) => asked[at]?.exchange === one);
    const isOutgrown = holdsNow(own, one.provenance?.root === root) === 'outgrown';
    return isOutgrown ? { ...one, isOutgrown: true as const } : one;
  });
  return { ...answer, exchanges: checked };
}

// Time to look for secrets in a text, as a multiple of the time to read it; see Pace.
export const MASKING = 10;

/**
 * Computes the digests of the texts that a request has, which recall must not quote. It caches them by exchange: for a
 * session of 4 MB the first computation takes 60 ms, and every recall needs the result.
 */
export class HeldDigests {
  // Cached by the last item of an exchange. The next request has the same item object if nothing up to it has changed.
  readonly #clean = new WeakMap<Item, CleanExchange>();
  readonly #held = new WeakMap<Item, Held>();
  readonly #texts: Pick<Texts, 'cleanExchange' | 'heldDigests'>;

  constructor(texts: Pick<Texts, 'cleanExchange' | 'heldDigests'>) {
    this.#texts = texts;
  }

  /** Computes the digests in steps. `blocks`: the recalled blocks of the request. */
  *steps(
    items: readonly Item[],
    exchanges: readonly Exchange[],
    blocks: readonly string[],
  ): Steps<readonly string[]> {
    const heard = blocks.join('\0');
    const pace = new Pace();
    const all: string[] = [];
    for (const exchange of exchanges) {
      const last = items[exchange.end - 1];
      if (last === undefined) continue;
      const known = this.#held.get(last);
      if (known?.heard === heard) {
        all.push(...known.digests);
        continue;
      }
      const digests = this.#texts.heldDigests(this.#cleanOf(exchange, last), blocks);
      this.#held.set(last, { heard, digests });
      all.push(...digests);
      if (pace.isDue(MASKING * (exchange.humanText.length + exchange.assistantText.length))) yield;
    }
    return all;
  }

  #cleanOf(exchange: Exchange, last: Item): CleanExchange {
    const known = this.#clean.get(last);
    if (known !== undefined) return known;
    const clean = this.#texts.cleanExchange(exchange);
    this.#clean.set(last, clean);
    return clean;
  }
}

interface Held {
  readonly heard: string;
  readonly digests: readonly string[];
}
