import { asList, asRecord } from '../../core/bytes/json-fields.ts';
import type { ConversationPlace, MemoryDesk } from '../../ports/memory-desk.ts';
import type { Memory } from '../../ports/memory.ts';
import { rankCulprits } from '../../core/meter/culprits.ts';
import type { RequestLog, RequestSum } from '../../ports/request-log.ts';
import type {
  About,
  NowAnswer,
  RowsAnswer,
  TitlesAnswer,
  TodayAnswer,
} from '../../ports/ui-api.ts';
import { dayAfter } from './savings-calls.ts';
import { listed, type LiveRequests } from './live-requests.ts';
import {
  type ApiCall,
  type UiRoute,
  deadline,
  numberIn,
  optionalTextIn,
  textIn,
} from './ui-routes.ts';

interface RequestCallParts {
  readonly about: About;
  readonly live: LiveRequests;
  readonly requestLog: RequestLog;
  readonly memory: Memory;
  /** Reads the first prompts of conversations; undefined with a memory service. */
  readonly desk: Pick<MemoryDesk, 'beginnings'> | undefined;
  readonly now: () => number;
}

/** The first view gets the requests of the last RECENT_MS milliseconds, and at most RECENT_MAX. */
const RECENT_MS = 24 * 3_600_000;
const RECENT_MAX = 1000;
/**
 * If the last day has fewer conversations than this, and fewer requests than EARLIER_MAX, the first view gets the
 * newest EARLIER_MAX requests of any age.
 */
const CONVERSATIONS_MIN = 5;
const EARLIER_MAX = 500;
/** Bound on the conversations whose first prompt one call returns. */
const TITLES_MAX = 40;
const TITLE_CHARS = 160;
/** Bound on the prompts that svc reads from a memory service to find the first one. */
const PROMPTS_READ_MAX = 200;
const LIST_MAX = 500;

export function requestRoutes(parts: RequestCallParts): readonly UiRoute[] {
  return [
    ['GET about', async () => parts.about],
    ['GET now', () => now(parts)],
    ['GET today', () => today(parts)],
    ['GET conversation', (call) => conversation(parts, call)],
    ['GET requests', (call) => requests(parts, call)],
    ['POST titles', (call) => titles(parts, call)],
  ];
}

async function now({ live, requestLog, now: clock }: RequestCallParts): Promise<NowAnswer> {
  const ofDay = await requestLog.list({ limit: RECENT_MAX, since: clock() - RECENT_MS });
  const conversations = new Set(ofDay.map((row) => row.conversation));
  const isQuiet = conversations.size < CONVERSATIONS_MIN && ofDay.length < EARLIER_MAX;
  const recent = isQuiet ? await requestLog.list({ limit: EARLIER_MAX }) : ofDay;
  return { open: live.open(), recent: recent.map(listed) };
}

const MISSES_MAX = 500;
const WEEK_MS = 7 * 24 * 3_600_000;
const CULPRITS_MAX = 5;

async function today({ requestLog, now: clock }: RequestCallParts): Promise<TodayAnswer> {
  const time = clock();
  const since = new Date(time).setHours(0, 0, 0, 0);
  const until = dayAfter(since);
  const weekAgo = time - WEEK_MS;
  const [sums, ofWeek, quota] = await Promise.all([
    requestLog.sum({ since, until }),
    requestLog.find({ since: weekAgo, until, isMiss: true, limit: MISSES_MAX }),
    requestLog.quota(time),
  ]);
  const add = (valueOf: (sum: RequestSum) => number): number =>
    sums.reduce((total, sum) => total + valueOf(sum), 0);
  const missed = ofWeek.filter(({ at }) => at >= since);
  const culprits = rankCulprits(missed);
  return {
    requests: add((sum) => sum.requests),
    asked: add((sum) => sum.asked),
    recalled: add((sum) => sum.recalled),
    degraded: add((sum) => sum.degraded),
    paid: add(({ price }) => price.paid),
    direct: add(({ price }) => price.direct),
    misses: {
      times: missed.length,
      tokens: culprits.reduce((sum, { tokens }) => sum + tokens, 0),
      cause: culprits[0]?.cause ?? null,
    },
    culprits: rankCulprits(ofWeek)
      .slice(0, CULPRITS_MAX)
      .map(({ cause, times, tokens }) => ({ cause, times, tokens })),
    quota: quota.map(({ windows }) => ({
      windows: windows
        .filter(({ isOver, isGone }) => !isOver && !isGone)
        .map(({ name, share, resetAt = null }) => ({ name, share, resetAt })),
    })),
  };
}

async function conversation(
  { requestLog }: RequestCallParts,
  { query }: ApiCall,
): Promise<RowsAnswer> {
  const key = textIn(query, 'id', 1024);
  const limit = numberIn(query, 'limit', { fallback: LIST_MAX, max: LIST_MAX });
  const rows = await requestLog.conversation({ conversation: key, limit });
  return { rows: rows.map(listed) };
}

/** The filters of the list of requests, each with the bound on the characters of its value. */
const FILTERS = { conversation: 1024, space: 1024, client: 128, model: 128, words: 200 } as const;
const TIME_MAX = 8.64e15;

async function requests({ requestLog }: RequestCallParts, { query }: ApiCall): Promise<RowsAnswer> {
  const wanted = Object.entries(FILTERS).flatMap(([name, charsMax]) => {
    const value = optionalTextIn(query, name, charsMax);
    return value === undefined ? [] : [[name, value] as const];
  });
  const since = numberIn(query, 'since', { fallback: 0, max: TIME_MAX });
  const until = numberIn(query, 'until', { fallback: TIME_MAX, max: TIME_MAX });
  const limit = numberIn(query, 'limit', { fallback: 100, max: LIST_MAX });
  const isMiss = query.get('missed') === '1';
  const filter = { ...Object.fromEntries(wanted), ...(isMiss && { isMiss }), since, until, limit };
  const rows = await requestLog.find(filter);
  return { rows: rows.map(listed) };
}

async function titles(parts: RequestCallParts, { body }: ApiCall): Promise<TitlesAnswer> {
  const asked = asList(asRecord(body)['conversations']);
  const wanted = asked.filter(isConversation).slice(0, TITLES_MAX);
  const found = await beginningsOf(parts, wanted);
  const pairs = wanted.map(({ conversation: key }, at) => [key, found[at] ?? ''] as const);
  return { titles: Object.fromEntries(pairs) };
}

/**
 * Returns the first prompt of each conversation, shortened; '' if the memory does not have it. A memory service lists
 * the newest prompts first, so for a conversation with PROMPTS_READ_MAX or more the result is ''.
 */
export async function beginningsOf(
  { desk, memory }: Pick<RequestCallParts, 'desk' | 'memory'>,
  places: readonly ConversationPlace[],
): Promise<readonly string[]> {
  if (desk !== undefined) return desk.beginnings(places);
  return Promise.all(
    places.map(async ({ space, conversation: key }) => {
      const filter = { space, conversation: key, role: 'user', limit: PROMPTS_READ_MAX } as const;
      const records = await memory.list(filter, deadline());
      if (records.length === PROMPTS_READ_MAX) return '';
      const [first] = records.toSorted((one, other) => one.exchange - other.exchange);
      return first?.text.slice(0, TITLE_CHARS) ?? '';
    }),
  );
}

function isConversation(value: unknown): value is ConversationPlace {
  const { space, conversation: key } = asRecord(value);
  return typeof space === 'string' && space !== '' && typeof key === 'string';
}
