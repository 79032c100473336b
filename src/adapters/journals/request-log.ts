import type {
  ConversationFilter,
  RequestFilter,
  RequestList,
  RequestLog,
  RequestRow,
  RequestSum,
  SumFilter,
} from '../../ports/request-log.ts';

/** Request rows on their way to the table: collected, sent together, lost with a kill. */

const BATCH_ROWS = 64;
const BATCH_MS = 250;
/** A store that is away for long: the newest rows are kept. About 1 kB each. */
const WAITING_ROWS_MAX = 4096;

/** A row as the table keeps it: to copy a text to another thread costs less than to copy an object. */
export interface WrittenRow {
  readonly id: string;
  readonly at: number;
  /** The RequestRow as JSON. */
  readonly row: string;
}

export interface RequestStore {
  addRequests(rows: readonly WrittenRow[]): Promise<void>;
  listRequests(filter: RequestList): Promise<readonly RequestRow[]>;
  findRequests(filter: RequestFilter): Promise<readonly RequestRow[]>;
  conversationRequests(filter: ConversationFilter): Promise<readonly RequestRow[]>;
  sumRequests(filter: SumFilter): Promise<readonly RequestSum[]>;
}

export class BatchedRequestLog implements RequestLog {
  readonly #store: RequestStore;
  #rows: WrittenRow[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(store: RequestStore) {
    this.#store = store;
  }

  add(row: RequestRow): void {
    this.#rows.push({ id: row.id, at: row.at, row: JSON.stringify(row) });
    if (this.#rows.length > WAITING_ROWS_MAX) this.#rows.shift();
    if (this.#rows.length === BATCH_ROWS) this.#sendSoon(0);
    else if (this.#timer === undefined) this.#sendSoon(BATCH_MS);
  }

  async list(filter: RequestList): Promise<readonly RequestRow[]> {
    await this.flush();
    return this.#store.listRequests(filter);
  }

  async find(filter: RequestFilter): Promise<readonly RequestRow[]> {
    await this.flush();
    return this.#store.findRequests(filter);
  }

  conversation(filter: ConversationFilter): Promise<readonly RequestRow[]> {
    return this.#store.conversationRequests(filter);
  }

  async sum(filter: SumFilter): Promise<readonly RequestSum[]> {
    await this.flush();
    return this.#store.sumRequests(filter);
  }

  /** Resolves when all rows so far were written, or could not be. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const rows = this.#rows;
    if (rows.length > 0) {
      this.#rows = [];
      this.#sending = this.#sending.then(() => this.#send(rows));
    }
    await this.#sending;
  }

  #sendSoon(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), ms);
    this.#timer.unref();
  }

  async #send(rows: readonly WrittenRow[]): Promise<void> {
    try {
      await this.#store.addRequests(rows);
    } catch {
      this.#rows = [...rows, ...this.#rows].slice(-WAITING_ROWS_MAX);
    }
  }
}
