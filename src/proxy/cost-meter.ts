import type { ConversationOwner } from '../core/ledger/entries.ts';
import { meter, type MeterState, paidFor, type Verdict } from '../core/shortening/meter.ts';
import type { Modes } from '../core/http/modes.ts';
import { CACHE_DEFAULT_MS } from '../core/conversation/cache-marks.ts';
import { cachePrices } from '../core/shortening/pricing.ts';
import type { RequestRow } from '../ports/request-log.ts';
import type { TrackedCost } from './conversation-state.ts';
import { withinDeadline } from './memory-deadline.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Reading } from './read-request.ts';

/**
 * Holds shortening to its promise: what a conversation really cost, by the provider's own counts, is
 * compared with direct at every request. One that has become dearer is shortened no further, and that
 * is written into the ledger, so that it holds after a restart too.
 */

// A long session; what came before it is not needed to judge the last ones.
const ROWS_MAX = 500;

export interface KnownCost {
  readonly verdict: Verdict;
  /** When the request log saw this conversation last; only where this process has not. */
  readonly loggedAt?: number;
}

export class CostMeter {
  readonly #dependencies: Pick<ProxyDependencies, 'requestLog' | 'ledger' | 'clock'>;

  constructor(dependencies: Pick<ProxyDependencies, 'requestLog' | 'ledger' | 'clock'>) {
    this.#dependencies = dependencies;
  }

  /** Asks log and ledger once a conversation, within `ms` milliseconds. Never throws. */
  async look(reading: Reading, modes: Modes, ms: number): Promise<KnownCost> {
    const isMeant = modes.compression !== 'passthrough';
    if (!isMeant || reading.identity.kind !== 'main') return { verdict: 'goes_on' };
    const known = reading.state.cost;
    const { ledger } = this.#dependencies;
    if (known.isLoaded && !ledger.isShared) return { verdict: known.verdict };
    // No answer yet: this conversation is new, so the log has nothing of it.
    const isNew = !reading.view.items.some(({ role }) => role === 'assistant');
    const loaded = isNew ? { ...known, isLoaded: true } : await this.#load(reading, ms);
    if (loaded === undefined) return { verdict: known.verdict };
    reading.state.cost = loaded;
    const { state, verdict } = loaded;
    return { verdict, ...(state === undefined ? {} : { loggedAt: state.at }) };
  }

  /** The row with its price; notes what it says of its conversation. */
  priced(row: RequestRow, reading: Reading | undefined): RequestRow {
    const { usage } = row;
    if (usage === undefined) return row;
    if (row.kind !== 'main' || reading === undefined) {
      const paid = paidFor(usage, pricesOf(row));
      return { ...row, price: { paid, direct: paid } };
    }
    const known = reading.state.cost;
    const metered = meter(known.state, requestOf(row, usage));
    const verdict = known.verdict === 'goes_on' ? metered.state.verdict : known.verdict;
    if (verdict !== known.verdict && verdict !== 'goes_on') {
      const at = this.#dependencies.clock.now();
      // The next request is still to come, and this process knows the verdict by heart.
      void this.#dependencies.ledger.record([{ ...verdictAddress(reading.place), verdict, at }]);
    }
    reading.state.cost = { ...known, state: metered.state, verdict };
    const { price } = metered;
    return { ...row, price, ...(verdict === 'goes_on' ? {} : { verdict }) };
  }

  async #load({ place }: Reading, ms: number): Promise<TrackedCost | undefined> {
    const { conversation } = place;
    const filter = { conversation, limit: ROWS_MAX };
    const address = verdictAddress(place);
    const [rows, found] = await Promise.all([
      withinDeadline(ms, () => this.#dependencies.requestLog.conversation(filter)).catch(
        () => undefined,
      ),
      this.#dependencies.ledger.find([address], ms),
    ]);
    const written = found.get(address)?.verdict;
    if (rows === undefined || (written === undefined && found.missing !== undefined))
      return undefined;
    let state: MeterState | undefined;
    for (const row of rows.toReversed()) {
      const isMeant = row.kind === 'main' && row.space === place.space;
      if (isMeant && row.usage !== undefined) {
        state = meter(state, requestOf(row, row.usage)).state;
      }
    }
    return { state, verdict: written ?? state?.verdict ?? 'goes_on', isLoaded: true };
  }
}

function verdictAddress({ tenant, space, conversation }: ConversationOwner) {
  return { kind: 'verdict', tenant, space, conversation } as const;
}

function pricesOf({ dialect, cacheMs = CACHE_DEFAULT_MS }: RequestRow) {
  return cachePrices(dialect, cacheMs);
}

function requestOf(row: RequestRow, usage: NonNullable<RequestRow['usage']>) {
  return {
    at: row.at,
    originalTokens: row.originalInputTokens,
    forwardedTokens: row.forwardedInputTokens,
    // In shadow nothing is left out.
    elidedTokens: row.compressionMode === 'shadow' ? 0 : row.elidedTokens,
    usage,
    prices: pricesOf(row),
    cacheMs: row.cacheMs ?? CACHE_DEFAULT_MS,
  };
}
