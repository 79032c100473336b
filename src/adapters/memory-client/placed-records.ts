import { chunksOf } from '../../core/bytes/batches.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { RETRIEVE_REFS_MAX } from '../../core/memory-api/limits.ts';
import type { ForgottenElsewhere } from '../store/protocol.ts';
import type { Operations } from './operations.ts';

/**
 * Empties the blocks in this machine's ledger that quote purged records, whichever machine asked the service for the
 * purge. The generation of a space changes when a purge begins, and again when its last record is deleted. For each
 * generation that is new to this process, it asks the service which quoted records are purged, and repeats the question
 * until there is an answer. So it needs no stored state.
 */

/** Shortest and longest pause after a failure. The longest is the gate's pause after a refused key. */
const RETRY_MS = 1000;
const RETRY_MS_MAX = 300_000;
/**
 * Delay before the question is repeated once. A request needs less time than this from its recall until its block is in
 * the ledger, so the second answer covers blocks that were not recorded yet at the first one.
 */
const RECORDED_MS = 30_000;
/**
 * Bound on the bytes of texts in an answer: the smallest that the contract allows, because only the list of missing
 * records matters.
 */
const BYTES_MAX = 1024;

/** The blocks in this machine's ledger. */
export interface PlacedBlocks {
  /** Returns the references of all records that the blocks quote, by space. */
  placed(): Promise<ReadonlyMap<string, ReadonlySet<string>>>;
  /** Empties the blocks that quote one of these records. Returns their number. */
  forgetPlaced(forgotten: ForgottenElsewhere): Promise<number>;
}

export interface PlacedRecordsParts {
  readonly operations: Operations;
  readonly blocks: PlacedBlocks | undefined;
}

export class PlacedRecords {
  readonly #parts: PlacedRecordsParts;
  /** The last generation that the service has reported, by space. */
  readonly #spaces = new Map<string, string>();
  readonly #closing = new AbortController();
  #isWatching = false;

  constructor(parts: PlacedRecordsParts) {
    this.#parts = parts;
  }

  /** Makes seen() react to new generations. A command that ends soon does not call this. */
  watch(): void {
    this.#isWatching = true;
  }

  /** Takes the generation that the service reports. Returns at once. */
  seen(space: string, generation: string): void {
    if (!this.#isWatching || this.#spaces.get(space) === generation) return;
    this.#spaces.set(space, generation);
    void this.#settle(space, generation);
  }

  /** Asks until it succeeds, and once more after RECORDED_MS. Stops when the space has a newer generation. */
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
      // If a question failed, the answers to earlier ones still count.
      if (purged.length > 0) await blocks?.forgetPlaced({ space, refs: purged });
    }
  }

  close(): void {
    this.#closing.abort();
  }
}
