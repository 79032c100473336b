import { RETRIEVE_REFS_MAX } from '../../core/memory-api/limits.ts';
import type { Operations } from './operations.ts';

/**
 * Finds out which records that placed blocks quote the service has purged, whichever machine asked for it, and
 * has those blocks emptied. A purge changes the generation of its space. A process sees each generation for
 * the first time once, also after a start, so nothing about this is stored.
 */

/**
 * The service shows the new generation when a purge begins, and some records until it ends. So svc asks at
 * once, and again when the space is used after this time. It also repeats a question that failed.
 */
const AGAIN_MS = 300_000;
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

interface Seen {
  readonly generation: string;
  /** By the monotonic clock. */
  readonly at: number;
  askedAt: number;
  isSettled: boolean;
}

export class PlacedRecords {
  readonly #parts: PlacedRecordsParts;
  readonly #spaces = new Map<string, Seen>();
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
    if (!this.#isWatching) return;
    const now = performance.now();
    const known = this.#spaces.get(space);
    const seen: Seen =
      known?.generation === generation
        ? known
        : { generation, at: now, askedAt: -Infinity, isSettled: false };
    this.#spaces.set(space, seen);
    if (seen.isSettled || now - seen.askedAt < AGAIN_MS) return;
    seen.askedAt = now;
    void this.#settle(space, seen);
  }

  async #settle(space: string, seen: Seen): Promise<void> {
    try {
      await this.emptyPurged(space, this.#closing.signal);
      seen.isSettled = seen.askedAt - seen.at >= AGAIN_MS;
    } catch {
      // It is asked again later.
    }
  }

  /** Asks which of the placed records of the space are purged, and empties the blocks that quote them. */
  async emptyPurged(space: string, signal: AbortSignal): Promise<void> {
    const { operations, blocks } = this.#parts;
    const placed = [...((await blocks?.placed())?.get(space) ?? [])];
    const purged: string[] = [];
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
    if (purged.length > 0) await blocks?.forgetPlaced({ space, refs: purged });
  }

  close(): void {
    this.#closing.abort();
  }
}
