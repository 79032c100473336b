import type {
  CaptureState,
  ForgetFilter,
  Holding,
  HoldQuestion,
  ListFilter,
  Memory,
  MemoryRecord,
  OutputRecord,
  RecallAnswer,
  RecallQuestion,
  RecordKey,
  StoredOutput,
  StoredRecord,
} from '../../ports/memory.ts';
import type { StoreClient } from './client.ts';

/** The memory port over the store's worker. */

/** Records a message: recalls that wait behind it wait for about 30 ms. */
const CAPTURE_BATCH = 64;

export class EmbeddedMemory implements Memory {
  readonly supports = { kind: 'embedded', read: true, write: true } as const;
  readonly #client: StoreClient;

  constructor(client: StoreClient) {
    this.#client = client;
  }

  recall(question: RecallQuestion, signal: AbortSignal): Promise<RecallAnswer> {
    return this.#client.call('recall', question, signal);
  }

  async capture(
    records: readonly MemoryRecord[],
    signal: AbortSignal,
  ): Promise<readonly CaptureState[]> {
    const states: CaptureState[] = [];
    for (let start = 0; start < records.length; start += CAPTURE_BATCH) {
      const batch = records.slice(start, start + CAPTURE_BATCH);
      states.push(...(await this.#client.call('capture', batch, signal)));
    }
    return states;
  }

  retrieve(key: RecordKey, signal: AbortSignal): Promise<StoredRecord | StoredOutput | undefined> {
    return this.#client.call('retrieve', key, signal);
  }

  list(filter: ListFilter, signal: AbortSignal): Promise<readonly StoredRecord[]> {
    return this.#client.call('list', filter, signal);
  }

  forget(filter: ForgetFilter, signal: AbortSignal): Promise<number> {
    return this.#client.call('forget', filter, signal);
  }

  keepOutputs(
    records: readonly OutputRecord[],
    signal: AbortSignal,
  ): Promise<readonly CaptureState[]> {
    return this.#client.call('keepOutputs', records, signal);
  }

  hold(question: HoldQuestion, signal: AbortSignal): Promise<readonly Holding[]> {
    return this.#client.call('hold', question, signal);
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}
