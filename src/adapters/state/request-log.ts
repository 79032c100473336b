import type {
  ConversationFilter,
  RequestFilter,
  RequestList,
  RequestLog,
  RequestRow,
  RequestSum,
  SumFilter,
} from '../../ports/request-log.ts';
import {
  type TrialReport,
  reportTrial,
  type TrialConversation,
} from '../../core/meter/trial-report.ts';
import { type QuotaReport, type QuotaRow, reportQuota } from '../../core/meter/quota.ts';
import type { StoreCaller } from '../store/client.ts';
import type { StateWriter } from './state-writer.ts';
import { shortReference } from '../../core/memory/reference.ts';
import { PROBE_SPACE } from '../../core/request/space.ts';
import type { Sighting } from '../../ports/memory-desk.ts';
import { Conditions, type Statements, sureTime } from '../store/driver.ts';

/**
 * The request log in `state.db`. StateRequestLog adds rows on the event loop, one statement each. RequestTable reads
 * and prunes them in the store's thread.
 */

/** How long a list waits for rows that are not written yet. */
const WRITE_MS = 1000;
/** Time for which a repeated reading of a subscription plan's quota is not stored again. */
const SAME_QUOTA_MS = 5 * 60_000;
/** Rows between two prunings, which take 11 ms. */
const ROWS_PER_PRUNE = 256;

export class StateRequestLog implements RequestLog {
  readonly #writer: StateWriter;
  readonly #call: StoreCaller['call'];
  #added = 0;
  #lastQuota: { readonly said: string; readonly at: number } | undefined;

  /** `call`: calls the store's thread; see StoreCalls. */
  constructor(writer: StateWriter, call: StoreCaller['call']) {
    this.#writer = writer;
    this.#call = call;
  }

  add(row: RequestRow): void {
    const { id, at } = row;
    const text = JSON.stringify(row);
    this.#writer.put((rows) => {
      rows.run('INSERT INTO requests (id, at, row) VALUES (?, ?, ?)', id, at, text);
    });
    this.#added += 1;
    // Ignore a failure: the log is then only longer.
    if (this.#added % ROWS_PER_PRUNE === 1)
      void this.#call('pruneState', undefined).catch(() => undefined);
  }

  /** Adds a reading of a plan's quota, unless it repeats a recent one. In a tool loop there is one a second. */
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

  readonly quota: RequestLog['quota'] = (now) => this.#ask('quota', now);
  readonly trial: RequestLog['trial'] = (since) => this.#ask('trial', since);
  readonly list: RequestLog['list'] = (filter) => this.#ask('listRequests', filter);
  readonly find: RequestLog['find'] = (filter) => this.#ask('findRequests', filter);
  readonly sum: RequestLog['sum'] = (filter) => this.#ask('sumRequests', filter);
  readonly conversation: RequestLog['conversation'] = (filter) =>
    this.#call('conversationRequests', filter);

  /** Calls the store's thread when the rows that were added so far are written, or after WRITE_MS. */
  readonly #ask: StoreCaller['call'] = async (name, input) => {
    await this.#writer.caughtUp(WRITE_MS);
    return this.#call(name, input);
  };
}

const ROWS_MAX = 100_000;
const AGE_MAX_MS = 90 * 24 * 3600 * 1000;
const LIST_MAX = 100_000;
const FIND_MAX = 1000;
const OFFSET_MAX = 1_000_000;
/** Bound on stored readings of quotas. Heavy use gives some 30,000 in a month, the longest period of a quota. */
const QUOTA_ROWS_MAX = 50_000;
/** Bound on the readings that quota() reads: some 10 MB, in 100 ms. */
const QUOTA_READ_MAX = 20_000;
const QUOTA_AGE_MS = 35 * 24 * 3600 * 1000;
const SIGHTINGS_MAX = 50;
/** Bound on the references for which sightings() searches. */
const SIGHTED_MAX = 20;

/** Reads and prunes the tables of the request log. */
export class RequestTable {
  readonly #rows: Statements;

  constructor(rows: Statements) {
    this.#rows = rows;
  }

  /** Returns rows, newest first. */
  list(filter: RequestList): RequestRow[] {
    const limit = Math.max(0, Math.min(filter.limit, LIST_MAX));
    const rows =
      filter.id === undefined
        ? this.#rows.all<{ row: string }>(
            `SELECT row FROM (SELECT number, at, row FROM requests ORDER BY number DESC LIMIT ?)
             WHERE at >= ? ORDER BY number DESC`,
            limit,
            filter.since ?? 0,
          )
        : this.#rows.all<{ row: string }>(
            // Finds the ids that begin with the text: all characters of an id sort before a tilde.
            'SELECT row FROM requests WHERE id >= ? AND id < ? ORDER BY number DESC LIMIT ?',
            filter.id,
            `${filter.id}~`,
            limit,
          );
    return rows.map(parsedRow);
  }

  conversation({ conversation, limit }: ConversationFilter): RequestRow[] {
    return this.#rows
      .all<{ row: string }>(
        // The index `requests_by_conversation` has exactly this expression; see also find().
        `SELECT row FROM requests WHERE row ->> '$.conversation' = ? ORDER BY number DESC LIMIT ?`,
        conversation,
        Math.max(0, Math.min(limit, LIST_MAX)),
      )
      .map(parsedRow);
  }

  /** Returns how much of each login's plan is used. */
  quota(now: number): readonly QuotaReport[] {
    const rows = this.#rows.all<{ row: string }>(
      'SELECT row FROM (SELECT n, at, row FROM quota ORDER BY n DESC LIMIT ?) WHERE at >= ? ORDER BY n',
      QUOTA_READ_MAX,
      now - QUOTA_AGE_MS,
    );
    return reportQuota(rows.map(parsedQuota), now);
  }

  trial(since: number): TrialReport {
    return reportTrial(this.#rows.all<TrialConversation>(TRIAL_SQL, since));
  }

  sum({ since, until = Number.MAX_SAFE_INTEGER }: SumFilter): RequestSum[] {
    return this.#rows.all<SumRow>(SUM_SQL, since, until).map((row): RequestSum => {
      const { input, output, cacheRead, cacheWrite, paid, direct, ...rest } = row;
      const { dropped, unfit, refused, bySvc, ...sum } = rest;
      const usage = { input, cacheRead, cacheWrite, output };
      const thoughts = { dropped, unfit, refused, bySvc };
      return { ...sum, usage, price: { paid, direct }, thoughts };
    });
  }

  /** Finds model requests by the members of the filter, newest first. */
  find(filter: RequestFilter): RequestRow[] {
    const conditions = new Conditions();
    conditions.require(`coalesce(row ->> '$.kind', '') NOT IN ('relayed', 'count')`);
    // The index `requests_by_conversation` has exactly this expression; with another one SQLite would read every row.
    conditions.add(`row ->> '$.conversation' = ?`, filter.conversation);
    // A search in the text avoids parsing the JSON of nearly every row.
    if (filter.isMiss === true) conditions.require(`instr(row, '"miss":{') > 0`);
    conditions.add('instr(lower(row), lower(?)) > 0', filter.words);
    conditions.add('at >= ?', filter.since);
    conditions.add('at < ?', filter.until);
    conditions.add(`row ->> '$.space' = ?`, filter.space);
    conditions.add(`row ->> '$.client' = ?`, filter.client);
    conditions.add(`row ->> '$.model' = ?`, filter.model);
    return this.#rows
      .all<{ readonly row: string }>(
        `SELECT row FROM requests ${conditions.where} ORDER BY number DESC LIMIT ? OFFSET ?`,
        ...conditions.values,
        Math.max(0, Math.min(filter.limit, FIND_MAX)),
        Math.max(0, Math.min(filter.offset ?? 0, OFFSET_MAX)),
      )
      .map(parsedRow);
  }

  /** Returns the newest requests whose recalled block quotes one of these references, in whole or short form. */
  sightings(refs: readonly string[]): Sighting[] {
    if (refs.length === 0) return [];
    const quotes = refs.slice(0, SIGHTED_MAX).map((ref) => `"${shortReference(ref)}`);
    return this.#rows.all<Sighting>(
      `SELECT id, at, coalesce(row ->> '$.client', '') AS client FROM requests
       WHERE ${quotes.map(() => SIGHTED).join(' OR ')} ORDER BY number DESC LIMIT ${SIGHTINGS_MAX}`,
      ...quotes.flatMap((quote) => [quote, quote]),
    );
  }

  /**
   * Deletes the rows of requests that are older than AGE_MAX_MS or not among the newest ROWS_MAX, and the readings of
   * quotas that are not among the newest QUOTA_ROWS_MAX. A row's age is the time from the row to the newest row or to
   * sureTime(), whichever is earlier, and not to the present time, because the clock may be wrong.
   */
  prune(): void {
    const newest = this.#rows.get<{ number: number; at: number }>(
      'SELECT number, at FROM requests ORDER BY number DESC LIMIT 1',
    );
    if (newest === undefined) return;
    const { number, at } = newest;
    const sure = Math.min(at, sureTime(this.#rows, { table: 'requests', column: 'at' }));
    const sql = 'DELETE FROM requests WHERE at < ? OR number <= ?';
    this.#rows.run(sql, sure - AGE_MAX_MS, number - ROWS_MAX);
    const last = Number(this.#rows.value('SELECT max(n) FROM quota') ?? 0);
    this.#rows.run('DELETE FROM quota WHERE n <= ?', last - QUOTA_ROWS_MAX);
  }
}

function parsedRow({ row }: { readonly row: string }): RequestRow {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only add() writes them.
  return JSON.parse(row) as RequestRow;
}

function parsedQuota({ row }: { readonly row: string }): QuotaRow {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only addQuota() writes them.
  return JSON.parse(row) as QuotaRow;
}

type SumRow = Omit<RequestSum, 'usage' | 'price' | 'thoughts'> &
  RequestSum['usage'] &
  RequestSum['price'] &
  RequestSum['thoughts'];

/** Bound on groups: 90 days of heavy use give about a thousand. */
const SUM_ROWS_MAX = 10_000;

const BY_SVC = `WHERE row ->> '$.prefixChangedBy' = 'svc'`;

const IS_BRIEF = `coalesce(row ->> '$.recall.isBrief', 0)`;
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
  sum(row ->> '$.memoryState' = 'recalled' AND NOT ${IS_BRIEF}) AS recalled,
  sum(row ->> '$.memoryState' = 'recalled' AND ${IS_BRIEF}) AS briefs,
  coalesce(sum(row ->> '$.secondLooks.written' > 0), 0) AS looks,
  ${total('lookTokens', '$.secondLooks.written')},
  coalesce(sum(row ->> '$.secondLooks.tokens'), 0) - coalesce(sum(row ->> '$.secondLooks.written'), 0)
    AS lookTokensRepeated,
  sum(row ->> '$.memoryState' LIKE 'degraded%') AS degraded,
  sum(row ->> '$.memoryState' = 'degraded_timeout') AS late,
  ${total('input', '$.usage.input')}, ${total('output', '$.usage.output')},
  ${total('cacheRead', '$.usage.cacheRead')}, ${total('cacheWrite', '$.usage.cacheWrite')},
  ${total('paid', '$.price.paid')}, ${total('direct', '$.price.direct')},
  ${total('readings')},
  coalesce(sum(CASE WHEN row ->> '$.readings' > 0 THEN row ->> '$.price.direct' END), 0) AS againPrice,
  ${lostSum('prefix')} + ${lostSum('model')} + ${lostSum('account')} AS dropped,
  ${lostSum('prefix')} AS unfit, ${lostSum('refused')} AS refused,
  ${lostSum('prefix', BY_SVC)} + ${lostSum('refused', BY_SVC)} AS bySvc,
  count(DISTINCT CASE WHEN NOT ${IS_BRIEF}
    THEN row ->> '$.conversation' || ' ' || (row ->> '$.recall.exchange') END) AS prompts,
  count(DISTINCT CASE WHEN row ->> '$.recall.isUsed' AND NOT ${IS_BRIEF}
    THEN row ->> '$.conversation' || ' ' || (row ->> '$.recall.exchange') END) AS promptsUsed
FROM requests WHERE at >= ? AND at < ? AND coalesce(row ->> '$.kind', '') NOT IN ('relayed', 'count')
  AND coalesce(row ->> '$.space', '') <> '${PROBE_SPACE}'
GROUP BY 1, 2, 3, 4, 5 ORDER BY day DESC, requests DESC LIMIT ${SUM_ROWS_MAX}`;

const TOKENS = ['input', 'cacheRead', 'cacheWrite', 'output']
  .map((name) => `coalesce(row ->> '$.usage.${name}', 0)`)
  .join(' + ');
// One row for each of the newest conversations. Requests of a session's sub-agents, whose conversation has a slash
// after the session, count with the session.
const TRIAL_SQL = `
SELECT row ->> '$.trial' AS trial, count(*) AS requests, sum(${TOKENS}) AS tokens,
  coalesce(sum(row ->> '$.isCorrection'), 0) AS corrections,
  coalesce(sum(row ->> '$.price.paid'), 0) AS paid
FROM requests WHERE at >= ? AND instr(row, '"trial":"') > 0
GROUP BY trial, substr(row ->> '$.conversation', 1,
  instr((row ->> '$.conversation') || '/', '/') - 1)
ORDER BY max(number) DESC LIMIT 20000`;

function lostSum(reason: string, where = ''): string {
  const filter = where === '' ? '' : ` FILTER (${where})`;
  return `coalesce(sum(row ->> '$.lostThoughts.${reason}')${filter}, 0)`;
}

function total(name: string, path = `$.${name}`): string {
  return `coalesce(sum(row ->> '${path}'), 0) AS ${name}`;
}

// The first search, in the text, avoids parsing the JSON of nearly every row.
const SIGHTED = `(instr(row, ?) > 0 AND instr(row ->> '$.recall.refs', ?) > 0)`;
