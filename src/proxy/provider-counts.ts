import type { Usage } from '../core/dialects/answer.ts';
import type { AddressOf } from '../core/ledger/entries.ts';
import type { FoundEntries } from '../core/ledger/found-entries.ts';
import type { Plan } from '../core/plan/plan.ts';
import {
  isNearAnchor,
  measureAddresses,
  measureEntries,
  measureOf,
} from '../core/shortening/elisions.ts';
import { isSameMeasure, type Measure } from '../core/shortening/window.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Reading } from './read-request.ts';

/**
 * The provider's token counts of a conversation that fills half of its window. The ledger keeps
 * them for a restart and for forks. A count without new information is not written again, and a
 * count that this process wrote is not read.
 */
export class ProviderCounts {
  readonly #dependencies: Pick<ProxyDependencies, 'ledger' | 'clock'>;

  constructor(dependencies: Pick<ProxyDependencies, 'ledger' | 'clock'>) {
    this.#dependencies = dependencies;
  }

  /** The ledger must be asked for these. */
  addresses(reading: Reading): readonly AddressOf<'provider-count'>[] {
    if (this.#known(reading) !== undefined) return [];
    return measureAddresses(reading.view, reading.place);
  }

  /** The newest count; `found`: what the ledger has at `addresses`. */
  newest(
    reading: Reading,
    addresses: readonly AddressOf<'provider-count'>[],
    found: FoundEntries,
  ): Measure | undefined {
    return measureOf(addresses, found) ?? this.#known(reading);
  }

  /** The provider has counted what was forwarded: near the window this says how large the whole is. */
  counted(reading: Reading, plan: Plan, usage: Usage): void {
    const counted = usage.input + usage.cacheRead + usage.cacheWrite;
    const measure = { counted, estimated: plan.forwardedTokens };
    if (counted === 0 || plan.forwardedTokens === 0) return;
    const known = this.#known(reading);
    if (known !== undefined && isSameMeasure(known, measure)) return;
    const place = { view: reading.view, owner: reading.place };
    const entries = measureEntries(measure, place, this.#dependencies.clock.now());
    const [{ fingerprint } = NOWHERE] = entries;
    const generation = this.#dependencies.ledger.generation();
    reading.state.counted = { measure, fingerprint, generation };
    // The client's answer does not wait for the write: this process remembers the count itself.
    void this.#dependencies.ledger.record(entries);
  }

  /** This process has recorded it, for one of the last items of the request. */
  #known({ view, state: { counted } }: Reading): Measure | undefined {
    if (counted?.generation !== this.#dependencies.ledger.generation()) return undefined;
    return isNearAnchor(view, counted.fingerprint) ? counted.measure : undefined;
  }
}

const NOWHERE = { fingerprint: '' };
