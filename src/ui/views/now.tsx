import { short } from '../../core/meter/figures.ts';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { RequestRow } from '../../ports/request-log.ts';
import type { NowAnswer, TitlesAnswer, TodayAnswer } from '../../ports/ui-api.ts';
import { post } from '../client/api.ts';
import { about, lastEventAt, onNews, returns } from '../client/session.ts';
import { useGet } from '../client/use-load.ts';
import { shortSpace } from '../client/space-names.ts';
import { hrefOf } from '../client/router.ts';
import { clock, moment, percent, span, whole } from '../format.ts';
import { Figure } from '../parts/tables.tsx';
import { More } from '../parts/form.tsx';
import { useRows } from '../parts/later.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Section } from '../parts/section.tsx';
import { VIEWS } from '../texts/frame.ts';
import { NOW } from '../texts/now.ts';
import { type Conversation, conversationsOf, withNews } from './activity.ts';
import { ConversationDetails, Cost, sizeText } from './conversation.tsx';

const HOUR_MS = 3_600_000;
/** The conversations of the last hour are shown, and at least this many. */
const LAST_MIN = 5;
const MINUTE_MS = 60_000;
/** Least time between two calls for the sums of today, in milliseconds: each call reads all requests of the day. */
const SUMS_MS = 10_000;

/** Draws the first view: sums of today, open requests, and the last conversations. */
export function NowView() {
  const loaded = useGet<NowAnswer>('now', {}, { version: returns.value });
  return (
    <Shown of={loaded} title={VIEWS.now}>
      {(answer) => <Live first={answer} />}
    </Shown>
  );
}

function Live({ first }: { readonly first: NowAnswer }) {
  const [rows, setRows] = useState(first);
  const now = useTick();
  useEffect(() => setRows(first), [first]);
  useEffect(() => onNews((news) => setRows((known) => withNews(known, news))), []);
  const since = Math.floor(now / MINUTE_MS) * MINUTE_MS - HOUR_MS;
  const conversations = useMemo(() => {
    const all = conversationsOf(rows.open, rows.recent);
    return all.filter(({ at }, index) => at >= since || index < LAST_MIN);
  }, [rows, since]);
  const ago = lastEventAt.value === undefined ? undefined : now - lastEventAt.value;
  const startedAt = about.value?.startedAt ?? 0;
  const newest = rows.recent[0]?.id ?? '';
  const sums = useRef({ newest, at: now });
  const isDue = now - sums.current.at >= SUMS_MS && newest !== sums.current.newest;
  if (isDue) sums.current = { newest, at: now };
  return (
    <>
      <TodaySums version={sums.current.newest}>
        <p class="lead">
          {NOW.open(rows.open.length)} {NOW.live(ago)}
        </p>
      </TodaySums>
      {now - startedAt < HOUR_MS && (
        <p class="notice">
          <span class="dot" />
          <span>{NOW.started(clock(startedAt))}</span>
        </p>
      )}
      {rows.open.length > 0 && <InFlightList rows={rows.open} now={now} />}
      <Section
        id="talks"
        title={NOW.conversations}
        beside={<p>{NOW.scope(conversations.length)}</p>}
      >
        {conversations.length === 0 ? (
          <Empty>
            {NOW.none} <code>{NOW.start}</code>
          </Empty>
        ) : (
          <Conversations all={conversations} now={now} />
        )}
      </Section>
    </>
  );
}

/**
 * Draws four figures about today: requests with memories, savings, cache misses, and what is left of the plan. Below
 * them it lists why the cache missed in the last seven days.
 */
function TodaySums(props: {
  readonly version: string;
  /** Content below the headline. */
  readonly children: ComponentChildren;
}) {
  const loaded = useGet<TodayAnswer>('today', {}, { version: props.version });
  if (loaded.state !== 'ready') {
    return (
      <>
        <h1>{VIEWS.now}</h1>
        {props.children}
        <dl class="figures" aria-busy="true" />
      </>
    );
  }
  const { requests, asked, recalled, degraded, paid, direct, misses, quota, culprits } =
    loaded.value;
  const kept = direct - paid;
  return (
    <>
      <h1>{NOW.headline(direct === 0 ? undefined : kept / direct, requests)}</h1>
      {props.children}
      <dl class="figures" aria-label={NOW.today.figures}>
        <Figure
          name={NOW.today.recalled}
          figure={NOW.today.recalledOf(recalled, asked)}
          text={NOW.today.prompts(requests, degraded)}
        />
        <Figure
          name={kept < 0 ? NOW.today.more : NOW.today.saved}
          figure={direct === 0 ? '–' : percent(Math.abs(kept) / direct)}
          text={direct === 0 ? NOW.today.noCounts : NOW.today.of(paid, direct)}
        />
        <Figure
          name={NOW.today.misses}
          figure={whole(misses.times)}
          text={NOW.today.missed(misses.tokens, misses.cause)}
        />
        <Quota quota={quota} />
      </dl>
      {culprits.length > 0 && (
        <Section id="missed" title={NOW.today.culprits}>
          <ol class="small">
            {culprits.map(({ cause, times, tokens }) => (
              <li key={cause}>{NOW.today.culprit(cause, times, tokens)}</li>
            ))}
          </ol>
          <p class="small lead">
            <a href={hrefOf('requests', { missed: '1' })}>{NOW.today.allMissed}</a>
          </p>
        </Section>
      )}
    </>
  );
}

function Quota({ quota }: Pick<TodayAnswer, 'quota'>) {
  const windows = quota[0]?.windows ?? [];
  const [least] = windows.toSorted((one, other) => other.share - one.share);
  if (least === undefined)
    return <Figure name={NOW.today.quota} figure="–" text={NOW.today.noQuota} />;
  const texts = windows.map(({ name, share, resetAt }) => {
    const reset = resetAt === null ? null : moment(resetAt);
    return NOW.today.window(name, percent(1 - share), reset);
  });
  return (
    <Figure name={NOW.today.quota} figure={percent(1 - least.share)} text={NOW.today.left(texts)} />
  );
}

function InFlightList(props: { readonly rows: readonly RequestRow[]; readonly now: number }) {
  return (
    <section aria-labelledby="open">
      <div class="head">
        <h2 id="open">{NOW.inFlight}</h2>
      </div>
      <ul class="open-now">
        {props.rows.map((row) => (
          <li key={row.id}>
            <span class="dot ok" />
            <b class="who">{shortSpace(row.space) || NOW.noProject}</b>
            <span class="doing">
              {row.client}, {row.model}, <span class="quiet">{doing(row)}</span>
            </span>
            <span class="size n">{sizeText(row)}</span>
            <span class="for n quiet">{span(props.now - row.at)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function doing(row: RequestRow): string {
  if (row.status !== 0) return NOW.answers(row.status);
  return 'plan' in row.ms ? NOW.waits : NOW.reads;
}

/** Conversations that are listed at first. A user has fewer in an hour, but a script may begin hundreds. */
const PAGE = 40;

function Conversations(props: { readonly all: readonly Conversation[]; readonly now: number }) {
  const [limit, setLimit] = useState(PAGE);
  const listed = useMemo(() => props.all.slice(0, limit), [props.all, limit]);
  const titles = useTitles(listed);
  const rows = useRows(listed);
  return (
    <>
      <div class="talks-head" aria-hidden="true">
        {NOW.heads.map((head) => (
          <span key={head}>{head}</span>
        ))}
      </div>
      <div class="talks">
        {rows.map((one) => (
          <Talk key={one.key} of={one} title={titles.get(one.key)?.title} now={props.now} />
        ))}
      </div>
      {listed.length < props.all.length && <More show={() => setLimit(limit + PAGE)} />}
    </>
  );
}

function Talk(props: {
  readonly of: Conversation;
  readonly title: string | undefined;
  readonly now: number;
}) {
  const { of: one, title, now } = props;
  const [isOpen, setOpen] = useState(false);
  const { labels } = NOW;
  return (
    <details class="talk" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="turn" />
        <span class="named">
          <b>
            {shortSpace(one.space) || NOW.noProject} <Badge of={one} />
          </b>
          <span dir="auto">{title ?? NOW.noPrompt}</span>
        </span>
        <span class="by">
          {one.client}
          <span>{one.model}</span>
        </span>
        <span data-label={labels.requests}>
          {one.rows.length} {one.open > 0 && <span class="quiet">+{one.open}</span>}
        </span>
        <span data-label={labels.recall}>
          {one.asked === 0 ? '–' : `${one.recalled} of ${one.asked}`}
        </span>
        <span data-label={labels.out}>
          {one.elidedTokens === 0 ? '–' : short(one.elidedTokens)}
        </span>
        <span data-label={labels.cache}>{percent(one.cache)}</span>
        <span data-label={labels.cost}>
          <Cost share={one.cost} />
        </span>
        <span data-label={labels.last}>{span(now - one.at)}</span>
      </summary>
      {isOpen && <ConversationDetails of={one} />}
    </details>
  );
}

function Badge({ of: { isDegraded, hasFailed } }: { readonly of: Conversation }) {
  const { badges } = NOW;
  if (isDegraded) return <span class="state warn">{badges.degraded}</span>;
  return hasFailed ? <span class="state bad">{badges.failed}</span> : null;
}

interface KnownTitle {
  /** Undefined while svc has stored no prompt of the conversation. */
  readonly title: string | undefined;
  /** The number of the conversation's ended requests when the page asked. */
  readonly requests: number;
}

/** Loads the titles of conversations. Asks again for one without a title when another of its requests has ended. */
function useTitles(all: readonly Conversation[]): ReadonlyMap<string, KnownTitle> {
  const [known, setKnown] = useState<ReadonlyMap<string, KnownTitle>>(new Map());
  const missing = all
    .filter(({ key, space, rows }) => {
      const { title, requests } = known.get(key) ?? {};
      return space !== '' && title === undefined && requests !== rows.length;
    })
    .slice(0, 40);
  const wanted = missing.map(({ key, rows }) => `${key} ${rows.length}`).join('\n');
  useEffect(() => {
    if (wanted === '') return;
    const conversations = missing.map(({ key, space }) => ({ conversation: key, space }));
    const note = (titles: Readonly<Record<string, string>>): void => {
      const fresh = missing.map(({ key, rows }) => {
        return [key, { title: titles[key] || undefined, requests: rows.length }] as const;
      });
      setKnown((before) => new Map([...before, ...fresh]));
    };
    post<TitlesAnswer>('titles', { conversations }).then(
      ({ titles }) => note(titles),
      () => note({}),
    );
  }, [wanted]);
  return known;
}

/** Returns the current time, and draws again every second. */
function useTick(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
