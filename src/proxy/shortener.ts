import type { Usage } from '../core/dialects/answer.ts';
import { keyOf, type ElisionKind, type LeftOut } from '../core/ledger/entries.ts';
import { isRefused, refusalAddresses, refusalEntries } from '../core/ledger/refusals.ts';
import {
  type Batch,
  batchesIn,
  elisionAddresses,
  elisionEntries,
  elisionMark,
  type ElisionPlace,
  isSameBatches,
  isWholeAgain,
  measureAddresses,
  measureEntries,
  measureOf,
  repeatedOmissions,
  repeatedOutputs,
  wholeEntries,
} from '../core/shortening/elisions.ts';
import { cacheLifetimeMs } from '../core/shortening/cache-lifetime.ts';
import { groupExchanges } from '../core/conversation/exchanges.ts';
import type { Verdict } from '../core/shortening/meter.ts';
import type { Modes } from '../core/http/modes.ts';
import { findOmissions } from '../core/shortening/omissions.ts';
import {
  type ContinuityState,
  type Plan,
  type Shortening,
  stateBefore,
  stateWithout,
  stateWithoutRecall,
} from '../core/plan/plan.ts';
import type { CachePrices } from '../core/dialects/descriptor.ts';
import { cachePrices } from '../core/shortening/pricing.ts';
import { countRereads, type Rereads } from '../core/shortening/rereads.ts';
import type { ProxySettings } from '../core/settings/settings.ts';
import {
  chooseOutputs,
  replacementsOf,
  type ShorteningFacts,
  type Wanted,
  wantedOutputs,
} from '../core/shortening/shortening.ts';
import {
  type Fill,
  fillOf,
  isHalfFull,
  type Measure,
  type WindowFacts,
} from '../core/shortening/window.ts';
import type { Deadline } from './deadline.ts';
import { OutputKeeper } from './output-keeper.ts';
import type { ProxyParts } from './parts.ts';
import { PossessionCheck, type Proof, provenUnasked, textsOf } from './possession.ts';
import { ReadItems } from './read-items.ts';
import type { Reading } from './read-request.ts';
import type { Recalled } from './recall.ts';

/**
 * Collects the facts for shortening a request: what was left out before, what the memory holds and
 * proves now, whether the cache is cold. The decisions are core/shortening/shortening.ts's.
 */

// Counting from 0: the last two are always kept.
const EXCHANGES_TO_OMIT = 2;

/** What the ledger knows of earlier batches of a conversation. */
type Batches = readonly LeftOut[];
const NO_BATCHES: Batches = [];

export interface ShorteningCall {
  readonly reading: Reading;
  readonly modes: Modes;
  readonly settings: ProxySettings;
  readonly deadline: Deadline;
  readonly isCacheCold: boolean;
  /** Of the meter: whether this conversation was dearer than direct. */
  readonly verdict: Verdict;
}

export type KeepCall = Pick<ShorteningCall, 'reading' | 'modes' | 'settings'>;

/** What a request may leave out, before anything is proven; or why it leaves out nothing. */
export type Sought = { readonly state: ContinuityState } | Found;

interface Found {
  readonly state?: undefined;
  readonly facts: ShorteningFacts;
  readonly wanted: Wanted;
  /** Begun, unless what is recalled has a say in what is wanted. */
  readonly proof: Proof | undefined;
}

/** Digests of what is in the exchanges that may be left out. */
export function leftOutDigests(sought: Sought): ReadonlySet<string> {
  if (sought.state !== undefined) return new Set();
  const { omitted, omissions } = sought.wanted;
  const texts = [...omitted, ...omissions].flatMap((omission) => omission.texts);
  return new Set(texts.map(({ digest }) => digest));
}

export class Shortener {
  readonly #parts: ProxyParts;
  readonly #possession: PossessionCheck;
  readonly #keeper: OutputKeeper;
  readonly #read = new ReadItems();

  constructor(parts: ProxyParts) {
    this.#parts = parts;
    this.#possession = new PossessionCheck(parts.memory, parts.clock);
    this.#keeper = new OutputKeeper(parts.memory, parts.clock, () => parts.ledger.generation());
  }

  /** Decides what is left out. `recalled`: the blocks that this request carries. */
  async settle(call: ShorteningCall, sought: Sought, recalled: Recalled): Promise<Shortening> {
    if (sought.state !== undefined) return leavesNothing(sought.state);
    const { facts, wanted } = sought;
    // In shadow nothing is recalled: it measures what could be left out were something.
    const isMeasured = call.modes.compression === 'shadow';
    if (wanted.omissions.length === 0 || isMeasured) return this.#choose(call, sought);
    const without = stateWithoutRecall(recalled, wanted.omissions);
    if (without === undefined) return this.#choose(call, sought);
    const fewer = { ...facts, omittable: [] };
    const rest = { facts: fewer, wanted: wantedOutputs(fewer), proof: undefined };
    const chosen = await this.#choose(call, rest);
    const isShorter = chosen.elided.length + chosen.omitted.length > 0;
    return isShorter ? chosen : leavesNothing(without);
  }

  /** Finds what may be left out, and begins its proof. */
  async findCandidates(call: ShorteningCall): Promise<Sought> {
    const { reading, modes, settings } = call;
    const { view, place } = reading;
    this.#keeper.refresh();
    const state = stateBefore({
      modes,
      isOpen: isOpen(reading),
      isOverBudget: view.tokens > settings.inputBudget,
      hasProviderState: reading.hasProviderState,
      isRefused: false,
      isElisionEnabled: settings.elisionEnabled,
    });
    if (state !== undefined) return { state };
    const elision = kindOf(modes);
    const isReal = elision === 'real';
    const elisionPlace = { view, owner: place, elision };
    const refusals = refusalAddresses(view, place, 'shortening');
    const mark = elisionMark(elisionPlace);
    const measures = isHalfFull(windowOf(reading)) ? measureAddresses(view, place) : [];
    const asked = [...refusals, ...(mark === undefined ? [] : [mark]), ...measures];
    const found = await this.#parts.ledger.find(asked, call.deadline.msLeft);
    if (isReal && isRefused(refusals, found, this.#parts.clock.now())) {
      return { state: 'bypassed_provider_refused' };
    }
    if (isReal && call.verdict === 'send_all') {
      return { state: 'bypassed_not_worth_it' };
    }
    const key = mark === undefined ? '' : keyOf(mark);
    const wereKnown = reading.state.batches.has(key);
    const hasBatches = wereKnown || (mark !== undefined && found.has(mark));
    // Whether something was left out before is not known: to leave out anything else would break the
    // prefix twice.
    if (!hasBatches && found.missing !== undefined) return { state: 'bypassed_recall_degraded' };
    // At first sight nothing is stored: a long history need not be read before it is forwarded.
    // On a cold cache a batch costs nothing: then the memory is asked, whoever stored it.
    const wasSeen = this.#seesAgain(reading);
    const isKnown = hasBatches || call.isCacheCold || wasSeen || this.#keeper.knows(reading);
    if (isReal && !isKnown) return { state: 'bypassed_not_stored' };
    const fill = fillOf(windowOf(reading, measureOf(measures, found)));
    return hasBatches
      ? this.#wantAgain(call, { ...elisionPlace, key }, fill)
      : this.#want(call, NO_BATCHES, fill);
  }

  /** What may be left out of a conversation that has batches. */
  async #wantAgain(
    call: ShorteningCall,
    place: ElisionPlace & { readonly key: string },
    fill: Fill,
  ): Promise<Sought> {
    // Nearly always the ledger knows what it knew a request ago: the memory is asked along with it.
    const { key } = place;
    const { batches } = call.reading.state;
    const before = batches.get(key);
    const asking = this.#parts.ledger.find(elisionAddresses(place), call.deadline.msLeft);
    const guess = before === undefined ? undefined : this.#want(call, before, fill);
    const found = await asking;
    const known = batchesIn(found, place);
    if (found.missing !== undefined) {
      // This conversation's last request was told of all of them, except those that were made since.
      if (guess !== undefined && known.length <= (before?.length ?? 0)) return guess;
      if (known.length === 0) return { state: 'bypassed_recall_degraded' };
      // What is known stays out. A new batch must wait until all is known.
      return this.#want({ ...call, verdict: 'no_more' }, known, fill);
    }
    batches.set(key, known);
    const isGuessed = before !== undefined && isSameBatches(before, known);
    return guess !== undefined && isGuessed ? guess : this.#want(call, known, fill);
  }

  /** What may be left out when these batches were made before. Begins its proof. */
  #want(call: ShorteningCall, known: Batches, fill: Fill): Sought {
    const isOver = call.verdict === 'no_more' && kindOf(call.modes) === 'real';
    // Nothing is out, and nothing may go any more: a history that fills its window need not be read.
    if (known.length === 0 && !fill.hasRoom) return { state: stateNearWindow(call, isOver) };
    const facts = this.#factsOf(call, known, fill);
    const all = wantedOutputs(facts);
    const wanted: Wanted = isOver
      ? { ...all, batch: [], omissions: [], reason: 'not_worth_it' }
      : all;
    const isSettled = wanted.omissions.length === 0;
    return { facts, wanted, proof: isSettled ? this.#prove(call, wanted) : undefined };
  }

  /** Exchanges old enough to be left out, of a conversation that this process has seen before. */
  #seesAgain({ view, state }: Reading): boolean {
    if ((view.items.at(-1)?.soFar.exchange.number ?? 0) < EXCHANGES_TO_OMIT) return false;
    const hadOld = state.hadOldExchanges;
    state.hadOldExchanges = true;
    return hadOld;
  }

  /** The provider has counted what was forwarded: near the window this says how large the whole is. */
  measured(reading: Reading, plan: Plan, usage: Usage | undefined): void {
    const isMain = reading.identity.kind === 'main';
    if (usage === undefined || !isMain || !isHalfFull(windowOf(reading))) return;
    const counted = usage.input + usage.cacheRead + usage.cacheWrite;
    const measure = { counted, estimated: plan.forwardedTokens };
    const place = { view: reading.view, owner: reading.place };
    if (counted === 0 || plan.forwardedTokens === 0) return;
    // The answer to this request waits for nobody, and this process knows the count by heart.
    void this.#parts.ledger.record(measureEntries(measure, place, this.#parts.clock.now()));
  }

  /** Gives the memory what may be left out later. Never rejects; nobody waits for it. */
  async keepAhead({ reading, modes, settings }: KeepCall): Promise<void> {
    const isWanted = modes.compression === 'deterministic' && modes.writes && modes.reads;
    const isMain = reading.identity.kind === 'main' && !reading.hasProviderState;
    if (!isWanted || !isMain || !settings.elisionEnabled) return;
    await this.#keeper.keep(
      reading,
      this.#read.outputsOf(reading.view),
      settings.elisionCaptureLimit,
    );
  }

  /** How often the newest round gets again what is left out; undefined where nothing is. */
  rereads(reading: Reading | undefined, shortening: Shortening | undefined): Rereads | undefined {
    if (reading === undefined || !shortening?.elided.length) return undefined;
    if (shortening.state === 'shadow_only') return undefined;
    const { view } = reading;
    const elided = shortening.elided.map(({ output }) => output);
    return countRereads(view, elided, (item) => this.#read.toolsOf(view, item));
  }

  /** The provider refused the shortened request: this conversation is not shortened for an hour. */
  async refused({ view, place }: Reading): Promise<void> {
    const addresses = refusalAddresses(view, place, 'shortening');
    await this.#parts.ledger.record(refusalEntries(addresses, this.#parts.clock.now()));
  }

  #factsOf(
    { reading, modes, settings, isCacheCold }: ShorteningCall,
    known: Batches,
    fill: Fill,
  ): ShorteningFacts {
    const { view, place } = reading;
    const outputs = this.#read.seenOutputsOf(view);
    // Shadow stores nothing: it measures what could be left out were all of it stored.
    const isMeasured = modes.compression === 'shadow';
    const exchanges = groupExchanges(view.items);
    const omissions = findOmissions(view, exchanges, (exchange) =>
      this.#read.textsOf(view, exchange),
    );
    const omitted = repeatedOmissions(omissions, known);
    return {
      items: view.items,
      exchanges,
      outputs,
      repeated: repeatedOutputs(outputs, known),
      omittable: omissions.filter((omission) => !omitted.has(omission)),
      omitted: [...omitted],
      isStored: (digest) => isMeasured || isCacheCold || this.#keeper.isStored(place, digest),
      isCacheCold,
      keepRounds: settings.elisionKeepRounds,
      prices: pricesOf(reading),
      fill,
      isWholeAgain: isWholeAgain(known),
      isCompaction: reading.identity.kind === 'compaction',
    };
  }

  #prove({ reading, modes, ...call }: ShorteningCall, wanted: Wanted): Proof {
    const texts = textsOf(wanted);
    // Shadow leaves nothing out, and measures as if all were held.
    if (modes.compression === 'shadow') return provenUnasked(texts);
    const { space } = reading.place;
    return this.#possession.begin({ texts, space, deadlineMs: call.deadline.msLeft });
  }

  async #choose(call: ShorteningCall, sought: Found): Promise<Shortening> {
    const { facts, wanted, proof = this.#prove(call, wanted) } = sought;
    const isMeasured = call.modes.compression === 'shadow';
    const possession = await proof.possession;
    if (possession.kind === 'unproven') return leavesNothing('bypassed_unproven_recall');
    if (possession.kind === 'degraded') return leavesNothing('bypassed_recall_degraded');
    const { digests } = possession;
    for (const { digest } of [...wanted.repeated, ...wanted.batch]) {
      if (!digests.has(digest)) this.#keeper.lost(call.reading.place, digest);
    }
    const chosen = chooseOutputs(facts, wanted, digests);
    await this.#record(call, chosen, wanted.comesBack);
    const { outputFolder } = this.#parts;
    const elided = replacementsOf(chosen.elided, { outputFolder, forms: facts.repeated });
    const { omitted } = chosen;
    if (isMeasured) return { elided, omitted, state: 'shadow_only' };
    if (omitted.length > 0) return { elided, omitted, state: 'committed' };
    if (elided.length > 0) return { elided, omitted, state: 'elided_tool_output' };
    if (facts.isCompaction) return leavesNothing('not_needed');
    return leavesNothing(stateWithout(proof.texts.length > 0 ? 'not_stored' : wanted.reason));
  }

  /** Before it is forwarded, so that a restart repeats it. */
  async #record({ reading, modes }: ShorteningCall, chosen: Batch, comesBack: boolean) {
    const { view, place: owner } = reading;
    const place: ElisionPlace = { view, owner, elision: kindOf(modes) };
    const at = this.#parts.clock.now();
    const isNew = chosen.batch.length + chosen.omissions.length > 0;
    await this.#parts.ledger.record([
      ...(comesBack ? wholeEntries(place, at) : []),
      ...(isNew ? elisionEntries(chosen, place, at) : []),
    ]);
  }
}

function stateNearWindow({ reading, modes }: ShorteningCall, isOver: boolean): ContinuityState {
  if (modes.compression === 'shadow') return 'shadow_only';
  if (reading.identity.kind === 'compaction') return 'not_needed';
  return stateWithout(isOver ? 'not_worth_it' : 'near_window');
}

function leavesNothing(state: ContinuityState): Shortening {
  return { elided: [], omitted: [], state };
}

/** A compaction sees the whole history, except where that may be more than the model takes. */
function isOpen(reading: Reading): boolean {
  const { kind } = reading.identity;
  return kind === 'main' || (kind === 'compaction' && fillOf(windowOf(reading)).mayNotFit);
}

function windowOf(reading: Reading, measure?: Measure): WindowFacts {
  const { value } = reading.view.shell;
  return {
    model: value['model'],
    answerTokens: value['max_tokens'] ?? value['max_completion_tokens'],
    isLong: reading.asksForLongWindow,
    tokens: reading.view.tokens,
    tokenRatio: pricesOf(reading).tokenRatio,
    measure,
  };
}

function pricesOf(reading: Reading): CachePrices {
  return cachePrices(reading.view.dialect, cacheLifetimeMs(reading.view));
}

function kindOf({ compression }: Modes): ElisionKind {
  return compression === 'shadow' ? 'shadow' : 'real';
}
