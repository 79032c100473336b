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

/**
 * A transaction: a recall waits for one at most. 16 typed prompts or one long answer take 2 to 4 ms
 * and the disk's sync.
 */
const BATCH_RECORDS_MAX = 16;
const BATCH_CHARS_MAX = 32_768;

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
    for (const batch of batchesOf(records)) {
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

function* batchesOf(records: readonly MemoryRecord[]): Generator<MemoryRecord[]> {
  let batch: MemoryRecord[] = [];
  let chars = 0;
  for (const record of records) {
    chars += record.text.length;
    if (batch.length === BATCH_RECORDS_MAX || (batch.length > 0 && chars > BATCH_CHARS_MAX)) {
      yield batch;
      batch = [];
      chars = record.text.length;
    }
    batch.push(record);
  }
  if (batch.length > 0) yield batch;
}
