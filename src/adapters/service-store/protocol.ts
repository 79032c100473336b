import type { StoredKey } from '../../core/service/keys.ts';
import type { NewSignal } from '../store/signals.ts';
import type {
  AnswerKey,
  CaptureBatch,
  CaptureOutcome,
  ItemFilter,
  ItemKey,
  KeptAnswer,
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
  findKey(keyId: string): StoredKey | undefined;
  addKey(key: StoredKey): void;
  listKeys(tenant: string): readonly StoredKey[];
  revokeKey(input: KeyChange): boolean;
  noteKeyUse(input: KeyChange): void;
  spaceState(space: string): SpaceState;
  capture(batch: CaptureBatch): CaptureOutcome;
  recall(question: ServiceQuestion): FoundAnswer;
  noteSignals(signals: readonly NewSignal[]): void;
  retrieve(question: RetrieveQuestion): RetrieveAnswer;
  listItems(filter: ItemFilter): readonly ServiceItem[];
  findItem(asked: ItemKey): string | undefined;
  listSources(filter: PageFilter): readonly ServiceSource[];
  beginPurge(order: PurgeOrder): Purge;
  continuePurge(input: { purgeId: string; now: number }): boolean;
  findPurge(purgeId: string): Purge | undefined;
  listPurges(filter: PageFilter): readonly Purge[];
  unfinishedPurges(input: undefined): readonly UnfinishedPurge[];
  findAnswer(asked: AnswerKey): KeptAnswer | undefined;
  keepAnswer(input: { asked: AnswerKey; answer: KeptAnswer }): void;
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
