import { isCommonBranch, type RankedExchange } from '../../core/recall/exchange-ranking.ts';
import {
  type EarlierSession,
  likeliestSessions,
  SESSIONS_MAX,
  shareTitles,
  titleOf,
  type TitleLimits,
} from '../../core/recall/session-brief.ts';
import type { AgentFacts, RecalledSession } from '../../ports/memory.ts';
import { SaidLines } from '../../core/recall/said-lines.ts';
import type { Exchange, ExchangeReader, ExchangeTexts } from './exchanges.ts';
import type { RecallSource, Session, Space } from './recall-source.ts';
import { type Steps, together } from './steps.ts';

/** Which earlier sessions of a project deserve a line at the first prompt of a new one. */

/** The newest records of a project that are looked at: some 100 sessions. */
const RECORDS_MAX = 1200;
const SESSIONS_READ_MAX = 128;
/** A session's opening request says what it was about; the first may be "hi". */
const OPENING_MAX = 4;
const OPENING_PASSAGES = 24;
const LIKE_MAX = 2;
/** Passages that are looked at for each word of the prompt, the newest. */
const HOLDERS_MAX = 200;

const DAY_MS = 86_400_000;

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
  readonly prompt: string;
}

export class SessionSearch {
  readonly #source: RecallSource;
  readonly #reader: ExchangeReader;

  constructor(source: RecallSource, reader: ExchangeReader) {
    this.#source = source;
    this.#reader = reader;
  }

  /** Best first. */
  *recall(question: SessionQuestion): Steps<RecalledSession[]> {
    const { agent, now, spaces } = question;
    const [newest, holders] = yield* together([
      this.#newest(spaces),
      this.#holders(spaces, question.terms),
    ]);
    const rows = newest.filter(({ key }) => key !== agent.conversation);
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
        !isCommonBranch(agent.branch) && branches.split(',').includes(agent.branch);
      return { conversation, at, isSameBranch, sharedWords, fit: fits.get(conversation) ?? 0 };
    });
    const likeliest = likeliestSessions(sessions, now);
    const said = new SaidLines(question.prompt);
    const found: { at: number; texts: ExchangeTexts[] }[] = [];
    for (let at = 0; at < likeliest.length && found.length < SESSIONS_MAX; at += SESSIONS_MAX) {
      const some = likeliest.slice(at, at + SESSIONS_MAX);
      const read = yield* together(some.map((one) => this.#textsOf(one.conversation, question)));
      for (const [place, texts] of read.entries()) {
        const title = found.length === SESSIONS_MAX ? undefined : titleOf(texts, values, said);
        if (title === undefined) continue;
        said.add(title.title);
        found.push({ at: some[place]?.at ?? 0, texts });
      }
    }
    const others = new SaidLines(question.prompt);
    const days = new Set(found.map(({ at }) => Math.floor(at / DAY_MS))).size;
    const { briefTokensMax } = agent;
    const titles = shareTitles(
      found.map(
        ({ texts }) =>
          (limits: TitleLimits) =>
            titleOf(texts, values, others, limits),
      ),
      { briefTokensMax, days },
    );
    return found.flatMap(({ at }, place) => {
      const one = titles[place];
      if (one === undefined || others.has(one.title)) return [];
      others.add(one.title);
      const { space, records } = one.exchange;
      return [{ at, title: one.title, space, records }];
    });
  }

  /** A session that continued while its project got another space is kept in both: the newer part counts. */
  *#newest(spaces: readonly Space[]): Steps<Session[]> {
    const most = Math.ceil(RECORDS_MAX / Math.max(1, spaces.length));
    const found = yield* together(
      spaces.map((space) => this.#source.sessions(space, most, SESSIONS_READ_MAX)),
    );
    const keys = new Set<string>();
    return found
      .flat()
      .toSorted((a, b) => b.at - a.at)
      .filter(({ key }) => {
        if (keys.has(key)) return false;
        keys.add(key);
        return true;
      })
      .slice(0, SESSIONS_READ_MAX);
  }

  /** By term: the conversations that hold it, as far as its newest passages show. */
  *#holders(spaces: readonly Space[], terms: readonly string[]): Steps<Map<string, Set<number>>> {
    const most = Math.ceil(HOLDERS_MAX / Math.max(1, spaces.length));
    const holders = new Map(terms.map((term) => [term, new Set<number>()]));
    const all = yield* together(spaces.map((space) => this.#source.holders(space, terms, most)));
    for (const held of all) {
      for (const [key, conversations] of held.entries()) {
        const found = holders.get(terms[key] ?? '');
        for (const conversation of conversations) found?.add(conversation);
      }
    }
    return holders;
  }

  /** Its first exchanges, and those that share most with the prompt. */
  *#textsOf(
    conversation: number,
    { ranked, excluded }: Pick<SessionQuestion, 'ranked' | 'excluded'>,
  ): Steps<ExchangeTexts[]> {
    const ids = yield* this.#source.opening(conversation, OPENING_PASSAGES);
    const first = yield* this.#reader.ofPassages(ids, OPENING_MAX);
    const opening = first.filter(({ records }) => !records.some((one) => excluded.has(one)));
    const like = ranked
      .map(({ exchange }) => exchange)
      .filter((one) => one.conversation === conversation)
      .slice(0, LIKE_MAX);
    const read = yield* this.#reader.texts([...like, ...opening]);
    const texts = read.flatMap((one) => one ?? []);
    // A title is the person's request: unverified words give none.
    return texts.map((one) => (one.isUnverified ? { ...one, asked: '' } : one));
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
