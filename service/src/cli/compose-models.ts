import { TEXTS } from '../../../src/adapters/texts.ts';
import { createBodyDecoder } from '../../../src/adapters/encoding/body-decoder.ts';
import { JournalLedger } from '../adapters/journals/ledger.ts';
import { type Network, parseNetwork } from '../../../src/adapters/network/addresses.ts';
import { CLOSE_FLUSH_MS } from '../../../src/adapters/state/outbox.ts';
import { ProviderPools } from '../adapters/network/provider-pools.ts';
import type { Trust } from '../../../src/adapters/network/pinned-connector.ts';
import { ServiceMemory } from '../adapters/service-memory/service-memory.ts';
import { tenantLedgerStore, TenantOutboxes } from '../adapters/service-memory/tenant-outbox.ts';
import { PROVIDER_HEADERS_MS, RECALL_MS } from '../core/account-settings.ts';
import type { Egress } from '../core/providers.ts';
import type { ProviderLinks } from '../ports/provider-links.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import type { ChangeWatch } from '../server/change-watch.ts';
import type { ModelParts } from '../server/parts.ts';
import { CliError } from '../../../src/cli/cli-error.ts';
import { systemClock } from '../../../src/cli/compose-common.ts';

/** Opens what the model routes of a service need: memory, ledger, outboxes and connections to providers. */

export interface ModelsOptions {
  readonly folder: string;
  readonly store: ServiceStore;
  readonly changes: ChangeWatch;
  readonly egress: Egress;
  /** For tests: replaces the system's resolver and certificates. */
  readonly trust?: Trust;
  /** Deadline of a recall in milliseconds; undefined: RECALL_MS. */
  readonly recallMs?: number;
  /** Deadline of an answer's head in milliseconds; undefined: PROVIDER_HEADERS_MS. */
  readonly headersMs?: number;
  readonly report: (line: string) => void;
}

export interface OpenedModels {
  readonly models: ModelParts;
  /**
   * Stores the captures, for a limited time, and closes all parts. The next start stores the captures that are left.
   */
  close(): Promise<void>;
  /** Resolves when everything captured so far is in the store, or when `withinMs` is over. */
  flush(withinMs: number): Promise<void>;
}

/**
 * How long the end of an answer is held back at most, until the database has the ledger's entries of the answer. That
 * usually takes a few milliseconds. The next request of the conversation may reach another node at once, and needs
 * these entries.
 */
const HAND_OVER_MS = 250;

/** Opens the parts. Throws CliError for an invalid network in the settings. */
export function openModels(options: ModelsOptions): OpenedModels {
  const { folder, store, changes, egress, report } = options;
  const { recallMs = RECALL_MS } = options;
  const decoder = createBodyDecoder();
  const links = openLinks(egress, options);
  const ledger = new JournalLedger({
    folder,
    store: tenantLedgerStore(store),
    isShared: store.isShared,
    report,
  });
  const memoryOf: ModelParts['memoryOf'] = (tenant, key) =>
    new ServiceMemory({ store: store.of(tenant), key, clock: systemClock });
  const outboxes = new TenantOutboxes({
    folder,
    memoryOf: (tenant) => new ServiceMemory({ store: store.of(tenant), clock: systemClock }),
    report,
  });
  changes.onChange((fact) => {
    // Undefined means that anything may have changed: somebody may have restored a backup without the last captures.
    if (fact === undefined) outboxes.forgetSettled();
    if (fact === undefined || fact.kind === 'purge') {
      ledger.forget();
      outboxes.eraseDelivered();
    }
  });
  return {
    models: {
      recallMs,
      decode: decoder.decode,
      links,
      ledger,
      holdBack: {
        ms: HAND_OVER_MS,
        isNeeded: () => ledger.isHandingOver,
        stored: (msLeft) => ledger.handedOver(msLeft),
      },
      outboxOf: (tenant) => outboxes.of(tenant),
      texts: TEXTS,
      memoryOf,
    },
    flush: (withinMs) => outboxes.flush(withinMs),
    close: async () => {
      await outboxes.flush(CLOSE_FLUSH_MS);
      await outboxes.close();
      await ledger.close();
      await links.close();
      await decoder.close();
    },
  };
}

/** Makes the connections to providers. Throws CliError for an invalid network in the settings. */
export function openLinks(
  { ports, allow }: Egress,
  { trust, headersMs = PROVIDER_HEADERS_MS }: Pick<ModelsOptions, 'trust' | 'headersMs'> = {},
): ProviderLinks {
  return new ProviderPools({
    headersMs,
    ports,
    networks: allow.map(networkOf),
    ...(trust === undefined ? {} : { trust }),
  });
}

function networkOf(text: string): Network {
  const network = parseNetwork(text);
  if (network !== undefined) return network;
  throw new CliError(
    'egress.allow in service.json has an entry that is not a network.',
    'Write it as an address and a prefix length: 10.1.0.0/16',
  );
}
