import type { CaptureState, Memory, MemoryRecord } from '../../ports/memory.ts';

/** Puts records into a memory in small batches and counts what became of them. */

export interface Counts {
  /** New memories. */
  stored: number;
  /** Known before. */
  duplicate: number;
  /** Forgotten once: they stay forgotten. */
  forgotten: number;
  /** Too long, or not what the store takes. */
  rejected: number;
}

/** As many as a proxy that runs beside it should wait for: some tens of milliseconds. */
const BATCH = 64;
// Each batch is one transaction; a disk that takes longer is broken.
const BATCH_MS = 30_000;

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
    const states = await this.#memory.capture(batch, AbortSignal.timeout(BATCH_MS));
    for (const state of states) this.counts[state] += 1;
  }
}

export function countsText({ stored, duplicate, forgotten, rejected }: Counts): string {
  const parts: readonly (readonly [number, string])[] = [
    [duplicate, 'known already'],
    [forgotten, 'forgotten before and left out'],
    [rejected, 'refused by the store'],
  ];
  const others = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return [`${stored} new`, ...others].join(', ');
}

/** The memory holds it, from now on or since before. */
export function isKept(state: CaptureState | undefined): boolean {
  return state === 'stored' || state === 'duplicate';
}
