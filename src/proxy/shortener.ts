import {
  elisionEntries,
  type ElisionKind,
  elisionKeys,
  elisionMark,
  repeatedOutputs,
} from '../core/elisions.ts';
import { groupExchanges } from '../core/exchanges.ts';
import type { Modes } from '../core/modes.ts';
import {
  type ItemTools,
  outputsOf,
  readItemTools,
  referencesRead,
  type ToolOutput,
} from '../core/outputs.ts';
import { type Shortening, stateBefore, stateWithout } from '../core/plan.ts';
import { cachePrices, tokensUntilEdge } from '../core/pricing.ts';
import type { ProxySettings } from '../core/settings.ts';
import {
  chooseOutputs,
  type ShorteningFacts,
  type Wanted,
  wantedOutputs,
} from '../core/shortening.ts';
import type { Item } from '../core/view.ts';
import type { LedgerEntry } from '../ports/ledger.ts';
import { asksForHour } from './cache-watch.ts';
import { OutputKeeper } from './output-keeper.ts';
import type { ProxyParts } from './parts.ts';
import { type Possession, PossessionCheck } from './possession.ts';
import type { Reading } from './read-request.ts';

/**
 * Collects the facts for shortening a request: what was left out before, what the memory holds and
 * proves now, whether the cache is cold. The decisions are core/shortening.ts's.
 */

const NO_ENTRIES: ReadonlyMap<string, LedgerEntry> = new Map();

export interface ShorteningCall {
  readonly reading: Reading;
  readonly modes: Modes;
  readonly settings: ProxySettings;
  readonly isCacheCold: boolean;
}

export class Shortener {
  readonly #parts: ProxyParts;
  readonly #possession: PossessionCheck;
  readonly #keeper: OutputKeeper;
  /** What an item calls and answers is read once, as long as its conversation is remembered. */
  readonly #tools = new WeakMap<Item, ItemTools>();

  constructor(parts: ProxyParts) {
    this.#parts = parts;
    this.#possession = new PossessionCheck(parts.memory, parts.clock);
    this.#keeper = new OutputKeeper(parts.memory, parts.clock);
  }

  /** Never throws: what goes wrong is a state. */
  async shorten(call: ShorteningCall): Promise<Shortening> {
    const { reading, modes, settings } = call;
    const { view } = reading;
    const prices = cachePrices(view.dialect, asksForHour(reading));
    const tokensLeft = tokensUntilEdge(view.shell.value['model'], view.tokens, prices);
    const obstacles = {
      modes,
      isMain: reading.identity.kind === 'main',
      isOverBudget: view.tokens > settings.inputBudget,
      hasProviderState: reading.hasProviderState,
      isRefused: false,
      isNearWindow: tokensLeft <= 0,
      isElisionEnabled: settings.elisionEnabled,
    };
    const state = stateBefore(obstacles);
    if (state !== undefined) return { elided: [], state };
    const kind = modes.compression === 'shadow' ? 'shadow' : 'real';
    // Nothing is given to the memory either, so nothing is stored: shadow measures all the same.
    if (kind === 'real' && !this.#parts.shortens)
      return { elided: [], state: 'bypassed_not_stored' };
    const refusal = refusalKey(reading);
    const mark = elisionMark(view, reading.place.space, kind) ?? refusal;
    const found = await this.#parts.ledger.find([refusal, mark], settings.recallMs);
    // What was left out before is not known: to leave out something else would break the prefix twice.
    if (found === undefined) return { elided: [], state: 'bypassed_recall_degraded' };
    if (kind === 'real' && found.has(refusal)) {
      return { elided: [], state: 'bypassed_provider_refused' };
    }
    // At first sight nothing is stored: a long history need not be read before it is forwarded.
    const hasBatches = found.has(mark);
    if (kind === 'real' && !hasBatches && !this.#keeper.knows(reading)) {
      return { elided: [], state: 'bypassed_not_stored' };
    }
    const known = hasBatches ? await this.#batchesOf(call, kind) : NO_ENTRIES;
    if (known === undefined) return { elided: [], state: 'bypassed_recall_degraded' };
    const facts = this.#factsOf(call, { known: known.values(), prices, tokensLeft });
    return this.#choose(call, facts, wantedOutputs(facts));
  }

  #batchesOf({ reading, settings }: ShorteningCall, kind: ElisionKind) {
    const keys = elisionKeys(reading.view, reading.place.space, kind);
    return this.#parts.ledger.find(keys, settings.recallMs);
  }

  /** Gives the memory what may be left out later. Never rejects; nobody waits for it. */
  async keepAhead({
    reading,
    modes,
    settings,
  }: Omit<ShorteningCall, 'isCacheCold'>): Promise<void> {
    const isWanted =
      this.#parts.shortens && modes.compression === 'deterministic' && modes.writes && modes.reads;
    const isOpen = reading.identity.kind === 'main' && !reading.hasProviderState;
    if (!isWanted || !isOpen || !settings.elisionEnabled) return;
    const outputs = outputsOf(reading.view, (item) => this.#toolsOf(reading, item));
    await this.#keeper.keep(reading, outputs, settings.elisionCaptureLimit);
  }

  /** The provider refused the shortened request: this conversation is not shortened any more. */
  refused(reading: Reading): void {
    const nothing = { block: '', form: 'text', dropsEarlier: false } as const;
    const at = this.#parts.clock.now();
    this.#parts.ledger.record([{ ...nothing, key: refusalKey(reading), at }]);
  }

  #factsOf(
    { reading, modes, settings, isCacheCold }: ShorteningCall,
    {
      known,
      prices,
      tokensLeft,
    }: Pick<ShorteningFacts, 'prices' | 'tokensLeft'> & {
      known: Parameters<typeof repeatedOutputs>[1];
    },
  ): ShorteningFacts {
    const { view, place } = reading;
    const toolsOf = (item: Item): ItemTools => this.#toolsOf(reading, item);
    const outputs = outputsOf(view, toolsOf);
    // Shadow stores nothing: it measures what could be left out were all of it stored.
    const isMeasured = modes.compression === 'shadow';
    return {
      items: view.items,
      exchanges: groupExchanges(view.items),
      outputs,
      reread: referencesRead(view, toolsOf),
      repeated: repeatedOutputs(outputs, known),
      isStored: (digest) => isMeasured || this.#keeper.isStored(place.space, digest),
      isCacheCold,
      keepRounds: settings.elisionKeepRounds,
      prices,
      tokensLeft,
    };
  }

  async #choose(call: ShorteningCall, facts: ShorteningFacts, wanted: Wanted): Promise<Shortening> {
    const { reading, modes, settings } = call;
    const isMeasured = modes.compression === 'shadow';
    const asked = [...wanted.repeated, ...wanted.batch];
    const possession: Possession = isMeasured
      ? { kind: 'proven', digests: new Set(asked.map(({ digest }) => digest)) }
      : await this.#possession.check({
          outputs: asked,
          space: reading.place.space,
          deadlineMs: settings.recallMs,
        });
    if (possession.kind === 'unproven') return { elided: [], state: 'bypassed_unproven_recall' };
    if (possession.kind === 'degraded') return { elided: [], state: 'bypassed_recall_degraded' };
    const { digests } = possession;
    for (const { digest } of asked) {
      if (!digests.has(digest)) this.#keeper.lost(reading.place.space, digest);
    }
    const { elided, batch } = chooseOutputs(facts, wanted, digests);
    this.#record(call, batch);
    if (isMeasured) return { elided, state: 'shadow_only' };
    if (elided.length > 0) return { elided, state: 'elided_tool_output' };
    return { elided, state: stateWithout(asked.length > 0 ? 'not_stored' : wanted.reason) };
  }

  /** Before it is forwarded, so that a restart repeats it. */
  #record({ reading, modes }: ShorteningCall, batch: readonly ToolOutput[]): void {
    if (batch.length === 0) return;
    const kind = modes.compression === 'shadow' ? 'shadow' : 'real';
    const place = { view: reading.view, space: reading.place.space, kind } as const;
    this.#parts.ledger.record(elisionEntries(batch, place, this.#parts.clock.now()));
  }

  #toolsOf({ view }: Reading, item: Item): ItemTools {
    const known = this.#tools.get(item);
    if (known !== undefined) return known;
    const tools = readItemTools(view, item);
    this.#tools.set(item, tools);
    return tools;
  }
}

function refusalKey({ place }: Reading): string {
  return `refused-shortening:${place.space}:${place.conversation}`;
}
