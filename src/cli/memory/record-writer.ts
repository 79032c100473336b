import { setTimeout as sleep } from 'node:timers/promises';
import type { CaptureState, Memory, MemoryRecord, RecordPage } from '../../ports/memory.ts';
import { deadline } from '../store.ts';

/** Reads and writes many records of a memory in batches, and counts the outcomes. */

export interface Counts {
  /** Records that the memory did not have before. */
  stored: number;
  /** Records that the memory had already. */
  duplicate: number;
  /** Records that the user has forgotten before: they are not stored again. */
  forgotten: number;
  /** Records that are too long or otherwise invalid. */
  rejected: number;
}

/** The most records that one call stores. */
const BATCH = 64;
/** Deadline of storing a batch, in milliseconds: a slower disk or service is broken. */
const BATCH_MS = 30_000;
/**
 * Bounds of the pause after a batch, in milliseconds. Within these bounds the pause is as long as the batch took, which
 * leaves half of the time to a proxy.
 */
const REST_MS_MIN = 5;
const REST_MS_MAX = 250;

export class RecordWriter {
  readonly #memory: Memory;
  readonly #waiting: MemoryRecord[] = [];
  readonly counts: Counts = { stored: 0, duplicate: 0, forgotten: 0, rejected: 0 };

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  async write(records: readonly MemoryRecord[]): Promise<void> {
    this.#waiting.push(...records);
    while (this.#waiting.length >= BATCH) await this.#flush();
  }

  async end(): Promise<Counts> {
    while (this.#waiting.length > 0) await this.#flush();
    return this.counts;
  }

  async #flush(): Promise<void> {
    const batch = this.#waiting.splice(0, BATCH);
    const from = performance.now();
    const imported = batch.map((record) => ({ ...record, isImported: true as const }));
    const states = await this.#memory.capture(imported, AbortSignal.timeout(BATCH_MS));
    for (const state of states) this.counts[state] += 1;
    const tookMs = performance.now() - from;
    await sleep(Math.min(Math.max(tookMs, REST_MS_MIN), REST_MS_MAX));
  }
}

export function countsText({ stored, duplicate, forgotten, rejected }: Counts): string {
  const parts: readonly (readonly [number, string])[] = [
    [duplicate, 'known already'],
    [forgotten, 'skipped because they were forgotten before'],
    [rejected, 'refused by the store'],
  ];
  const others = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return [`${stored} new`, ...others].join(', ');
}

/** Yields all records in pages, newest first. A service's pages may lack a record if others are forgotten meanwhile. */
export async function* pagesOf(
  memory: Memory,
  filter: { readonly limit: number; readonly space?: string },
): AsyncGenerator<RecordPage['records']> {
  let offset = 0;
  let next: number | undefined;
  for (;;) {
    const page: RecordPage =
      memory.page === undefined
        ? { records: await memory.list({ ...filter, offset }, deadline()), next }
        : await memory.page({ ...filter, ...(next !== undefined && { before: next }) }, deadline());
    const count = page.records.length;
    yield page.records;
    // A service's list lacks records that cannot be read, so there only an empty page is the end.
    const isLast = memory.page === undefined ? count === 0 : count < filter.limit;
    if (isLast) return;
    offset += count;
    ({ next } = page);
  }
}

/** Says whether this state means that the memory has the record. */
export function isKept(state: CaptureState | undefined): boolean {
  return state === 'stored' || state === 'duplicate';
}
