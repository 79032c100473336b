import type { Usage } from '../core/answer.ts';
import {
  type Batch,
  elisionEntries,
  type ElisionKind,
  elisionKeys,
  elisionMark,
  type ElisionPlace,
  isWholeAgain,
  measureEntries,
  measureKeys,
  measureOf,
  repeatedOmissions,
  repeatedOutputs,
  wholeEntries,
} from '../core/elisions.ts';
import { type Exchange, groupExchanges } from '../core/exchanges.ts';
import type { Verdict } from '../core/meter.ts';
import type { Modes } from '../core/modes.ts';
import { type ExchangeTexts, findOmissions, readExchangeTexts } from '../core/omissions.ts';
import {
  type ItemTools,
  outputsOf,
  readItemTools,
  referencesRead,
  type ToolOutput,
} from '../core/outputs.ts';
import {
  type ContinuityState,
  type Plan,
  type Shortening,
  stateBefore,
  stateWithout,
  stateWithoutRecall,
} from '../core/plan.ts';
import { type CachePrices, cachePrices } from '../core/pricing.ts';
import { countRereads, type Rereads } from '../core/rereads.ts';
import type { ProxySettings } from '../core/settings.ts';
import {
  chooseOutputs,
  replacementsOf,
  type ShorteningFacts,
  type Wanted,
  wantedOutputs,
} from '../core/shortening.ts';
import type { Item, RequestView } from '../core/view.ts';
import { type Fill, fillOf, isHalfFull, type Measure, type WindowFacts } from '../core/window.ts';
import type { LedgerEntry } from '../ports/ledger.ts';
import { asksForHour } from './cache-watch.ts';
import { OutputKeeper } from './output-keeper.ts';
import type { ProxyParts } from './parts.ts';
import { type AskedText, type Possession, PossessionCheck } from './possession.ts';
import type { Reading } from './read-request.ts';
import type { PlacedRecall } from './recall-placer.ts';

/**
 * Collects the facts for shortening a request: what was left out before, what the memory holds and
 * proves now, whether the cache is cold. The decisions are core/shortening.ts's.
 */

// Counting from 0: the last two are always kept.
const EXCHANGES_TO_OMIT = 2;
// Conversations; forgetting one costs a batch on a warm cache one request's delay.
const SEEN_MAX = 1_024;
const NO_ENTRIES: ReadonlyMap<string, LedgerEntry> = new Map();

export interface ShorteningCall {
  readonly reading: Reading;
  readonly modes: Modes;
  readonly settings: ProxySettings;
  /** When all that is asked, one thing after the other, must be answered; as the clock's monotonic(). */
  readonly until: number;
  readonly isCacheCold: boolean;
  /** Of the meter: whether this conversation was dearer than direct. */
  readonly verdict: Verdict;
}

/** What a request may leave out, before anything is proven; or why it leaves out nothing. */
export type Sought =
  | { readonly state: ContinuityState }
  | { readonly state?: undefined; readonly facts: ShorteningFacts; readonly wanted: Wanted };

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
  /** What an item calls and answers is read once, as long as its conversation is remembered. */
  readonly #tools = new WeakMap<Item, ItemTools>();
  readonly #outputs = new WeakMap<RequestView, readonly ToolOutput[]>();
  readonly #seen = new Set<string>();
  /** By the last item of an exchange: masking its texts is most of the work. */
  readonly #texts = new WeakMap<Item, { readonly texts: ExchangeTexts }>();

  constructor(parts: ProxyParts) {
    this.#parts = parts;
    this.#possession = new PossessionCheck(parts.memory, parts.clock);
    this.#keeper = new OutputKeeper(parts.memory, parts.clock);
  }

  /** `recalled`: the blocks that this request carries. Never throws: what goes wrong is a state. */
  async shorten(
    call: ShorteningCall & {
      readonly sought: Promise<Sought>;
      readonly recalled: Promise<PlacedRecall>;
    },
  ): Promise<Shortening> {
    const sought = await call.sought;
    if (sought.state !== undefined) return leavesNothing(sought.state);
    const { facts, wanted } = sought;
    // In shadow nothing is recalled: it measures what could be left out were something.
    const isMeasured = call.modes.compression === 'shadow';
    if (wanted.omissions.length === 0 || isMeasured) return this.#choose(call, facts, wanted);
    const without = stateWithoutRecall(await call.recalled, wanted.omissions);
    if (without === undefined) return this.#choose(call, facts, wanted);
    const fewer = { ...facts, omittable: [] };
    const chosen = await this.#choose(call, fewer, wantedOutputs(fewer));
    const isShorter = chosen.elided.length + chosen.omitted.length > 0;
    return isShorter ? chosen : leavesNothing(without);
  }

  /** Looks for what may be left out. Never throws. */
  async seek(call: ShorteningCall): Promise<Sought> {
    const { reading, modes, settings } = call;
    const { view, place } = reading;
    const state = stateBefore({
      modes,
      isOpen: isOpen(reading),
      isOverBudget: view.tokens > settings.inputBudget,
      hasProviderState: reading.hasProviderState,
      isRefused: false,
      isElisionEnabled: settings.elisionEnabled,
    });
    if (state !== undefined) return { state };
    const kind = kindOf(modes);
    const refusal = refusalKey(reading);
    const mark = elisionMark(view, place.space, kind) ?? refusal;
    const measures = isHalfFull(windowOf(reading)) ? measureKeys(view, place.space) : [];
    const asked = [refusal, mark, ...measures];
    const found = await this.#parts.ledger.find(asked, this.#msLeft(call));
    // What was left out before is not known: to leave out something else would break the prefix twice.
    if (typeof found === 'string') return { state: 'bypassed_recall_degraded' };
    if (kind === 'real' && found.has(refusal)) {
      return { state: 'bypassed_provider_refused' };
    }
    if (kind === 'real' && call.verdict === 'send_all') {
      return { state: 'bypassed_not_worth_it' };
    }
    // At first sight nothing is stored: a long history need not be read before it is forwarded.
    const hasBatches = found.has(mark);
    // On a cold cache a batch costs nothing: then the memory is asked, whoever stored it.
    const wasSeen = this.#seesAgain(reading);
    const isKnown = hasBatches || call.isCacheCold || wasSeen || this.#keeper.knows(reading);
    if (kind === 'real' && !isKnown) {
      return { state: 'bypassed_not_stored' };
    }
    const known = hasBatches ? await this.#batchesOf(call, kind) : NO_ENTRIES;
    if (typeof known === 'string') return { state: 'bypassed_recall_degraded' };
    const fill = fillOf(windowOf(reading, measureOf(measures, found)));
    const facts = this.#factsOf(call, known, fill);
    const wanted = wantedOutputs(facts);
    const isOver = kind === 'real' && call.verdict === 'no_more';
    if (!isOver) return { facts, wanted };
    return { facts, wanted: { ...wanted, batch: [], omissions: [], reason: 'not_worth_it' } };
  }

  /** Exchanges old enough to be left out, of a conversation that this process has seen before. */
  #seesAgain({ view, place }: Reading): boolean {
    if ((view.items.at(-1)?.soFar.exchange.number ?? 0) < EXCHANGES_TO_OMIT) return false;
    const key = `${place.space} ${place.conversation}`;
    if (this.#seen.has(key)) return true;
    const oldest = this.#seen.values().next();
    if (this.#seen.size >= SEEN_MAX && oldest.value !== undefined) this.#seen.delete(oldest.value);
    this.#seen.add(key);
    return false;
  }

  #batchesOf(call: ShorteningCall, kind: ElisionKind) {
    const { view, place } = call.reading;
    return this.#parts.ledger.find(elisionKeys(view, place.space, kind), this.#msLeft(call));
  }

  #msLeft({ until }: ShorteningCall): number {
    return Math.max(0, until - this.#parts.clock.monotonic());
  }

  /** The provider has counted what was forwarded: near the window this says how large the whole is. */
  measured(reading: Reading, plan: Plan, usage: Usage | undefined): void {
    const isMain = reading.identity.kind === 'main';
    if (usage === undefined || !isMain || !isHalfFull(windowOf(reading))) return;
    const counted = usage.input + usage.cacheRead + usage.cacheWrite;
    const measure = { counted, estimated: plan.forwardedTokens };
    const place = { view: reading.view, space: reading.place.space };
    if (counted > 0 && plan.forwardedTokens > 0)
      this.#parts.ledger.record(measureEntries(measure, place, this.#parts.clock.now()));
  }

  /** Gives the memory what may be left out later. Never rejects; nobody waits for it. */
  async keepAhead({
    reading,
    modes,
    settings,
  }: Pick<ShorteningCall, 'reading' | 'modes' | 'settings'>): Promise<void> {
    const isWanted = modes.compression === 'deterministic' && modes.writes && modes.reads;
    const isMain = reading.identity.kind === 'main' && !reading.hasProviderState;
    if (!isWanted || !isMain || !settings.elisionEnabled) return;
    await this.#keeper.keep(reading, this.#outputsOf(reading), settings.elisionCaptureLimit);
  }

  /** How often the newest round gets again what is left out; undefined where nothing is. */
  rereads(reading: Reading | undefined, shortening: Shortening | undefined): Rereads | undefined {
    if (reading === undefined || !shortening?.elided.length) return undefined;
    if (shortening.state === 'shadow_only') return undefined;
    return countRereads(
      reading.view,
      shortening.elided.map(({ output }) => output),
      (item) => this.#toolsOf(reading, item),
    );
  }

  /** The provider refused the shortened request: this conversation is not shortened any more. */
  refused(reading: Reading): void {
    const nothing = { block: '', form: 'text', dropsEarlier: false } as const;
    const at = this.#parts.clock.now();
    this.#parts.ledger.record([{ ...nothing, key: refusalKey(reading), at }]);
  }

  #factsOf(
    { reading, modes, settings, isCacheCold }: ShorteningCall,
    known: ReadonlyMap<string, LedgerEntry>,
    fill: Fill,
  ): ShorteningFacts {
    const { view, place } = reading;
    const outputs = this.#outputsOf(reading);
    // Shadow stores nothing: it measures what could be left out were all of it stored.
    const isMeasured = modes.compression === 'shadow';
    const exchanges = groupExchanges(view.items);
    const omissions = findOmissions(view, exchanges, (exchange) =>
      this.#textsOf(reading, exchange),
    );
    const omitted = repeatedOmissions(omissions, known.values());
    return {
      items: view.items,
      exchanges,
      outputs,
      reread: referencesRead(view, (item) => this.#toolsOf(reading, item)),
      repeated: repeatedOutputs(outputs, known.values()),
      omittable: omissions.filter((omission) => !omitted.has(omission)),
      omitted: [...omitted],
      isStored: (digest) => isMeasured || isCacheCold || this.#keeper.isStored(place.space, digest),
      isCacheCold,
      keepRounds: settings.elisionKeepRounds,
      prices: pricesOf(reading),
      fill,
      isWholeAgain: isWholeAgain(known.values()),
      isCompaction: reading.identity.kind === 'compaction',
    };
  }

  async #choose(call: ShorteningCall, facts: ShorteningFacts, wanted: Wanted): Promise<Shortening> {
    const { reading, modes } = call;
    const isMeasured = modes.compression === 'shadow';
    const outputs = [...wanted.repeated, ...wanted.batch];
    const asked: readonly AskedText[] = [
      ...outputs.map(({ digest, text }) => ({ digest, role: 'tool' as const, text })),
      ...[...wanted.omitted, ...wanted.omissions].flatMap(({ texts }) => texts),
    ];
    const possession: Possession = isMeasured
      ? { kind: 'proven', digests: new Set(asked.map(({ digest }) => digest)) }
      : await this.#possession.check({
          texts: asked,
          space: reading.place.space,
          deadlineMs: this.#msLeft(call),
        });
    if (possession.kind === 'unproven') return leavesNothing('bypassed_unproven_recall');
    if (possession.kind === 'degraded') return leavesNothing('bypassed_recall_degraded');
    const { digests } = possession;
    for (const { digest } of outputs) {
      if (!digests.has(digest)) this.#keeper.lost(reading.place.space, digest);
    }
    const chosen = chooseOutputs(facts, wanted, digests);
    this.#record(call, chosen, wanted.comesBack);
    const elided = replacementsOf(chosen.elided, this.#parts.outputFolder);
    const { omitted } = chosen;
    if (isMeasured) return { elided, omitted, state: 'shadow_only' };
    if (omitted.length > 0) return { elided, omitted, state: 'committed' };
    if (elided.length > 0) return { elided, omitted, state: 'elided_tool_output' };
    if (facts.isCompaction) return leavesNothing('not_needed');
    return leavesNothing(stateWithout(asked.length > 0 ? 'not_stored' : wanted.reason));
  }

  /** Before it is forwarded, so that a restart repeats it. */
  #record({ reading, modes }: ShorteningCall, chosen: Batch, comesBack: boolean) {
    const { view } = reading;
    const place: ElisionPlace = { view, space: reading.place.space, kind: kindOf(modes) };
    const at = this.#parts.clock.now();
    if (comesBack) this.#parts.ledger.record(wholeEntries(place, at));
    if (chosen.batch.length + chosen.omissions.length > 0) {
      this.#parts.ledger.record(elisionEntries(chosen, place, at));
    }
  }

  /** Read once, though asked for before and after the answer. */
  #outputsOf(reading: Reading): readonly ToolOutput[] {
    const known = this.#outputs.get(reading.view);
    if (known !== undefined) return known;
    const outputs = outputsOf(reading.view, (item) => this.#toolsOf(reading, item));
    this.#outputs.set(reading.view, outputs);
    return outputs;
  }

  #textsOf({ view }: Reading, exchange: Exchange): ExchangeTexts {
    const last = view.items[exchange.end - 1];
    const known = last === undefined ? undefined : this.#texts.get(last);
    if (known !== undefined) return known.texts;
    const texts = readExchangeTexts(view, exchange);
    if (last !== undefined) this.#texts.set(last, { texts });
    return texts;
  }

  #toolsOf({ view }: Reading, item: Item): ItemTools {
    const known = this.#tools.get(item);
    if (known !== undefined) return known;
    const tools = readItemTools(view, item);
    this.#tools.set(item, tools);
    return tools;
  }
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
    // How long the cache lives changes prices, not tokens, and finding it out reads the whole body.
    tokenRatio: cachePrices(reading.view.dialect, false).tokenRatio,
    measure,
  };
}

function pricesOf(reading: Reading): CachePrices {
  return cachePrices(reading.view.dialect, asksForHour(reading));
}

function kindOf({ compression }: Modes): ElisionKind {
  return compression === 'shadow' ? 'shadow' : 'real';
}

function refusalKey({ place }: Reading): string {
  return `refused-shortening:${place.space}:${place.conversation}`;
}
