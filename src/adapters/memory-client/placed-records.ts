import { chunksOf } from '../../core/bytes/batches.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { RETRIEVE_REFS_MAX } from '../../core/memory-api/limits.ts';
import type { Operations } from './operations.ts';

/**
 * Empties blocks in this machine's ledger that quote records purged in the service, on any machine. The generation
 * of a space changes when a purge begins, and again when its last record is deleted. A process asks about each new
 * generation, also after a start, until it has an answer and the blocks are empty. So no state about this is stored.
 */

/** Bounds of the pause after a failure: for a busy service, and the pause after a refused key. */
const RETRY_MS = 1000;
const RETRY_MS_MAX = 300_000;
/** Longest time from a request's recall until its block is recorded, so that pending blocks are found too. */
const RECORDED_MS = 30_000;
/** Bound on the answer, the least in the contract: only whether a record exists matters. */
const BYTES_MAX = 1024;

/** The recalled blocks that were added to conversations on this machine. */
export interface PlacedBlocks {
  /** Returns the references of all records that they quote, by space. */
  placed(): Promise<ReadonlyMap<string, ReadonlySet<string>>>;
  /** Empties the blocks that quote one of these records. */
  forgetPlaced(forgotten: {
    readonly space: string;
    readonly refs: readonly string[];
  }): Promise<number>;
}

export interface PlacedRecordsParts {
  readonly operations: Operations;
  readonly blocks: PlacedBlocks | undefined;
}

export class PlacedRecords {
  readonly #parts: PlacedRecordsParts;
  readonly #spaces = new Map<string, string>();
  readonly #closing = new AbortController();
  #isWatching = false;

  constructor(parts: PlacedRecordsParts) {
    this.#parts = parts;
  }

  /** Starts reacting to new generations. A command that ends soon does not call this. */
  watch(): void {
    this.#isWatching = true;
  }

  /** Notes the generation that the service reports. Returns at once. */
  seen(space: string, generation: string): void {
    if (!this.#isWatching || this.#spaces.get(space) === generation) return;
    this.#spaces.set(space, generation);
    void this.#settle(space, generation);
  }

  /** Asks now and again after a while, each time until it succeeds, or until a newer generation replaces this one. */
  async #settle(space: string, generation: string): Promise<void> {
    const { signal } = this.#closing;
    let retryMs = RETRY_MS;
    for (let isSettled = false; !signal.aborted && this.#spaces.get(space) === generation;) {
      let pauseMs = RECORDED_MS;
      try {
        // oxlint-disable-next-line no-await-in-loop -- No request waits for it.
        await this.emptyPurged(space, signal);
        if (isSettled) return;
        isSettled = true;
      } catch {
        pauseMs = retryMs;
        retryMs = Math.min(2 * retryMs, RETRY_MS_MAX);
      }
      // oxlint-disable-next-line no-await-in-loop
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Asks which quoted records of the space are purged, and empties the blocks that quote them. */
  async emptyPurged(space: string, signal: AbortSignal): Promise<void> {
    const { operations, blocks } = this.#parts;
    const placed = [...((await blocks?.placed())?.get(space) ?? [])];
    const purged: string[] = [];
    try {
      for (const refs of chunksOf(placed, RETRIEVE_REFS_MAX)) {
        const question = { space, refs, max_bytes: BYTES_MAX };
        // oxlint-disable-next-line no-await-in-loop -- No request waits for it.
        const { missing } = await operations.retrieve(question, signal);
        const gone = new Set(
          missing.filter(({ reason }) => reason === 'purged').map(({ ref }) => ref),
        );
        purged.push(...refs.filter((ref) => gone.has(ref)));
      }
    } finally {
      // Empty the blocks even if only some of the answers came.
      if (purged.length > 0) await blocks?.forgetPlaced({ space, refs: purged });
    }
  }

  close(): void {
    this.#closing.abort();
  }
}
