import { quotesIn } from '../../core/recall/recall-block.ts';
import type {
  ConversationFilter,
  RequestRow,
  RequestSum,
  RequestList,
  SumFilter,
} from '../../ports/request-log.ts';
import { PROBE_SPACE } from '../../core/request/space.ts';
import type { WrittenRow } from '../journals/request-log.ts';
import type { LedgerRow } from '../../ports/ledger.ts';
import type { Database } from './database.ts';
import { FILTER_ROWS, FilteredKeys } from './filtered-keys.ts';
import type { KeyFilter } from './key-filter.ts';

/** The ledger and the request log as tables: small rows, found by key, bounded in number and age. */

/** A year of heavy use; a block is 2 kB, so at most about 400 MB. */
const LEDGER_ROWS_MAX = 200_000;
const REQUEST_ROWS_MAX = 100_000;
const REQUEST_AGE_MAX_MS = 90 * 24 * 3600 * 1000;
const REQUEST_LIST_MAX = 100_000;
/** Pruning on every write would cost more than the write. */
const WRITES_PER_PRUNE = 256;
/** Ledger rows that are read at once: 2 MB. */
const FORGET_ROWS = 1000;
/** The row that says when something was last forgotten. No key of an entry is without a colon. */
const FORGOTTEN_KEY = 'forgotten';
/** Looking through 200,000 rows takes some 2 s; what comes meanwhile may be behind the look. */
const LOOKING_MS = 10_000;

interface StoredRow extends Omit<LedgerRow, 'dropsEarlier' | 'isOnce'> {
  readonly drops_earlier: number;
}

export class LedgerTable {
  readonly #database: Database;
  readonly keys: FilteredKeys<string>;
  #writes = 0;

  /** `filter`: gets every key, for the thread that asks about them. */
  constructor(database: Database, filter?: KeyFilter) {
    this.#database = database;
    this.keys = new FilteredKeys(database, filter, (after = '') => {
      const sql = `SELECT key FROM ledger WHERE key > ? ORDER BY key LIMIT ${FILTER_ROWS}`;
      const keys = database.all<Pick<StoredRow, 'key'>>(sql, after).map(({ key }) => key);
      return { keys, last: keys.at(-1) };
    });
  }

  find(keys: readonly string[]): LedgerRow[] {
    return this.#database
      .all<StoredRow>(
        `SELECT key, block, form, drops_earlier, at FROM ledger
         WHERE key IN (SELECT value FROM json_each(?))`,
        JSON.stringify(keys),
      )
      .map(({ drops_earlier: drops, ...row }) => ({ ...row, dropsEarlier: drops === 1 }));
  }

  /**
   * A later row for the same key wins, in whatever order they arrive; a key that is written once
   * keeps its first row. A row that a power cut takes only makes a request a little dearer. A block
   * placed before something was forgotten may arrive after it (out of a journal, from another
   * process). The forgetting did not examine it, so its block stays out.
   */
  record(rows: readonly LedgerRow[]): void {
    this.#database.unsyncedTransaction(() => {
      const forgottenAt = this.find([FORGOTTEN_KEY])[0]?.at ?? -Infinity;
      for (const row of rows) {
        const isLate = row.at <= forgottenAt && quotesIn(row.block).length > 0;
        this.#put(isLate ? { ...row, block: '' } : row);
      }
      this.#writes += 1;
      if (this.#writes % WRITES_PER_PRUNE === 1) this.#prune();
    });
  }

  /**
   * Empties the blocks with quotes that `isForgotten` knows, and returns how many. A forgotten text
   * must not be said again, though the provider's cache breaks there once. An entry without a block
   * keeps its prompt from being recalled for again. `tell`: from then on no other process places
   * what it found, or placed, before.
   */
  forget(isForgotten: (quote: string) => boolean, tell: () => void): number {
    this.#mark(Date.now() + LOOKING_MS);
    const forgotten = this.#empty(isForgotten, Date.now());
    tell();
    this.#mark(Date.now());
    return forgotten;
  }

  #mark(at: number): void {
    const sql = `INSERT OR REPLACE INTO ledger (key, block, form, drops_earlier, at)
      VALUES (?, '', 'text', 0, ?)`;
    this.#database.transaction(() => this.#database.run(sql, FORGOTTEN_KEY, at));
  }

  #empty(isForgotten: (quote: string) => boolean, at: number): number {
    let forgotten = 0;
    let after = '';
    for (;;) {
      const rows = this.#database.all<Pick<StoredRow, 'key' | 'block'>>(
        `SELECT key, block FROM ledger WHERE key > ? ORDER BY key LIMIT ${FORGET_ROWS}`,
        after,
      );
      const quoting = rows.filter(({ block }) => quotesIn(block).some(isForgotten));
      this.#database.transaction(() => {
        for (const { key } of quoting) {
          this.#database.run("UPDATE ledger SET block = '', at = ? WHERE key = ?", at, key);
        }
      });
      forgotten += quoting.length;
      after = rows.at(-1)?.key ?? '';
      if (rows.length < FORGET_ROWS) return forgotten;
    }
  }

  #put({ key, block, form, dropsEarlier, at, isOnce }: LedgerRow): void {
    this.keys.add(key);
    const conflict =
      isOnce === true
        ? 'DO NOTHING'
        : `DO UPDATE SET block = excluded.block, form = excluded.form,
         drops_earlier = excluded.drops_earlier, at = excluded.at WHERE excluded.at >= ledger.at`;
    this.#database.run(
      `INSERT INTO ledger (key, block, form, drops_earlier, at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (key) ${conflict}`,
      key,
      block,
      form,
      dropsEarlier ? 1 : 0,
      at,
    );
  }

  #prune(): void {
    this.#database.run(
      `DELETE FROM ledger WHERE key IN
        (SELECT key FROM ledger ORDER BY at DESC LIMIT -1 OFFSET ${LEDGER_ROWS_MAX})`,
    );
  }
}

export class RequestTable {
  readonly #database: Database;
  #writes = 0;

  constructor(database: Database) {
    this.#database = database;
  }

  /** A row that a power cut takes is not missed. */
  add(rows: readonly WrittenRow[]): void {
    this.#database.unsyncedTransaction(() => {
      for (const { id, at, row } of rows) {
        const sql = 'INSERT INTO requests (id, at, row) VALUES (?, ?, ?)';
        this.#database.run(sql, id, at, row);
      }
      this.#writes += 1;
      if (this.#writes % WRITES_PER_PRUNE === 1) this.#prune(rows.at(-1)?.at ?? 0);
    });
  }

  /** Newest first. */
  list(filter: RequestList): RequestRow[] {
    const limit = Math.max(0, Math.min(filter.limit, REQUEST_LIST_MAX));
    const rows =
      filter.id === undefined
        ? this.#database.all<{ row: string }>(
            `SELECT row FROM (SELECT number, at, row FROM requests ORDER BY number DESC LIMIT ?)
             WHERE at >= ? ORDER BY number DESC`,
            limit,
            filter.since ?? 0,
          )
        : this.#database.all<{ row: string }>(
            // All that begin so: ids are of lower-case letters and digits, which come before a tilde.
            'SELECT row FROM requests WHERE id >= ? AND id < ? ORDER BY number DESC LIMIT ?',
            filter.id,
            `${filter.id}~`,
            limit,
          );
    return rows.map(parsedRow);
  }

  /** Newest first. */
  conversation({ conversation, limit }: ConversationFilter): RequestRow[] {
    return this.#database
      .all<{ row: string }>(
        // As the index has it: written otherwise, every row would be read.
        `SELECT row FROM requests WHERE row ->> '$.conversation' = ? ORDER BY number DESC LIMIT ?`,
        conversation,
        Math.max(0, Math.min(limit, REQUEST_LIST_MAX)),
      )
      .map(parsedRow);
  }

  sum({ since, until = Number.MAX_SAFE_INTEGER }: SumFilter): RequestSum[] {
    return this.#database
      .all<SumRow>(SUM_SQL, since, until)
      .map(
        ({
          input,
          output,
          cacheRead,
          cacheWrite,
          paid,
          direct,
          outputs,
          files,
          dropped,
          unfit,
          refused,
          bySvc,
          ...sum
        }): RequestSum => ({
          ...sum,
          usage: { input, cacheRead, cacheWrite, output },
          price: { paid, direct },
          rereads: { outputs, files },
          thoughts: { dropped, unfit, refused, bySvc },
        }),
      );
  }

  #prune(now: number): void {
    const sql = `DELETE FROM requests WHERE at < ? OR number <=
      (SELECT coalesce(max(number), 0) FROM requests) - ${REQUEST_ROWS_MAX}`;
    this.#database.run(sql, now - REQUEST_AGE_MAX_MS);
  }
}

function parsedRow({ row }: { readonly row: string }): RequestRow {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only add() writes them.
  return JSON.parse(row) as RequestRow;
}

type SumRow = Omit<RequestSum, 'usage' | 'price' | 'rereads' | 'thoughts'> &
  RequestSum['usage'] &
  RequestSum['price'] &
  RequestSum['rereads'] &
  RequestSum['thoughts'];

/** 90 days of heavy use give about a thousand groups; a reader cannot use more. */
const SUM_ROWS_MAX = 10_000;

const BY_SVC = `WHERE row ->> '$.prefixChangedBy' = 'svc'`;

// The rows are JSON: they gain fields without a migration, and are summed only on request.
const SUM_SQL = `
SELECT date(at / 1000, 'unixepoch', 'localtime') AS day,
  coalesce(row ->> '$.client', '') AS client,
  coalesce(row ->> '$.space', '') AS space,
  coalesce(row ->> '$.model', '') AS model,
  coalesce(row ->> '$.isLogin', 0) AS isLogin,
  count(*) AS requests,
  sum(row ->> '$.end' <> 'complete' OR row ->> '$.status' >= 400) AS failed,
  ${total('originalInputTokens')}, ${total('forwardedInputTokens')},
  ${total('recalledTokens')}, ${total('elidedTokens')},
  sum(row ->> '$.memoryState' IN ('recalled', 'empty')
    OR row ->> '$.memoryState' LIKE 'degraded%') AS asked,
  sum(row ->> '$.memoryState' = 'recalled') AS recalled,
  sum(row ->> '$.memoryState' LIKE 'degraded%') AS degraded,
  ${total('input', '$.usage.input')}, ${total('output', '$.usage.output')},
  ${total('cacheRead', '$.usage.cacheRead')}, ${total('cacheWrite', '$.usage.cacheWrite')},
  ${total('paid', '$.price.paid')}, ${total('direct', '$.price.direct')},
  ${total('outputs', '$.rereads.outputs')}, ${total('files', '$.rereads.files')},
  coalesce(sum(CASE WHEN coalesce(row ->> '$.rereads.outputs', 0) + coalesce(row ->> '$.rereads.files', 0) > 0
    THEN row ->> '$.price.direct' END), 0) AS againPrice,
  ${lostSum('prefix')} + ${lostSum('model')} + ${lostSum('account')} AS dropped,
  ${lostSum('prefix')} AS unfit, ${lostSum('refused')} AS refused,
  ${lostSum('prefix', BY_SVC)} + ${lostSum('refused', BY_SVC)} AS bySvc,
  count(DISTINCT row ->> '$.conversation' || ' ' || (row ->> '$.recall.exchange')) AS prompts,
  count(DISTINCT CASE WHEN row ->> '$.recall.isUsed'
    THEN row ->> '$.conversation' || ' ' || (row ->> '$.recall.exchange') END) AS promptsUsed
FROM requests WHERE at >= ? AND at < ? AND coalesce(row ->> '$.kind', '') NOT IN ('relayed', 'count')
  AND coalesce(row ->> '$.space', '') <> '${PROBE_SPACE}'
GROUP BY 1, 2, 3, 4, 5 ORDER BY day DESC, requests DESC LIMIT ${SUM_ROWS_MAX}`;

function lostSum(reason: string, where = ''): string {
  const filter = where === '' ? '' : ` FILTER (${where})`;
  return `coalesce(sum(row ->> '$.lostThoughts.${reason}')${filter}, 0)`;
}

function total(name: string, path = `$.${name}`): string {
  return `coalesce(sum(row ->> '${path}'), 0) AS ${name}`;
}
