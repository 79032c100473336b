import type { RecordKey } from '../../ports/memory.ts';
import {
  cleanOutputFiles,
  outputFileRefs,
  removeOutputFiles,
  writeOutputFile,
} from '../files/output-files.ts';
import { forgetOldest } from '../../core/bytes/recent.ts';
import { referenceOf } from '../../core/memory/reference.ts';

/**
 * Keeps a file beside the store for each output that is left out. A caller that asks for a proof is
 * about to leave the output out, so its file is written from then on, while the request is on its
 * way. The store's row stays the truth, and a file whose row is deleted is deleted too.
 */

/** An output is proven at every request; its file needs a look once in a while. */
const LOOK_MS = 3_600_000;
/** More than a long session leaves out; what is dropped comes with the next request. */
const WAITING_MAX = 4_096;
const LOOKED_MAX = 20_000;
/** Cleaning reads the sizes of all files. */
const WRITES_PER_CLEAN = 256;

export interface OutputMirrorOptions {
  readonly folder: string;
  /** The stored text, undefined when it is not held. */
  textOf(key: RecordKey): Promise<string | undefined>;
  /** The references among these that name a stored output. */
  heldOf(refs: readonly string[]): Promise<readonly string[]>;
  report(line: string): void;
}

interface Waiting {
  readonly space: string;
  readonly digest: string;
}

export class OutputMirror {
  readonly #options: OutputMirrorOptions;
  readonly #waiting = new Map<string, Waiting>();
  /** When a file was last looked after, by space and digest. */
  readonly #looked = new Map<string, number>();
  #working: Promise<void> | undefined;
  #writes = 0;
  #isClosed = false;
  #hasFailed = false;

  constructor(options: OutputMirrorOptions) {
    this.#options = options;
  }

  /** Returns at once. */
  keep(space: string, digests: readonly string[]): void {
    const now = Date.now();
    for (const digest of digests) {
      const key = `${space} ${digest}`;
      const isFresh = now - (this.#looked.get(key) ?? -Infinity) < LOOK_MS;
      if (!isFresh && this.#waiting.size < WAITING_MAX) this.#waiting.set(key, { space, digest });
    }
    if (this.#waiting.size > 0) this.#working ??= this.#work();
  }

  /** Removes the files whose text is not held any more. Throws when one cannot be removed. */
  async sweep(): Promise<void> {
    const { folder } = this.#options;
    const refs = await outputFileRefs(folder);
    if (refs.length === 0) return;
    const held = new Set(await this.#options.heldOf(refs));
    await removeOutputFiles(
      folder,
      refs.filter((ref) => !held.has(ref)),
    );
    this.#looked.clear();
  }

  /** The store was replaced, so every file is checked again. */
  forgetLooked(): void {
    this.#looked.clear();
  }

  /** Resolves when nothing is written any more; what still waits comes with a later request. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    for (const [key, { space, digest }] of this.#waiting) {
      if (this.#isClosed) break;
      try {
        // oxlint-disable-next-line no-await-in-loop -- One after the other: no request waits for
        // these.
        await this.#keepOne({ space, digest });
        this.#note(key);
      } catch {
        if (!this.#hasFailed) {
          this.#options.report(
            'svc cannot write left-out outputs as files, so a client in a read-only sandbox cannot read them again.',
          );
        }
        this.#hasFailed = true;
      }
      this.#waiting.delete(key);
    }
    this.#working = undefined;
  }

  async #keepOne({ space, digest }: Waiting): Promise<void> {
    const { folder } = this.#options;
    if (this.#writes % WRITES_PER_CLEAN === 0) await cleanOutputFiles(folder, Date.now());
    this.#writes += 1;
    const text = await this.#options.textOf({ space, digest });
    if (text === undefined) return;
    const ref = referenceOf(digest);
    await writeOutputFile(folder, { ref, text }, Date.now());
    // Forgotten by another process meanwhile: it removes the file either before this look or after it.
    if ((await this.#options.textOf({ ref })) === undefined) await removeOutputFiles(folder, [ref]);
  }

  #note(key: string): void {
    this.#looked.delete(key);
    this.#looked.set(key, Date.now());
    forgetOldest(this.#looked, LOOKED_MAX);
  }
}
