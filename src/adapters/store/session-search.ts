import type { TermValues } from '../../core/recall/conclusions.ts';
import type { RankedExchange } from '../../core/recall/exchange-ranking.ts';
import {
  type EarlierSession,
  likeliestSessions,
  titleOf,
} from '../../core/recall/session-brief.ts';
import type { AgentFacts, RecalledSession } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import type { Exchange, ExchangeReader } from './exchanges.ts';
import { rangeOf, type Space } from './postings.ts';

/** Which earlier sessions of a project deserve a line at the first prompt of a new one. */

/** The newest records of a project that are looked at: some 100 sessions. */
const RECORDS_MAX = 1200;
const SESSIONS_READ_MAX = 128;
/** A session's opening request says what it was about; the first may be "hi". */
const OPENING_MAX = 4;
const LIKE_MAX = 2;
/** Passages that are looked at for each word of the prompt, the newest. */
const HOLDERS_MAX = 200;

interface SessionRow {
  readonly conversation: number;
  readonly key: string;
  readonly at: number;
  readonly branches: string;
}

interface HolderRow {
  /** The term's place. */
  readonly key: number;
  /** Ids of conversations, between commas. */
  readonly held: string | null;
}

interface Found extends EarlierSession {
  readonly conversation: number;
}

export interface SessionQuestion {
  /** The spaces of one project, its own first. */
  readonly spaces: readonly Space[];
  readonly agent: AgentFacts;
  readonly now: number;
  /** The prompt's own words. */
  readonly terms: readonly string[];
  /** Best first. */
  readonly ranked: readonly RankedExchange<Exchange>[];
  /** Ids of records of which nothing may be told. */
  readonly excluded: ReadonlySet<number>;
}

/** Branches on which everything happens say nothing about a session. */
const COMMON_BRANCHES: ReadonlySet<string> = new Set(['main', 'master', 'develop', 'trunk', '']);

export class SessionSearch {
  readonly #database: Database;
  readonly #reader: ExchangeReader;

  constructor(database: Database, reader: ExchangeReader) {
    this.#database = database;
    this.#reader = reader;
  }

  /** Best first. */
  recall(question: SessionQuestion): RecalledSession[] {
    const { agent, now, spaces } = question;
    const rows = this.#newest(spaces).filter(({ key }) => key !== agent.conversation);
    const holders = this.#holders(spaces, question.terms);
    const values = new Map(
      [...holders].map(([term, found]) => [term, valueIn(rows.length, found.size)]),
    );
    const fits = fitsOf(question.ranked);
    const sessions = rows.map(({ conversation, at, branches }): Found => {
      let sharedWords = 0;
      for (const [term, found] of holders) {
        if (found.has(conversation)) sharedWords += values.get(term) ?? 0;
      }
      const isSameBranch =
        !COMMON_BRANCHES.has(agent.branch) && branches.split(',').includes(agent.branch);
      return { conversation, at, isSameBranch, sharedWords, fit: fits.get(conversation) ?? 0 };
    });
    return likeliestSessions(sessions, now).flatMap(({ conversation, at }) => {
      const title = this.#titleOf(conversation, question, values);
      return title === '' ? [] : [{ at, title }];
    });
  }

  /** A session that went on while its project got another space is kept in both: the newer part counts. */
  #newest(spaces: readonly Space[]): SessionRow[] {
    const most = Math.ceil(RECORDS_MAX / Math.max(1, spaces.length));
    const rows = spaces
      .flatMap(({ id }) => this.#database.all<SessionRow>(SESSIONS, id, most))
      .toSorted((a, b) => b.at - a.at);
    const keys = new Set<string>();
    return rows
      .filter(({ key }) => {
        if (keys.has(key)) return false;
        keys.add(key);
        return true;
      })
      .slice(0, SESSIONS_READ_MAX);
  }

  /** By term: the conversations that hold it, as far as its newest passages show. */
  #holders(spaces: readonly Space[], terms: readonly string[]): Map<string, Set<number>> {
    const quoted = JSON.stringify(terms.map((term) => `"${term}"`));
    const most = Math.ceil(HOLDERS_MAX / Math.max(1, spaces.length));
    const holders = new Map(terms.map((term) => [term, new Set<number>()]));
    for (const space of spaces) {
      const { first, last } = rangeOf(space);
      const rows = this.#database.all<HolderRow>(HOLDERS, first, last, quoted, most);
      for (const { key, held } of rows) {
        const found = holders.get(terms[key] ?? '');
        for (const conversation of held?.split(',') ?? []) found?.add(Number(conversation));
      }
    }
    return holders;
  }

  /** From its first exchanges, and from those that share most with the prompt. */
  #titleOf(
    conversation: number,
    { ranked, excluded }: Pick<SessionQuestion, 'ranked' | 'excluded'>,
    values: TermValues,
  ): string {
    const ids = this.#database.all<{ id: number }>(OPENING, conversation).map(({ id }) => id);
    const opening = this.#reader
      .ofPassages(ids, OPENING_MAX)
      .filter(({ records }) => !records.some((record) => excluded.has(record)));
    const like = ranked
      .map(({ exchange }) => exchange)
      .filter((one) => one.conversation === conversation)
      .slice(0, LIKE_MAX);
    const texts = this.#reader.texts([...like, ...opening]).flatMap((one) => one ?? []);
    // A title is the person's request: unverified words give none.
    return titleOf(
      texts.map((one) => (one.isUnverified ? { ...one, asked: '' } : one)),
      values,
    );
  }
}

/** By conversation: the score of its best exchange as a share of the best of all. */
function fitsOf(ranked: readonly RankedExchange<Exchange>[]): ReadonlyMap<number, number> {
  const most = ranked[0]?.score ?? 0;
  const fits = new Map<number, number>();
  for (const { exchange, score } of most > 0 ? ranked : []) {
    const { conversation } = exchange;
    if (!fits.has(conversation)) fits.set(conversation, Math.max(0, score / most));
  }
  return fits;
}

/** How telling it is that a session holds a word, by how many do. */
function valueIn(sessions: number, holders: number): number {
  return Math.log(1 + (sessions + 0.5) / (holders + 0.5));
}

const HOLDERS = `SELECT e.key, (SELECT group_concat(DISTINCT p.conversation)
    FROM (SELECT rowid FROM passage_terms WHERE passage_terms MATCH e.value
      AND rowid BETWEEN ?1 AND ?2 ORDER BY rowid DESC LIMIT ?4) f
    CROSS JOIN passages p ON p.id = f.rowid
    CROSS JOIN records r ON r.id = p.record AND r.source IS NULL) AS held
  FROM json_each(?3) e`;

const SESSIONS = `SELECT c.id AS conversation, c.key, max(r.at) AS at,
    coalesce(group_concat(DISTINCT r.branch), '') AS branches
  FROM (SELECT space, conversation, at, branch, source FROM records INDEXED BY records_by_space_time
    WHERE space = ? ORDER BY at DESC LIMIT ?) r
  CROSS JOIN conversations c ON c.space = r.space AND c.key = r.conversation
  GROUP BY c.id HAVING min(r.source IS NOT NULL) = 0 ORDER BY at DESC LIMIT ${SESSIONS_READ_MAX}`;

const OPENING = `SELECT id FROM passages WHERE conversation = ? ORDER BY position LIMIT 24`;
