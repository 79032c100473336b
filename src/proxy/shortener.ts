import type { Usage } from '../core/dialects/answer.ts';
import {
  keyOf,
  type ElisionKind,
  type LedgerAddress,
  type LeftOut,
} from '../core/ledger/entries.ts';
import { FoundEntries } from '../core/ledger/found-entries.ts';
import { isRefused } from '../core/ledger/refusals.ts';
import {
  type Batch,
  type BatchMoment,
  elisionEntries,
  elisionMark,
  type ElisionPlace,
  mayRepeat,
  wholeEntries,
} from '../core/shortening/elisions.ts';
import { groupExchanges } from '../core/conversation/exchanges.ts';
import type { Verdict } from '../core/shortening/meter.ts';
import type { Modes } from '../core/http/modes.ts';
import type { Leaving } from '../core/shortening/omissions.ts';
import { obstacleOf, type Outcome } from '../core/plan/continuity.ts';
import type { Plan, Shortening } from '../core/plan/plan.ts';
import { countRereads, type Rereads } from '../core/shortening/rereads.ts';
import type { ProxySettings } from '../core/settings/settings.ts';
import {
  decide,
  isShort,
  readFacts,
  recallObstacle,
  type Removal,
  settle,
  type Settled,
} from '../core/shortening/decide.ts';
import { replacementsOf, type ShorteningFacts } from '../core/shortening/shortening.ts';
import { type Fill, fillOf, isHalfFull } from '../core/shortening/window.ts';
import type { ThreadTime } from './background-pace.ts';
import type { Deadline } from './deadline.ts';
import { BatchLookup } from './batch-lookup.ts';
import { OutputKeeper } from './output-keeper.ts';
import type { ProxyDependencies } from './dependencies.ts';
import { ProviderCounts } from './provider-counts.ts';
import { PossessionCheck, type Proof, provenUnasked, textsOf } from './possession.ts';
import { ShorteningRefusals } from './refusal-watch.ts';
import { ReadItems } from './read-items.ts';
import type { Slices } from './slices.ts';
import type { Reading } from './read-request.ts';
import type { Recalled } from './recall.ts';
import { pricesOf, windowOf } from './window-facts.ts';

/**
 * Collects the facts for shortening a request: what was left out before, what the memory holds and
 * proves now, whether the cache is cold. The decisions are core/shortening/decide.ts's.
 */

// Counting from 0: the last two are always kept.
const EXCHANGES_TO_OMIT = 2;

/** The earlier batches of a conversation, from the ledger. */
type Batches = readonly LeftOut[];
const NO_BATCHES: Batches = [];

const NOTHING_FOUND = new FoundEntries([]);

export interface ShorteningCall {
  readonly reading: Reading;
  readonly modes: Modes;
  readonly settings: ProxySettings;
  readonly deadline: Deadline;
  readonly isCacheCold: boolean;
  /** The meter's verdict: whether this conversation was dearer than direct. */
  readonly verdict: Verdict;
}

/** `firstUnsent`: as firstUnsentItem() says. */
type SettleCall = ShorteningCall & Pick<BatchMoment, 'firstUnsent'>;

export interface SettledShortening extends Shortening {
  /** False: the ledger took nothing new, so nothing leaves for the first time. */
  readonly isRecorded: boolean;
}

export type KeepCall = Pick<ShorteningCall, 'reading' | 'modes' | 'settings'>;

/**
 * The texts that a request may leave out, before any proof; or the reason why it leaves out
 * nothing.
 */
export type Candidates = { readonly outcome: Outcome } | Found;

interface Found {
  readonly outcome?: undefined;
  readonly facts: ShorteningFacts;
  readonly removal: Removal;
  /** Begun, unless what is recalled has a say in what leaves. */
  readonly proof: Proof | undefined;
}

/** The exchanges that recall must treat as absent from the request. */
export function leavingOf(candidates: Candidates): Leaving {
  if (candidates.outcome !== undefined) return { gone: [], going: [] };
  return { gone: candidates.removal.omitted, going: candidates.removal.omissions };
}

export class Shortener {
  readonly #dependencies: ProxyDependencies;
  readonly #possession: PossessionCheck;
  readonly #keeper: OutputKeeper;
  readonly #read = new ReadItems();
  readonly #slices: Slices;
  readonly #batches: BatchLookup;
  readonly #counts: ProviderCounts;
  readonly #refusals: ShorteningRefusals;

  constructor(dependencies: ProxyDependencies, slices: Slices) {
    this.#dependencies = dependencies;
    this.#slices = slices;
    this.#batches = new BatchLookup(dependencies.ledger, dependencies.clock);
    this.#counts = new ProviderCounts(dependencies);
    this.#refusals = new ShorteningRefusals(dependencies);
    this.#possession = new PossessionCheck(dependencies.memory, dependencies.clock);
    this.#keeper = new OutputKeeper(dependencies.memory, dependencies.clock, () =>
      dependencies.ledger.generation(),
    );
  }

  /** An estimate of the memory that the known outputs take. */
  get heldBytes(): number {
    return this.#keeper.bytes;
  }

  /** Settles what is left out. `recalled`: the blocks that this request carries. */
  async settle(
    call: SettleCall,
    candidates: Candidates,
    recalled: Recalled,
  ): Promise<SettledShortening> {
    if (candidates.outcome !== undefined) return leavesNothing(candidates.outcome);
    const { facts, removal } = candidates;
    // In shadow nothing is recalled: it measures what could be left out were something.
    const isMeasured = call.modes.compression === 'shadow';
    if (removal.omissions.length === 0 || isMeasured) return this.#settleProven(call, candidates);
    const obstacle = recallObstacle(call.reading.view, recalled);
    if (obstacle === undefined) return this.#settleProven(call, candidates);
    const fewer = { ...facts, omittable: [] };
    const rest = { facts: fewer, removal: decide(fewer), proof: undefined };
    const settled = await this.#settleProven(call, rest);
    const isShorter = settled.elided.length + settled.omitted.length > 0;
    return isShorter ? settled : leavesNothing(obstacle);
  }

  /** Finds what may be left out, and begins its proof. */
  async findCandidates(call: ShorteningCall): Promise<Candidates> {
    const { reading, modes, settings } = call;
    const { view, place } = reading;
    // Also where nothing may be left out: a store that was replaced gets the outputs again.
    this.#keeper.refresh();
    const isOverBudget = view.tokens > settings.inputBudget;
    const outcome = obstacleOf({
      modes,
      isOpen: isOpen(reading),
      isOverBudget,
      hasProviderState: reading.hasProviderState,
      isElisionEnabled: settings.elisionEnabled,
    });
    if (outcome !== undefined) return { outcome };
    if (!isOverBudget && !mayRepeat(view)) return { outcome: 'within_budget' };
    const elision = kindOf(modes);
    const isReal = elision === 'real';
    const elisionPlace = { view, owner: place, elision };
    const mark = elisionMark(elisionPlace);
    const key = mark === undefined ? '' : keyOf(mark);
    const wereKnown = reading.state.batches.has(key);
    const isUnmarked =
      mark === undefined || (!wereKnown && this.#batches.lacks(mark, reading.state));
    if (!isOverBudget && isUnmarked) return { outcome: 'within_budget' };
    const refusals = this.#refusals.addresses(reading);
    const isLarge = isHalfFull(windowOf(reading));
    const measures = isLarge ? this.#counts.addresses(reading) : [];
    const asked = [...refusals, ...(isUnmarked ? [] : [mark]), ...measures];
    const { recorded } = this.#batches;
    const found = await this.#find(asked, call.deadline);
    const hasBatches = wereKnown || (!isUnmarked && found.has(mark));
    if (!isUnmarked && !hasBatches && found.missing === undefined) {
      this.#batches.noteLacks(mark, recorded, reading.state);
    }
    if (!isOverBudget && !hasBatches) return { outcome: 'within_budget' };
    if (isReal && isRefused(refusals, found, this.#dependencies.clock.now())) {
      return { outcome: 'provider_refused' };
    }
    if (found.missing === undefined && refusals.length > 0) this.#refusals.noteNone(reading);
    if (isReal && call.verdict === 'send_all') {
      return { outcome: 'not_worth_it' };
    }
    // Whether something was left out before is not known: to leave out anything else would break the
    // prefix twice.
    if (!hasBatches && found.missing !== undefined) return { outcome: 'unanswered' };
    // At first sight nothing is stored: a long history need not be read before it is forwarded. On
    // a cold cache a batch costs nothing, so svc asks the memory: another process may have stored
    // it.
    const wasSeen = this.#seesAgain(reading);
    const isKnown = hasBatches || call.isCacheCold || wasSeen || this.#keeper.knows(reading);
    if (isReal && !isKnown) return { outcome: outcomeAtFirstSight(call) };
    const measure = isLarge ? this.#counts.newest(reading, measures, found) : undefined;
    const fill = fillOf(windowOf(reading, measure));
    if (hasBatches || fill.hasRoom) {
      const exchanges = groupExchanges(view.items);
      await this.#slices.run(this.#read.candidateSteps(view, exchanges));
    }
    return hasBatches
      ? this.#wantAgain(call, { ...elisionPlace, key }, fill)
      : this.#want(call, NO_BATCHES, fill);
  }

  async #find(asked: readonly LedgerAddress[], { msLeft }: Deadline): Promise<FoundEntries> {
    return asked.length === 0 ? NOTHING_FOUND : this.#dependencies.ledger.find(asked, msLeft);
  }

  /** The candidates of a conversation that has batches. */
  async #wantAgain(
    call: ShorteningCall,
    place: ElisionPlace & { readonly key: string },
    fill: Fill,
  ): Promise<Candidates> {
    // Nearly always the ledger knows what it knew a request ago: the memory is asked along with it.
    const { state } = call.reading;
    const before = state.batches.get(place.key);
    const asking = this.#batches.find(place, before, call.deadline.msLeft);
    const guess = before === undefined ? undefined : this.#want(call, before.batches, fill);
    const { batches, isSame, isSentAgain, missing, known } = await asking;
    if (missing !== undefined) {
      // This conversation's last request knew all of its batches, except those made since.
      if (guess !== undefined && batches.length <= (before?.batches.length ?? 0)) return guess;
      if (batches.length === 0) return { outcome: 'unanswered' };
    } else {
      state.batches.set(place.key, known);
    }
    // The known batches stay out. A new batch must wait until all are known, and for a new item.
    const mustWait = missing !== undefined || isSentAgain;
    if (mustWait) return this.#want({ ...call, verdict: 'no_more' }, batches, fill);
    return guess !== undefined && isSame ? guess : this.#want(call, batches, fill);
  }

  /** The candidates, given these earlier batches. Begins their proof. */
  #want(call: ShorteningCall, known: Batches, fill: Fill): Candidates {
    const isOver = call.verdict === 'no_more' && kindOf(call.modes) === 'real';
    // Nothing is out, and nothing may go any more: a history that fills its window need not be read.
    if (known.length === 0 && !fill.hasRoom) {
      const isCompaction = call.reading.identity.kind === 'compaction';
      return { outcome: isCompaction ? 'compaction' : isOver ? 'not_worth_it' : 'near_window' };
    }
    const facts = this.#factsOf(call, known, { fill, isOver });
    const removal = decide(facts);
    const isCertain = removal.omissions.length === 0;
    return { facts, removal, proof: isCertain ? this.#prove(call, removal) : undefined };
  }

  /** Exchanges old enough to be left out, of a conversation that this process has seen before. */
  #seesAgain({ view, state }: Reading): boolean {
    if ((view.items.at(-1)?.soFar.exchange.number ?? 0) < EXCHANGES_TO_OMIT) return false;
    const hadOld = state.hadOldExchanges;
    state.hadOldExchanges = true;
    return hadOld;
  }

  /** The provider has counted what was forwarded. */
  measured(reading: Reading, plan: Plan, usage: Usage | undefined): void {
    const isMain = reading.identity.kind === 'main';
    if (usage === undefined || !isMain || !isHalfFull(windowOf(reading))) return;
    this.#counts.counted(reading, plan, usage);
  }

  /** Stores the outputs that may be left out later. Never rejects; no request waits for it. */
  async keepAhead({ reading, modes, settings }: KeepCall, thread: ThreadTime): Promise<void> {
    const isWanted = modes.compression === 'deterministic' && modes.writes && modes.reads;
    const isMain = reading.identity.kind === 'main' && !reading.hasProviderState;
    if (!isWanted || !isMain || !settings.elisionEnabled) return;
    await this.#slices.run(this.#read.readSteps(reading.view), thread);
    const outputs = thread.run(() => this.#read.outputsOf(reading.view));
    await this.#keeper.keep(reading, outputs, { limit: settings.elisionCaptureLimit, thread });
  }

  /** How often the newest round gets again what is left out; undefined where nothing is. */
  rereads({ view }: Reading, { elided: left }: Shortening, plan: Plan): Rereads | undefined {
    if (left.length === 0 || plan.continuityState === 'shadow_only') return undefined;
    const elided = left.map(({ output }) => output);
    return countRereads(view, elided, (item) => this.#read.toolsOf(view, item));
  }

  /** The provider refused the shortened request: this conversation is not shortened for an hour. */
  async refused(reading: Reading): Promise<void> {
    await this.#refusals.record(reading);
  }

  #factsOf(
    { reading, modes, settings, isCacheCold }: ShorteningCall,
    batches: Batches,
    found: Pick<ShorteningFacts, 'fill' | 'isOver'>,
  ): ShorteningFacts {
    const { view, place, identity } = reading;
    // Shadow stores nothing: it measures what could be left out were all of it stored.
    const isMeasured = modes.compression === 'shadow';
    return readFacts({
      ...found,
      view,
      tokens: view.tokens,
      batches,
      outputs: this.#read.seenOutputsOf(view),
      textsOf: (exchange) => this.#read.textsOf(view, exchange),
      isStored: isMeasured || isCacheCold ? () => true : this.#keeper.storedIn(place),
      isRefused: this.#keeper.refusedIn(place),
      isCacheCold,
      keepRounds: settings.elisionKeepRounds,
      inputBudget: settings.inputBudget,
      prices: pricesOf(reading),
      isCompaction: identity.kind === 'compaction',
    });
  }

  #prove({ reading, modes, ...call }: ShorteningCall, removal: Removal): Proof {
    const texts = textsOf(removal);
    // Shadow leaves nothing out, and measures as if all were held.
    if (modes.compression === 'shadow') return provenUnasked(texts);
    const { space } = reading.place;
    return this.#possession.begin({ texts, space, deadlineMs: call.deadline.msLeft });
  }

  async #settleProven(call: SettleCall, found: Found): Promise<SettledShortening> {
    const { facts, removal, proof = this.#prove(call, removal) } = found;
    const possession = await proof.possession;
    if (possession.kind === 'unproven') return leavesNothing('unproven');
    if (possession.kind === 'degraded') return leavesNothing('unanswered');
    const { digests } = possession;
    for (const { digest } of [...removal.repeated, ...removal.batch]) {
      if (!digests.has(digest)) this.#keeper.lost(call.reading.place, digest);
    }
    const settled = settle(facts, removal, digests);
    const isRecorded = await this.#record(call, settled, removal.comesBack);
    if (isRecorded) return { ...this.#leftOut(facts, settled), isRecorded };
    // Nothing leaves for the first time that another node would not leave out again.
    const nothingNew = { ...facts, isOver: true };
    const earlier = settle(nothingNew, decide(nothingNew), digests);
    return { ...this.#leftOut(facts, earlier), isRecorded };
  }

  #leftOut(facts: ShorteningFacts, { elided, omitted, outcome }: Settled): Shortening {
    const { outputFolder, objectsUrl } = this.#dependencies;
    const style = { outputFolder, objectsUrl, forms: facts.repeated };
    return { elided: replacementsOf(elided, style), omitted, outcome };
  }

  /** Before it is forwarded, so that a restart or another node repeats it. False: it is not known. */
  async #record(
    { reading, modes, firstUnsent }: SettleCall,
    chosen: Batch,
    comesBack: boolean,
  ): Promise<boolean> {
    const { view, place: owner } = reading;
    const place: ElisionPlace = { view, owner, elision: kindOf(modes) };
    const at = this.#dependencies.clock.now();
    const isNew = chosen.batch.length + chosen.omissions.length > 0;
    if (isNew || comesBack) this.#batches.noteRecorded();
    return this.#dependencies.ledger.commit([
      ...(comesBack ? wholeEntries(place, at) : []),
      ...(isNew ? elisionEntries(chosen, place, { at, firstUnsent }) : []),
    ]);
  }
}

/**
 * The outcome for a conversation new to this process: a long history is not read before it is
 * forwarded.
 */
function outcomeAtFirstSight({ reading, settings }: ShorteningCall): Outcome {
  const exchanges = groupExchanges(reading.view.items);
  const isNew = isShort({ exchanges, keepRounds: settings.elisionKeepRounds });
  return isNew ? 'nothing_old' : 'not_stored';
}

function leavesNothing(outcome: Outcome): SettledShortening {
  return { elided: [], omitted: [], outcome, isRecorded: true };
}

/** A compaction sees the whole history, except where that may be more than the model takes. */
function isOpen(reading: Reading): boolean {
  const { kind } = reading.identity;
  return kind === 'main' || (kind === 'compaction' && fillOf(windowOf(reading)).mayNotFit);
}

function kindOf({ compression }: Modes): ElisionKind {
  return compression === 'shadow' ? 'shadow' : 'real';
}
