import type { StoredSettings } from '../../core/account-settings.ts';
import type { StoredAdmin } from '../../core/admins.ts';
import type { AuditEvent, AuditNote } from '../../core/audit.ts';
import type { StoredKey } from '../../../../src/core/memory-api/keys.ts';
import type { NewSignal } from '../../../../src/adapters/store/signals.ts';
import type { TenantProvider } from '../../core/providers.ts';
import type { Plan } from '../../core/plans.ts';
import type { Tenant } from '../../core/tenants.ts';
import type {
  Caller,
  ChangeList,
  ChangeOutcome,
  KeyPage,
  Page,
  ServiceChange,
  TenantChange,
  TenantFacts,
} from '../../ports/control-store.ts';
import type { Lease, StandingLease } from '../../ports/leases.ts';
import type { LedgerRow } from '../../../../src/ports/ledger.ts';
import type {
  ClosedHead,
  OpenHead,
  ReceiptFilter,
  ReceiptRow,
  SpentQuestion,
  StoredReceipt,
  UsageFilter,
  UsageSum,
} from '../../ports/receipt-store.ts';
import type {
  MasterKeyRow,
  SealedSecret,
  SecretFilter,
  SigningKeyRow,
} from '../../ports/vault-store.ts';
import type {
  AnswerKey,
  AnswerState,
  BegunAnswer,
  CaptureBatch,
  CaptureOutcome,
  ItemFilter,
  ItemKey,
  KeptAnswer,
  NamedRecord,
  NameQuestion,
  PageFilter,
  Purge,
  PurgeOrder,
  RetrieveAnswer,
  RetrieveQuestion,
  ServiceAnswer,
  ServiceItem,
  ServiceQuestion,
  ServiceSource,
  ServiceStoreHealth,
  SpaceState,
} from '../../ports/service-store.ts';

export interface KeyChange {
  readonly tenant: string;
  readonly keyId: string;
  readonly at: number;
}

export interface UnfinishedPurge {
  readonly purgeId: string;
  readonly space: string;
}

/** With the signals that are to be written. The worker that answers does not write. */
export interface FoundAnswer extends ServiceAnswer {
  readonly signals: readonly NewSignal[];
}

/** The calls between the main thread and the service store's worker. Spaces and keys of answers carry their tenant: tenant-store.ts. */
export interface ServiceCalls {
  findCaller(keyId: string): Caller | undefined;
  listKeys(input: { tenant: string; page: KeyPage }): readonly StoredKey[];
  getKey(input: { tenant: string; keyId: string }): StoredKey | undefined;
  noteKeyUse(input: KeyChange): void;
  listTenants(page: Page): readonly Tenant[];
  findTenant(tenantId: string): TenantFacts | undefined;
  listPlans(page: Page): readonly Plan[];
  findAdmin(adminId: string): StoredAdmin | undefined;
  listAdmins(input: { tenant: string | undefined; page: Page }): readonly StoredAdmin[];
  noteAdminUse(input: { adminId: string; at: number }): void;
  listAudit(input: { tenant: string; page: Page }): readonly AuditEvent[];
  listProviders(tenant: string): readonly TenantProvider[];
  getSettings(tenant: string): StoredSettings;
  findSecret(input: { tenant: string; secretId: string }): SealedSecret | undefined;
  findLedger(input: { tenant: string; keys: readonly string[] }): readonly LedgerRow[];
  recordLedger(input: { tenant: string; rows: readonly LedgerRow[] }): void;
  listMasterKeys(input: undefined): readonly MasterKeyRow[];
  listSecrets(filter: SecretFilter): readonly SealedSecret[];
  listSigningKeys(input: undefined): readonly SigningKeyRow[];
  changesSince(after: number | undefined): ChangeList;
  applyService(input: { change: ServiceChange; note: AuditNote }): ChangeOutcome;
  applyTenant(input: { tenant: string; change: TenantChange; note: AuditNote }): ChangeOutcome;
  storeReceipts(rows: readonly ReceiptRow[]): void;
  openHeads(asked: { node: string; limit: number }): readonly OpenHead[];
  closeHeads(heads: readonly ClosedHead[]): void;
  findReceipt(input: { tenant: string; receiptId: string }): StoredReceipt | undefined;
  listReceipts(input: { tenant: string; filter: ReceiptFilter }): readonly StoredReceipt[];
  listHeads(input: { tenant: string; page: Page }): readonly (OpenHead | ClosedHead)[];
  listUsage(input: { tenant: string; filter: UsageFilter }): readonly UsageSum[];
  tokensSpent(input: { tenant: string; asked: SpentQuestion }): number;
  dropAudit(before: number): void;
  dropReceipts(input: { tenant: string; before: number; limit: number }): number;
  spaceState(space: string): SpaceState;
  capture(batch: CaptureBatch): CaptureOutcome;
  recall(question: ServiceQuestion): FoundAnswer;
  noteSignals(signals: readonly NewSignal[]): void;
  retrieve(question: RetrieveQuestion): RetrieveAnswer;
  listItems(filter: ItemFilter): readonly ServiceItem[];
  lookUp(asked: NameQuestion): readonly NamedRecord[];
  findItem(asked: ItemKey): string | undefined;
  listSources(filter: PageFilter): readonly ServiceSource[];
  beginPurge(order: PurgeOrder): Purge;
  continuePurge(input: { purgeId: string; now: number }): boolean;
  findPurge(purgeId: string): Purge | undefined;
  listPurges(filter: PageFilter): readonly Purge[];
  unfinishedPurges(input: undefined): readonly UnfinishedPurge[];
  findAnswer(asked: AnswerKey): KeptAnswer | undefined;
  beginAnswer(input: { tenant: string; asked: AnswerKey; begun: BegunAnswer }): AnswerState;
  keepAnswer(input: { tenant: string; asked: AnswerKey; answer: KeptAnswer }): void;
  takeLease(input: { tenant: string; lease: Lease }): string | undefined;
  renewLease(input: { tenant: string; lease: Lease }): boolean;
  endLease(input: { tenant: string; lease: Pick<Lease, 'name' | 'holder'> }): void;
  listLeases(input: { tenant: string; start: string }): readonly StandingLease[];
  health(input: undefined): ServiceStoreHealth;
  close(input: undefined): void;
}

export interface ServiceStoreExtra {
  /** Takes the folder's lock: one process serves, others may look and manage keys beside it. */
  readonly serves: boolean;
  readonly creates: boolean;
  /** Canonical bytes that one space may hold. */
  readonly spaceBytesMax: number;
}
