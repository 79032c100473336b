import { setTimeout as sleep } from 'node:timers/promises';
import { RETRIEVE_REFS_MAX } from '../../core/memory-api/limits.ts';
import type { Operations } from './operations.ts';

/**
 * Finds out which records that placed blocks quote the service has purged, whichever machine asked for it, and
 * has those blocks emptied. The generation of a space changes when a purge begins, and again when its last
 * record is gone. A process asks about each generation that it sees, also after a start, until it has an
 * answer and the blocks are empty. So nothing about this is stored.
 */

/** After a failure svc waits so long: first for a service that is busy, in the end as long as for a refused key. */
const RETRY_MS = 1000;
const RETRY_MS_MAX = 300_000;
/** More than a request takes from its recall until its block is recorded: a block that was on its way is there. */
const RECORDED_MS = 30_000;
/** Whether the service holds a record is asked, and not its text. The least that the contract allows. */
const BYTES_MAX = 1024;

/** The blocks that were placed in conversations of this machine. */
export interface PlacedBlocks {
  /** The references of all records that they quote, by space. */
  placed(): Promise<ReadonlyMap<string, ReadonlySet<string>>>;
  /** Empties those that quote one of these records. */
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
  /** The generation that a space had last. */
  readonly #spaces = new Map<string, string>();
  readonly #closing = new AbortController();
  #isWatching = false;

  constructor(parts: PlacedRecordsParts) {
    this.#parts = parts;
  }

  /** From now on each new generation is a reason to ask. A command that ends soon does not call this. */
  watch(): void {
    this.#isWatching = true;
  }

  /** Notes the generation that the service shows. Returns at once. */
  seen(space: string, generation: string): void {
    if (!this.#isWatching || this.#spaces.get(space) === generation) return;
    this.#spaces.set(space, generation);
    void this.#settle(space, generation);
  }

  /** Asks until it has succeeded at once and after a while, or until a newer generation is asked about. */
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

  /** Asks which of the placed records of the space are purged, and empties the blocks that quote them. */
  async emptyPurged(space: string, signal: AbortSignal): Promise<void> {
    const { operations, blocks } = this.#parts;
    const placed = [...((await blocks?.placed())?.get(space) ?? [])];
    const purged: string[] = [];
    try {
      for (let at = 0; at < placed.length; at += RETRIEVE_REFS_MAX) {
        const refs = placed.slice(at, at + RETRIEVE_REFS_MAX);
        const question = { space, refs, max_bytes: BYTES_MAX };
        // oxlint-disable-next-line no-await-in-loop -- No request waits for it.
        const { missing } = await operations.retrieve(question, signal);
        const gone = new Set(
          missing.filter(({ reason }) => reason === 'purged').map(({ ref }) => ref),
        );
        purged.push(...refs.filter((ref) => gone.has(ref)));
      }
    } finally {
      // Also after a part of the answers.
      if (purged.length > 0) await blocks?.forgetPlaced({ space, refs: purged });
    }
  }

  close(): void {
    this.#closing.abort();
  }
}
