import { chunksOf } from '../../../../src/core/bytes/batches.ts';
import {
  boundedClosing,
  boundedOpening,
  type ReceiptClosing,
  type ReceiptOpening,
  headOf,
  type HeadFacts,
  NODE_LOST,
  receiptOf,
  receiptText,
} from '../../core/receipts.ts';
import {
  JournalFullError,
  type OpenReceipt,
  type Receipts,
  type ReceiptStore,
} from '../../ports/receipt-store.ts';
import { within } from '../../../../src/adapters/within.ts';
import { Journal, journalBytes, journalNames, takeJournals } from './journal.ts';
import { MemoryError } from '../../../../src/core/errors.ts';
import { canonicalJson } from '../../../../src/core/memory-api/canonical.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { receiptRow } from '../../core/receipt-rows.ts';
import { asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { RECEIPT_ID } from '../../core/ids.ts';
import { isTenantId } from '../../core/tenants.ts';

/**
 * Queues receipts for the store. One line in a file opens a receipt and another line closes it; for a rejected request
 * one line does both. Lines are written synchronously, so a kill loses none but those that a full disk refused. Soon
 * afterwards closed receipts are signed and stored in a batch. A node is one process, and has a file of its own, whose
 * name contains the node's id.
 */

interface ReceiptJournalOptions extends Storing {
  readonly folder: string;
  /** The id of this process: `node_` and 24 hex digits. */
  readonly node: string;
  report(line: string): void;
  /** Bound on the file, in bytes. */
  readonly bytesMax?: number;
}

const BYTES_MAX = 512 << 20;
/**
 * Bound on the lines of all receipts that are not stored yet, in characters, which are nearly all of one byte: some
 * 100,000 receipts. The process holds these lines in memory too.
 */
const KEPT_BYTES_MAX = 128 << 20;
/** Bytes reserved for the line that closes an open receipt. */
const CLOSING_BYTES = 4096;
/**
 * The longest opening line: its session, space and model have 640 characters together, of 6 bytes each if JSON escapes
 * them; the rest has about 1,500 bytes.
 */
const OPENING_BYTES = 6144;
/** Time to gather a batch. A receipt must be readable after 200 ms; storing takes some milliseconds. */
const BATCH_MS = 100;
/** Maximum number of receipts in a batch. So many signatures take 6 ms of the event loop. */
const BATCH_ROWS = 200;
const RETRY_MS = 1000;
/** Deadline of storing a batch, which takes some milliseconds. */
const STORE_MS = 30_000;
/**
 * How long the end of the process waits until the closed receipts are stored, and then once more until the heads are.
 */
const CLOSE_MS = 5_000;
/** Size in bytes from which the file is rewritten as soon as less than half of its bytes are needed. */
const COMPACT_BYTES = 32 << 20;

interface Kept extends JournalledReceipt {
  /** The receipt's lines in the journal, which a rewritten file keeps. */
  readonly lines: readonly string[];
}

export class ReceiptJournal implements Receipts {
  readonly #options: ReceiptJournalOptions;
  readonly #journal: Journal;
  readonly #bytesMax: number;
  /** The last receipt number of each tenant. */
  readonly #seqs = new Map<string, number>();
  readonly #open = new Map<string, Kept>();
  /** Receipts that are closed but not stored yet, in the order in which they were closed. */
  readonly #closed = new Map<string, Kept>();
  #keptBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #storing: Promise<boolean> = Promise.resolve(true);
  #isStoring = false;
  #hasFailed = false;
  #isClosed = false;
  #isUnwritable = false;

  constructor(options: ReceiptJournalOptions) {
    this.#options = options;
    this.#bytesMax = options.bytesMax ?? BYTES_MAX;
    const { folder, node } = options;
    this.#journal = new Journal({ folder, name: nameOf(node), bytesMax: this.#bytesMax });
  }

  open(given: ReceiptOpening): OpenReceipt {
    const opening = boundedOpening(given);
    const { receiptId } = opening;
    this.#open.set(receiptId, this.#write(opening));
    return { close: (closing) => this.#close(receiptId, boundedClosing(closing)) };
  }

  reject(opening: ReceiptOpening, closing: ReceiptClosing): void {
    const kept = this.#write(boundedOpening(opening), boundedClosing(closing));
    this.#closed.set(opening.receiptId, kept);
    this.#storeSoon();
  }

  problem(): string | undefined {
    if (this.#isUnwritable && !this.#addEmptyLine()) {
      return 'The journal of receipts cannot be written.';
    }
    return this.#hasRoom() ? undefined : 'The journal of receipts is full.';
  }

  /** The number of receipts that are not stored yet, including open ones. */
  get waiting(): number {
    return this.#open.size + this.#closed.size;
  }

  /** Stores closed receipts. Returns false if that is not possible now. */
  async flush(): Promise<boolean> {
    // Each batch begins when the one before it is stored.
    // oxlint-disable-next-line no-await-in-loop
    while (this.#closed.size > 0) if (!(await this.#storeNext())) return false;
    return this.#storing;
  }

  /**
   * Closes the journal. If all receipts are stored and none is open, it stores the last numbers as closed heads and
   * empties the file. Otherwise the file stays for `recoverReceipts`, which the next process calls.
   */
  async close(): Promise<void> {
    const isDone = (await within(CLOSE_MS, this.flush())) === true && this.#open.size === 0;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    if (isDone) {
      const { node } = this.#options;
      const seqs = [...this.#seqs];
      // An empty file is deleted below. With a line it stays until the heads are stored.
      if (seqs.length > 0) this.#addEmptyLine();
      const heads = seqs.map(([tenant, lastSeq]) => ({ tenant, node, lastSeq }));
      const stored = closeHeads(this.#options, heads).then(
        () => true,
        () => false,
      );
      if ((await within(CLOSE_MS, stored)) === true) this.#journal.reset();
    }
    this.#journal.close();
  }

  #write(opening: ReceiptOpening, closing?: ReceiptClosing): Kept {
    const seq = (this.#seqs.get(opening.tenant) ?? 0) + 1;
    const line = JSON.stringify({ opened: opening, seq, closing } satisfies ReceiptLine);
    if (!this.#hasRoom()) {
      throw new JournalFullError('The journal of receipts is full.');
    }
    try {
      this.#journal.append([line]);
      this.#isUnwritable = false;
    } catch (error) {
      this.#isUnwritable = true;
      throw new JournalFullError('The journal of receipts cannot be written.', { cause: error });
    }
    this.#seqs.set(opening.tenant, seq);
    this.#keptBytes += line.length;
    return { opening, seq, lines: [line], closing };
  }

  /**
   * Says whether one more receipt fits, however long its texts are. While this is false, the service reports that it is
   * not ready, so a load balancer sends no request to a node that would refuse it.
   */
  #hasRoom(): boolean {
    const reserved = (this.#open.size + 1) * CLOSING_BYTES + OPENING_BYTES;
    return this.#journal.bytes + reserved <= this.#bytesMax && this.#keptBytes < KEPT_BYTES_MAX;
  }

  /** Writes a line with an empty value. Returns whether the file can be written. */
  #addEmptyLine(): boolean {
    try {
      this.#journal.append(['""']);
      this.#isUnwritable = false;
    } catch {
      return false;
    }
    return true;
  }

  #close(receiptId: string, closing: ReceiptClosing): void {
    const kept = this.#open.get(receiptId);
    if (kept === undefined) return;
    this.#open.delete(receiptId);
    const line = JSON.stringify({ closed: receiptId, closing } satisfies ReceiptLine);
    try {
      this.#journal.append([line]);
    } catch {
      // The request has ended, so its receipt is stored from memory. If the process is killed before that, the
      // receipt's status is `unknown`.
      this.#isUnwritable = true;
    }
    this.#keptBytes += line.length;
    const { opening, seq, lines } = kept;
    this.#closed.set(receiptId, { opening, seq, closing, lines: [...lines, line] });
    this.#storeSoon();
  }

  #storeSoon(): void {
    if (this.#isStoring || this.#isClosed) return;
    const isFull = this.#closed.size >= BATCH_ROWS && !this.#hasFailed;
    const delayMs = this.#hasFailed ? RETRY_MS : BATCH_MS;
    if (isFull) void this.#storeNext();
    else this.#timer ??= setTimeout(() => void this.#storeNext(), delayMs);
  }

  #storeNext(): Promise<boolean> {
    if (this.#isStoring) return this.#storing;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = [...this.#closed.values()].slice(0, BATCH_ROWS);
    if (batch.length === 0) return Promise.resolve(true);
    this.#isStoring = true;
    this.#storing = this.#store(batch).finally(() => {
      this.#isStoring = false;
      if (this.#closed.size > 0) this.#storeSoon();
    });
    return this.#storing;
  }

  async #store(batch: readonly Kept[]): Promise<boolean> {
    try {
      const storing = storeBatch(this.#options, batch, this.#options.node).then(() => true);
      // After a missed deadline the receipts are sent again. The store stores each receipt once.
      if ((await within(STORE_MS, storing)) !== true) throw new Error('The store does not answer.');
    } catch (error) {
      // A MemoryError's message is for people, and contains no record's text.
      const why = error instanceof MemoryError ? ` ${error.message}` : '';
      if (!this.#hasFailed) {
        this.#options.report(
          `The store accepts no receipts now, so they wait in the journal.${why}`,
        );
      }
      this.#hasFailed = true;
      return false;
    }
    if (this.#hasFailed) this.#options.report('Receipts are stored again.');
    this.#hasFailed = false;
    for (const { opening, lines } of batch) {
      this.#closed.delete(opening.receiptId);
      this.#keptBytes -= lines.reduce((sum, { length }) => sum + length, 0);
    }
    this.#compact();
    return true;
  }

  /**
   * Empties the file if no receipt waits. Otherwise rewrites a file above COMPACT_BYTES if stored receipts are over
   * half of it. If this fails, the file stays longer than needed.
   */
  #compact(): void {
    try {
      if (this.waiting === 0) this.#journal.reset();
      else if (this.#journal.bytes > COMPACT_BYTES && this.#keptBytes * 2 < this.#journal.bytes) {
        const kept = [...this.#open.values(), ...this.#closed.values()];
        this.#journal.replace(kept.flatMap(({ lines }) => lines));
      }
    } catch {
      this.#isUnwritable = true;
    }
  }
}

/** Returns how many processes have a journal of receipts in this folder, and the total size of these journals. */
export function waitingReceipts(folder: string): {
  readonly nodes: number;
  readonly bytes: number;
} {
  const names = journalNames(folder).filter((name) => name.startsWith(NAME_START));
  return { nodes: names.length, bytes: journalBytes(folder, NAME_START) };
}

export interface Recovered {
  readonly nodes: number;
  readonly receipts: number;
  /** The number of receipts that were still open when their process ended. */
  readonly unknown: number;
}

/**
 * Stores the receipts of ended processes and closes their heads. Call it only if no other process writes receipts in
 * this folder. Rejects if the receipts cannot be signed or stored; then the files stay.
 */
export async function recoverReceipts(
  options: Omit<ReceiptJournalOptions, 'bytesMax'>,
): Promise<Recovered> {
  const { folder, node: own } = options;
  const sum = { nodes: 0, receipts: 0, unknown: 0 };
  for (const name of journalNames(folder)) {
    if (!name.startsWith(NAME_START) || name === nameOf(own)) continue;
    const node = name.slice(NAME_START.length);
    // oxlint-disable-next-line no-await-in-loop -- One node after the other.
    const { receipts, unknown } = await recoverNode(options, { name, node });
    sum.nodes += 1;
    sum.receipts += receipts;
    sum.unknown += unknown;
  }
  return sum;
}

async function recoverNode(
  options: Omit<ReceiptJournalOptions, 'bytesMax'>,
  { name, node }: { readonly name: string; readonly node: string },
): Promise<Omit<Recovered, 'nodes'>> {
  const { folder, store } = options;
  const files = takeJournals({ folder, name });
  const found = readReceipts(files.flatMap(({ values }) => values));
  const unknown = found.filter(({ closing }) => closing === undefined).length;
  for (const batch of chunksOf(found, BATCH_ROWS)) {
    // oxlint-disable-next-line no-await-in-loop -- One transaction after the other.
    await storeBatch(options, batch, node);
  }
  // The store has raised each open head to the last stored number. All receipts are stored now, so the heads are
  // final.
  for (;;) {
    /* oxlint-disable no-await-in-loop */
    const heads = await store.openHeads({ node, limit: BATCH_ROWS });
    if (heads.length === 0) break;
    await closeHeads(options, heads);
    /* oxlint-enable no-await-in-loop */
  }
  for (const file of files) file.remove();
  return { receipts: found.length, unknown };
}

const NAME_START = 'receipts_';

function nameOf(node: string): string {
  return `${NAME_START}${node}`;
}

/**
 * Signs receipts or heads, given as canonical JSON, with one key. Returns their signed JSON, or rejects. Without a
 * signing key, returns the JSON unchanged.
 */
type Sign = (canonical: readonly string[]) => Promise<readonly string[]>;

interface Storing {
  readonly version: string;
  readonly store: ReceiptStore;
  readonly sign: Sign;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

async function storeBatch(
  { version, store, sign }: Storing,
  batch: readonly JournalledReceipt[],
  node: string,
): Promise<void> {
  const closed = batch.map(({ opening, closing = NODE_LOST, seq }) => {
    return { opening, closing, receipt: receiptOf(opening, closing, { version, node, seq }) };
  });
  const bodies = await sign(closed.map(({ receipt }) => receiptText(receipt)));
  await store.storeReceipts(closed.map((one, at) => receiptRow(one, bodies[at] ?? '')));
}

async function closeHeads(
  { store, sign, now }: Storing,
  heads: readonly HeadFacts[],
): Promise<void> {
  const at = isoTime(now());
  const texts = heads.map((head) => canonicalJson(headOf(head, { at, isClosed: true })) ?? '');
  const bodies = await sign(texts);
  await store.closeHeads(heads.map((head, place) => ({ ...head, body: bodies[place] ?? '' })));
}

/** A line of the journal. It opens a receipt, closes one, or does both. */
type ReceiptLine =
  | {
      readonly opened: ReceiptOpening;
      readonly seq: number;
      readonly closing?: ReceiptClosing | undefined;
    }
  | { readonly closed: string; readonly closing: ReceiptClosing };

/** A receipt as read from the journal. A receipt without `closing` is open. */
interface JournalledReceipt {
  readonly opening: ReceiptOpening;
  readonly seq: number;
  readonly closing?: ReceiptClosing | undefined;
}

/** Reads receipts from the lines of one node's files, in any order of the files. Returns each receipt once. */
function readReceipts(values: readonly unknown[]): readonly JournalledReceipt[] {
  const receipts = new Map<string, JournalledReceipt>();
  const closings = new Map<string, ReceiptClosing>();
  for (const line of values.flatMap((value) => lineOf(value) ?? [])) {
    const receiptId = 'closed' in line ? line.closed : line.opened.receiptId;
    if (line.closing !== undefined) closings.set(receiptId, line.closing);
    if ('opened' in line) receipts.set(receiptId, { opening: line.opened, seq: line.seq });
  }
  return [...receipts].map(([id, receipt]) => ({ ...receipt, closing: closings.get(id) }));
}

// A checksum protects each line, and only svc writes them, so only the line's kind is checked.
/* oxlint-disable typescript/no-unsafe-type-assertion */
function lineOf(value: unknown): ReceiptLine | undefined {
  const { opened, seq, closed, closing } = asRecord(value);
  if (typeof closed === 'string') {
    const isWhole = RECEIPT_ID.test(closed) && 'status' in asRecord(closing);
    return isWhole ? (value as ReceiptLine) : undefined;
  }
  const { receiptId, tenant, decided } = asRecord(opened);
  const isWhole =
    RECEIPT_ID.test(String(receiptId)) &&
    isTenantId(String(tenant)) &&
    Number.isSafeInteger(seq) &&
    'memory_mode' in asRecord(decided);
  return isWhole ? (value as ReceiptLine) : undefined;
}
