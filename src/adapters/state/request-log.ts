import type {
  ConversationFilter,
  RequestFilter,
  RequestList,
  RequestLog,
  RequestRow,
  RequestSum,
  SumFilter,
} from '../../ports/request-log.ts';
import type { TrialReport } from '../../core/meter/hold-out.ts';
import type { QuotaReport, QuotaRow } from '../../core/meter/quota.ts';
import type { StateWriter } from './state-writer.ts';

/** The request log in `state.db`: a row is one statement; lists and sums are the store thread's. */

/** A list shows what was written before it; a lock is held for a few milliseconds. */
const WRITE_MS = 1000;
const SAME_QUOTA_MS = 5 * 60_000;
/** Pruning takes 11 ms, and reads no row that matters within so many. */
const ROWS_PER_PRUNE = 256;

export interface RequestReader {
  listRequests(filter: RequestList): Promise<readonly RequestRow[]>;
  findRequests(filter: RequestFilter): Promise<readonly RequestRow[]>;
  conversationRequests(filter: ConversationFilter): Promise<readonly RequestRow[]>;
  sumRequests(filter: SumFilter): Promise<readonly RequestSum[]>;
  quota(now: number): Promise<readonly QuotaReport[]>;
  trial(since: number): Promise<TrialReport>;
  /** Deletes old rows of the state. */
  pruneState(): Promise<void>;
}

export class StateRequestLog implements RequestLog {
  readonly #writer: StateWriter;
  readonly #reader: RequestReader;
  #added = 0;
  #lastQuota: { readonly said: string; readonly at: number } | undefined;

  constructor(writer: StateWriter, reader: RequestReader) {
    this.#writer = writer;
    this.#reader = reader;
  }

  add(row: RequestRow): void {
    const { id, at } = row;
    const text = JSON.stringify(row);
    this.#writer.put((rows) => {
      rows.run('INSERT INTO requests (id, at, row) VALUES (?, ?, ?)', id, at, text);
    });
    this.#added += 1;
    // Old rows that stay are only a longer list.
    if (this.#added % ROWS_PER_PRUNE === 1) void this.#reader.pruneState().catch(() => undefined);
  }

  /** A reading that says nothing new is left out for a while: a tool loop brings one a second. */
  addQuota(row: QuotaRow): void {
    const { at, login, reading, client, space, conversation, model } = row;
    const said = JSON.stringify([login, reading, client, space, conversation, model]);
    const last = this.#lastQuota;
    if (last?.said === said && Math.abs(at - last.at) < SAME_QUOTA_MS) return;
    this.#lastQuota = { said, at };
    this.#writer.put((rows) => {
      rows.run('INSERT INTO quota (at, row) VALUES (?, ?)', at, JSON.stringify(row));
    });
  }

  async quota(now: number): Promise<readonly QuotaReport[]> {
    await this.#writer.caughtUp(WRITE_MS);
    return this.#reader.quota(now);
  }

  async trial(since: number): Promise<TrialReport> {
    await this.#writer.caughtUp(WRITE_MS);
    return this.#reader.trial(since);
  }

  async list(filter: RequestList): Promise<readonly RequestRow[]> {
    await this.#writer.caughtUp(WRITE_MS);
    return this.#reader.listRequests(filter);
  }

  async find(filter: RequestFilter): Promise<readonly RequestRow[]> {
    await this.#writer.caughtUp(WRITE_MS);
    return this.#reader.findRequests(filter);
  }

  conversation(filter: ConversationFilter): Promise<readonly RequestRow[]> {
    return this.#reader.conversationRequests(filter);
  }

  async sum(filter: SumFilter): Promise<readonly RequestSum[]> {
    await this.#writer.caughtUp(WRITE_MS);
    return this.#reader.sumRequests(filter);
  }
}
