import { forgetOldest } from '../../core/bytes/forget-oldest.ts';
import type { Ledger, LedgerEntry, LedgerMiss } from '../../ports/ledger.ts';
import { forgottenAt } from '../files/marks.ts';
import { findOrphans, Journal, type JournalOptions, type OrphanedJournal } from './journal.ts';

/**
 * The ledger: memory first, a journal for what a kill must not take, a table for the rest. Nothing
 * here fails towards the request: without an entry the request is only a little dearer.
 */

/** An entry is about 2 kB with its block, so at most 40 MB; most blocks are empty or short. */
const ENTRIES_MAX = 20_000;
const JOURNAL_BYTES_MAX = 16 * 1024 * 1024;
/**
 * How long "no entry" is believed. In a tool loop a request comes every few seconds and must not
 * ask the table for every old message again; another process may write an entry meanwhile.
 */
const ABSENT_MS = 60_000;
const RETRY_MS = 1000;

/** Where entries live for good: shared with the other processes on this folder. */
export interface LedgerStore {
  findEntries(keys: readonly string[]): Promise<readonly LedgerEntry[]>;
  recordEntries(entries: readonly LedgerEntry[]): Promise<void>;
}

export interface LedgerOptions {
  readonly folder: string;
  readonly store: LedgerStore;
  report(line: string): void;
}

export class JournalLedger implements Ledger {
  readonly #options: LedgerOptions;
  readonly #journal: Journal;
  /** In the order of last use. */
  readonly #entries = new Map<string, LedgerEntry>();
  /** Keys without an entry, and until when that is believed. */
  readonly #absent = new Map<string, number>();
  readonly #undrained = new Map<string, LedgerEntry>();
  /** Keys of undrained entries from before something was forgotten: the table says what is left of them. */
  readonly #suspect = new Set<string>();
  #generation: number;
  #isDraining = false;
  #isClosed = false;
  #draining: Promise<void> = Promise.resolve();

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#generation = forgottenAt(options.folder);
    const journal: JournalOptions = {
      folder: options.folder,
      name: 'ledger',
      bytesMax: JOURNAL_BYTES_MAX,
    };
    this.#journal = new Journal(journal);
    // Now and not later: the first request after a kill must see what the last one did.
    this.#adopt(journal);
  }

  generation(): number {
    const now = forgottenAt(this.#options.folder);
    if (now !== this.#generation) {
      this.#generation = now;
      this.#entries.clear();
      this.#absent.clear();
      for (const key of this.#undrained.keys()) this.#suspect.add(key);
    }
    return now;
  }

  async find(
    keys: readonly string[],
    withinMs: number,
  ): Promise<ReadonlyMap<string, LedgerEntry> | LedgerMiss> {
    this.generation();
    const now = performance.now();
    const found = new Map<string, LedgerEntry>();
    const unknown: string[] = [];
    for (const key of keys) {
      const entry = this.#entries.get(key) ?? this.#undrainedEntry(key);
      if (entry !== undefined) found.set(key, this.#use(entry));
      else if ((this.#absent.get(key) ?? -Infinity) < now) unknown.push(key);
    }
    if (unknown.length === 0) return found;
    const isAnswered = await within(withinMs, this.#ask(unknown, found));
    if (isAnswered === undefined) return 'late';
    return isAnswered ? found : 'unavailable';
  }

  record(entries: readonly LedgerEntry[]): void {
    if (entries.length === 0) return;
    try {
      this.#journal.append(entries.map((entry) => JSON.stringify(entry)));
    } catch {
      this.#options.report('The ledger could not be written: the disk is full or read-only.');
    }
    this.#take(entries);
    this.#drainSoon();
  }

  /** Resolves when the table holds everything, or could not be reached. */
  async close(): Promise<void> {
    await this.#draining;
    this.#isClosed = true;
    this.#journal.close();
  }

  #adopt(journal: JournalOptions): void {
    const orphans = findOrphans(journal);
    for (const orphan of orphans)
      this.#take(orphan.values.flatMap((value) => entryFrom(value) ?? []));
    if (orphans.length === 0) return;
    this.#draining = this.#drainOrphans(orphans);
  }

  #take(entries: readonly LedgerEntry[]): void {
    for (const entry of entries) {
      this.#absent.delete(entry.key);
      this.#suspect.delete(entry.key);
      this.#undrained.set(entry.key, this.#use(entry));
    }
  }

  #undrainedEntry(key: string): LedgerEntry | undefined {
    return this.#suspect.has(key) ? undefined : this.#undrained.get(key);
  }

  #use(entry: LedgerEntry): LedgerEntry {
    this.#entries.delete(entry.key);
    this.#entries.set(entry.key, entry);
    forgetOldest(this.#entries, ENTRIES_MAX);
    return entry;
  }

  /** True when the table answered. */
  async #ask(keys: readonly string[], found: Map<string, LedgerEntry>): Promise<boolean> {
    const generation = this.#generation;
    if (keys.some((key) => this.#suspect.has(key)) && !(await this.#drain())) return false;
    try {
      const entries = await this.#options.store.findEntries(keys);
      // Something was forgotten meanwhile, maybe just this.
      if (this.generation() !== generation) return false;
      for (const entry of entries) {
        // What was recorded while the table was asked is newer than its answer.
        found.set(entry.key, this.#use(this.#entries.get(entry.key) ?? entry));
      }
    } catch {
      return false;
    }
    const until = performance.now() + ABSENT_MS;
    for (const key of keys) {
      if (found.has(key) || this.#entries.has(key)) continue;
      this.#absent.delete(key);
      this.#absent.set(key, until);
      forgetOldest(this.#absent, ENTRIES_MAX);
    }
    return true;
  }

  #drainSoon(): void {
    if (this.#isDraining || this.#isClosed) return;
    this.#isDraining = true;
    this.#draining = this.#drainAfter(this.#draining);
  }

  async #drainOrphans(orphans: readonly OrphanedJournal[]): Promise<void> {
    if (await this.#drain()) for (const orphan of orphans) orphan.remove();
  }

  async #drainAfter(earlier: Promise<void>): Promise<void> {
    await earlier;
    // What is recorded in one go is sent in one go.
    await new Promise((resolve) => setImmediate(resolve));
    const isDone = await this.#drain();
    this.#isDraining = false;
    if (!isDone) setTimeout(() => this.#drainSoon(), RETRY_MS).unref();
  }

  async #drain(): Promise<boolean> {
    while (this.#undrained.size > 0) {
      const batch = [...this.#undrained.values()];
      try {
        await this.#options.store.recordEntries(batch);
      } catch {
        return false;
      }
      for (const entry of batch) {
        if (this.#undrained.get(entry.key) !== entry) continue;
        this.#undrained.delete(entry.key);
        this.#suspect.delete(entry.key);
      }
    }
    try {
      this.#journal.reset();
    } catch {
      // The lines are read again by the next process, which changes nothing.
    }
    return true;
  }
}

/** Undefined when the work takes longer; it goes on, and what it finds serves the next request. */
async function within<Result>(ms: number, work: Promise<Result>): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function entryFrom(value: unknown): LedgerEntry | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Partial<LedgerEntry>;
  const isWhole =
    typeof fields.key === 'string' &&
    typeof fields.block === 'string' &&
    (fields.form === 'text' || fields.form === 'part') &&
    typeof fields.dropsEarlier === 'boolean' &&
    typeof fields.at === 'number';
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Every field was looked at.
  return isWhole ? (fields as LedgerEntry) : undefined;
}
