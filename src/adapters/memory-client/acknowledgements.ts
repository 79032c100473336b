import { forgetOldest } from '../../core/bytes/recent.ts';
import { COMMIT_SEQUENCE_MAX } from '../../core/memory-api/limits.ts';
import { findOrphans, Journal, type JournalOptions } from '../journals/journal.ts';

/**
 * Records the texts that a memory service has acknowledged, that is, confirmed as stored: for each space its generation,
 * the highest commit sequence, and the digests of the texts. svc asks for proofs of acknowledged texts only, so the
 * service learns no digest of a text that it did not get.
 *
 * A journal keeps the acknowledgements, so that svc leaves out the same outputs after a restart. If one is lost, svc
 * sends the text again, and the service answers `duplicate`.
 */

/** Bound on acknowledged texts: some weeks of work, 7 MB in the journal. */
const ACKNOWLEDGED_MAX = 50_000;
const JOURNAL_BYTES_MAX = 32 * 1024 * 1024;
/** The journal is rewritten if it exceeds twice the bytes of the valid acknowledgements by this number. */
const REPLACE_BYTES_MIN = 2 * 1024 * 1024;
/** Bytes of an acknowledged text in the journal, rounded up. */
const BYTES_PER_ENTRY = 160;

export interface Acknowledged {
  /** The digest of the record's canonical bytes, which the service uses. */
  readonly digest: string;
  readonly bytes: number;
}

export type AcknowledgedText = Acknowledged & {
  /** The digest of the text, which svc uses. */
  readonly text: string;
};

interface SpaceState {
  readonly generation: string;
  sequence: number;
  /** Milliseconds since 1970 of the newest line. */
  at: number;
}

/**
 * `moved`: the generation has changed, so earlier acknowledgements are invalid. `behind`: the service reports a lower
 * commit sequence than before, so it may have lost texts.
 */
export type SpaceChange = 'same' | 'moved' | 'behind';

export interface AcknowledgementsOptions {
  /** The journal; undefined for a command that ends soon: then acknowledgements are kept only in memory. */
  readonly journal?: { readonly folder: string; readonly name: string };
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with each generation that the service reports. */
  readonly onSeen?: (space: string, generation: string) => void;
  /** Called when a space has a new generation, because something was forgotten there on any machine. */
  readonly onMoved?: (space: string) => Promise<void>;
  /** Called once for each space in which the service reports a lower commit sequence than before. */
  readonly onBehind?: (space: string) => void;
}

export class Acknowledgements {
  readonly #now: () => number;
  readonly #onSeen: AcknowledgementsOptions['onSeen'];
  readonly #onMoved: ((space: string) => Promise<void>) | undefined;
  /**
   * For each space whose change `onMoved` has not handled yet, the generation before the change. The journal gets this
   * one instead of the new one, so that the change is noticed again after a restart.
   */
  readonly #before = new Map<string, string>();
  /** Spaces whose `onMoved` failed; it is called again with the next answer. */
  readonly #failed = new Set<string>();
  readonly #onBehind: ((space: string) => void) | undefined;
  readonly #behind = new Set<string>();
  readonly #journal: Journal | undefined;
  readonly #spaces = new Map<string, SpaceState>();
  /** Acknowledged texts by `keyOf`, oldest first. */
  readonly #texts = new Map<string, Acknowledged>();

  constructor({ journal, now, onSeen, onMoved, onBehind }: AcknowledgementsOptions) {
    this.#onSeen = onSeen;
    this.#onBehind = onBehind;
    this.#now = now;
    this.#onMoved = onMoved;
    if (journal === undefined) return;
    const options: JournalOptions = { ...journal, bytesMax: JOURNAL_BYTES_MAX };
    this.#journal = new Journal(options);
    this.#adopt(options);
  }

  generationOf(space: string): string | undefined {
    return this.#spaces.get(space)?.generation;
  }

  /** Returns the highest commit sequence that the service has reported in the space's present generation. */
  sequenceOf(space: string): number | undefined {
    return this.#spaces.get(space)?.sequence;
  }

  find(space: string, text: string): Acknowledged | undefined {
    return this.#texts.get(keyOf(space, text));
  }

  /** Records the generation and commit sequence that the service reports, and returns how they differ from before. */
  observe(space: string, generation: string, sequence: number): SpaceChange {
    this.#onSeen?.(space, generation);
    const known = this.#spaces.get(space);
    if (known === undefined || known.generation !== generation) {
      this.#clear(space);
      this.#spaces.set(space, { generation, sequence, at: this.#now() });
      if (known === undefined || this.#onMoved === undefined) {
        this.#write([this.#lineOf(space, [])]);
      } else {
        if (!this.#before.has(space)) this.#before.set(space, known.generation);
        void this.#move(space, this.#onMoved);
      }
      return known === undefined ? 'same' : 'moved';
    }
    if (this.#onMoved !== undefined && this.#failed.has(space)) {
      void this.#move(space, this.#onMoved);
    }
    if (sequence < known.sequence) {
      if (!this.#behind.has(space)) this.#onBehind?.(space);
      this.#behind.add(space);
      return 'behind';
    }
    known.sequence = sequence;
    known.at = this.#now();
    return 'same';
  }

  add(space: string, texts: readonly AcknowledgedText[]): void {
    if (texts.length === 0) return;
    for (const { text, digest, bytes } of texts) {
      this.#texts.set(keyOf(space, text), { digest, bytes });
    }
    forgetOldest(this.#texts, ACKNOWLEDGED_MAX);
    this.#write([this.#lineOf(space, texts)]);
  }

  /** Drops an acknowledgement, because the service says that it does not have the text. */
  drop(space: string, text: string): void {
    this.#texts.delete(keyOf(space, text));
  }

  close(): void {
    this.#journal?.close();
  }

  /** Calls `onMoved`, and records its success in the journal. Never rejects. */
  async #move(space: string, onMoved: (space: string) => Promise<void>): Promise<void> {
    const generation = this.generationOf(space);
    this.#failed.delete(space);
    try {
      await onMoved(space);
    } catch {
      this.#failed.add(space);
      return;
    }
    // If the generation has changed again meanwhile, observe() has called this again for that change.
    if (this.generationOf(space) !== generation) return;
    this.#before.delete(space);
    this.#write([this.#lineOf(space, this.#textsOf(space))]);
  }

  #textsOf(space: string): AcknowledgedText[] {
    const start = keyOf(space, '');
    return [...this.#texts]
      .filter(([key]) => key.startsWith(start))
      .map(([key, acknowledged]) => ({ text: key.slice(start.length), ...acknowledged }));
  }

  #clear(space: string): void {
    const start = keyOf(space, '');
    for (const key of Array.from(this.#texts.keys())) {
      if (key.startsWith(start)) this.#texts.delete(key);
    }
  }

  #lineOf(space: string, texts: readonly AcknowledgedText[]): string {
    const { generation = '', sequence = 0 } = this.#spaces.get(space) ?? {};
    const before = this.#before.get(space);
    const line: JournalLine =
      before === undefined
        ? { space, generation, sequence, at: this.#now(), texts }
        : { space, generation: before, sequence: 0, at: this.#now(), texts: [] };
    return JSON.stringify(line);
  }

  #write(lines: readonly string[]): void {
    try {
      this.#journal?.append(lines);
      const liveBytes = this.#texts.size * BYTES_PER_ENTRY;
      if ((this.#journal?.bytes ?? 0) > 2 * liveBytes + REPLACE_BYTES_MIN) {
        this.#journal?.replace(this.#allLines());
      }
    } catch {
      // Without the line, svc sends these texts again after a restart.
    }
  }

  #allLines(): string[] {
    return [...this.#spaces.keys()].map((space) => this.#lineOf(space, this.#textsOf(space)));
  }

  #adopt(options: JournalOptions): void {
    const orphans = findOrphans(options);
    const lines = orphans.flatMap(({ values }) => values.flatMap((value) => lineFrom(value) ?? []));
    // The newest line decides about a space, whichever process has written it.
    for (const line of lines.toSorted((one, other) => one.at - other.at)) this.#take(line);
    if (orphans.length === 0) return;
    try {
      this.#journal?.append(this.#allLines());
    } catch {
      return;
    }
    for (const orphan of orphans) orphan.remove();
  }

  #take({ space, generation, sequence, at, texts }: JournalLine): void {
    const known = this.#spaces.get(space);
    if (known !== undefined && known.generation !== generation) this.#clear(space);
    const highest =
      known?.generation === generation ? Math.max(known.sequence, sequence) : sequence;
    this.#spaces.set(space, { generation, sequence: highest, at });
    for (const { text, digest, bytes } of texts) {
      this.#texts.set(keyOf(space, text), { digest, bytes });
    }
  }
}

interface JournalLine {
  readonly space: string;
  readonly generation: string;
  readonly sequence: number;
  readonly at: number;
  readonly texts: readonly AcknowledgedText[];
}

function keyOf(space: string, text: string): string {
  return `${space} ${text}`;
}

function lineFrom(value: unknown): JournalLine | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Partial<JournalLine>;
  const isWhole =
    typeof fields.space === 'string' &&
    typeof fields.generation === 'string' &&
    typeof fields.sequence === 'number' &&
    fields.sequence <= COMMIT_SEQUENCE_MAX &&
    typeof fields.at === 'number' &&
    Array.isArray(fields.texts);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The members are checked above; svc wrote the list.
  return isWhole ? (fields as JournalLine) : undefined;
}
