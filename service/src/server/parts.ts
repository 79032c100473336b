import type { Egress } from '../core/providers.ts';
import type { StoredKey } from '../../../src/core/memory-api/keys.ts';
import type { BodyDecoder } from '../../../src/ports/body-decoder.ts';
import type { Ledger } from '../../../src/ports/ledger.ts';
import type { Limiter } from '../ports/limiter.ts';
import type { MasterKeys } from '../ports/vault-store.ts';
import type { RequestMemory } from '../../../src/ports/memory.ts';
import type { ProxyDependencies } from '../../../src/proxy/dependencies.ts';
import type { Outbox } from '../../../src/ports/outbox.ts';
import type { Texts } from '../../../src/ports/texts.ts';
import type { ProviderLinks } from '../ports/provider-links.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Receipts } from '../ports/receipt-store.ts';
import type { Report } from '../../../src/ports/report.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import type { Provider } from '../../../src/core/settings/catalog.ts';
import type { ChangeWatch } from './change-watch.ts';
import type { ShelfBounds } from './models/handler-shelf.ts';
import type { ModelAdmission } from './admission.ts';
import type { Signer } from './signer.ts';
import type { Vault } from './vault.ts';

/** The dependencies of the server. compose-service.ts makes them. */
export interface ServiceParts {
  readonly store: ServiceStore;
  /** Reports which facts in the store have changed, so that caches drop them. */
  readonly changes: ChangeWatch;
  /** The service's 32 random bytes that are part of the hash of every key. */
  readonly pepper: Uint8Array;
  readonly masterKeys: MasterKeys;
  readonly listCatalog: () => Promise<readonly Provider[]>;
  readonly limiter: Limiter;
  readonly models: ModelParts;
  readonly receipts: Receipts;
  readonly clock: Clock;
  /** Makes an id: `req_` and 24 characters. */
  readonly newRequestId: () => string;
  /** Returns bytes of a cryptographic source. */
  readonly randomBytes: (count: number) => Uint8Array;
  readonly report: Report;
  readonly onCall: (row: CallRow) => void;
  readonly version: string;
  readonly settings: ServiceLimits;
}

export interface ModelParts {
  /** Milliseconds that a recall may take. */
  readonly recallMs: number;
  readonly decode: BodyDecoder;
  readonly links: ProviderLinks;
  /** One ledger for all tenants: each entry names its tenant. */
  readonly ledger: Ledger;
  /** With several nodes: delays the end of an answer until the database has what the ledger recorded of it. */
  readonly holdBack?: ProxyDependencies['holdBack'];
  readonly outboxOf: (tenant: string) => Outbox;
  readonly texts: Texts;
  /**
   * Returns the memory of a tenant. The key decides what `supports` says, and whether recall also searches the space
   * 'global'. The caller checks that the key may use the space of a question.
   */
  readonly memoryOf: (tenant: string, key: StoredKey) => RequestMemory;
  /** Bounds on the handlers of all keys together; undefined means SHELF_BOUNDS. */
  readonly bounds?: ShelfBounds;
}

export interface ServingParts extends ServiceParts {
  readonly vault: Vault;
  readonly signer: Signer;
  readonly admission: ModelAdmission;
}

export interface ServiceLimits {
  /** Calls of one key per minute; null means no limit. */
  readonly requestsPerMinute: number | null;
  /** True if a proxy in front ends TLS and names the caller in x-forwarded-for. */
  readonly isBehindProxy: boolean;
  /**
   * The address by which clients reach the service. If it is unknown, svc leaves no tool output out of requests,
   * because the model could not read it again.
   */
  readonly publicUrl?: string | undefined;
  /** Where providers may be, in addition to public addresses on the usual ports. */
  readonly egress: Egress;
}

/** One call that has ended, for the log: it has no text, no secret of a key and no name of a space. */
export interface CallRow {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly requestId: string;
  /** The operation; undefined for `HEAD /`, and if the call was refused before its operation was known. */
  readonly operation: string | undefined;
  readonly method: string;
  readonly status: number;
  /** The error code; undefined if the call was not refused. */
  readonly code: string | undefined;
  /** The public part of the key or of the admin token. */
  readonly keyId: string | undefined;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly ms: number;
}
