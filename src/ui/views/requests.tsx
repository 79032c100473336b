import { useState } from 'preact/hooks';
import type { RowsAnswer } from '../../ports/ui-api.ts';
import { dayIn, hrefOf, hrefWith, route } from '../client/router.ts';
import { shortSpace } from '../client/space-names.ts';
import { useGet } from '../client/use-load.ts';
import { atOfDay, longDay } from '../format.ts';
import { Empty, Shown } from '../parts/states.tsx';
import { TEXTS } from '../texts/texts.ts';
import { RequestTable } from './conversation.tsx';

/** All requests, and those behind a number, so that a person can check it. */

const { requests: WORDS } = TEXTS;
const PAGE = 100;
const PAGES_MAX = 5;
const NAMES = ['conversation', 'space', 'client', 'model'] as const;

export function RequestsView() {
  const { query } = route.value;
  const [limit, setLimit] = useState(PAGE);
  const filter = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? undefined]));
  const words = query.get('words') ?? undefined;
  const missed = query.get('missed') ?? undefined;
  const asked = { ...filter, words, missed, ...daysOf(query), limit };
  const loaded = useGet<RowsAnswer>('requests', asked);
  return (
    <>
      <Shown of={loaded} title={TEXTS.views.requests}>
        {({ rows }) => (
          <>
            <h1>{WORDS.title(rows.length, rows.length === limit)}</h1>
            <p class="lead">
              {scopeText(query)}
              {isFiltered(query) && (
                <>
                  {'. '}
                  <a href={hrefOf('requests')}>{WORDS.showAll}</a>
                </>
              )}
            </p>
            <Filters query={query} rows={rows} />
            {rows.length === 0 && <Empty>{WORDS.none}</Empty>}
            <section aria-label={TEXTS.now.requests}>
              <RequestTable rows={rows} isLong />
              {rows.length === limit && limit < PAGE * PAGES_MAX && (
                <p class="lead">
                  <button type="button" onClick={() => setLimit(limit + PAGE)}>
                    {TEXTS.states.more}
                  </button>
                </p>
              )}
            </section>
          </>
        )}
      </Shown>
    </>
  );
}

function isFiltered(query: URLSearchParams): boolean {
  return [...query.keys()].length > 0;
}

const CHOICES = ['space', 'client', 'model'] as const;

/** The values to choose from are those of the rows in sight, and the chosen one. */
function Filters(props: { readonly query: URLSearchParams; readonly rows: RowsAnswer['rows'] }) {
  const { query, rows } = props;
  const isMissed = query.get('missed') === '1';
  return (
    <form
      class="filters"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const words = new FormData(event.currentTarget).get('words');
        location.hash = hrefWith({ words: typeof words === 'string' ? words.trim() : '' });
      }}
    >
      <label>
        <span>{WORDS.search}</span>
        <input type="search" name="words" maxLength={200} defaultValue={query.get('words') ?? ''} />
      </label>
      {CHOICES.map((name) => {
        const chosen = query.get(name) ?? '';
        const values = new Set([chosen, ...rows.map((row) => row[name])]);
        values.delete('');
        return (
          <label key={name}>
            <span>{WORDS.choices[name]}</span>
            <select
              onChange={(event) => {
                location.hash = hrefWith({ [name]: event.currentTarget.value });
              }}
            >
              <option value="" selected={chosen === ''}>
                {WORDS.any}
              </option>
              {[...values].toSorted().map((value) => (
                <option key={value} value={value} selected={value === chosen}>
                  {name === 'space' ? shortSpace(value) : value}
                </option>
              ))}
            </select>
          </label>
        );
      })}
      <label>
        <span>{WORDS.missed}</span>
        <select
          onChange={(event) => {
            location.hash = hrefWith({ missed: event.currentTarget.value });
          }}
        >
          <option value="" selected={!isMissed}>
            {WORDS.any}
          </option>
          <option value="1" selected={isMissed}>
            {WORDS.onlyMissed}
          </option>
        </select>
      </label>
    </form>
  );
}

/** `first` and `last` are days, and both are meant. */
function daysOf(query: URLSearchParams): { readonly since?: number; readonly until?: number } {
  const [from, to] = [dayIn(query, 'first'), dayIn(query, 'last')];
  if (from === undefined) return {};
  const end = new Date(atOfDay(to ?? from));
  end.setDate(end.getDate() + 1);
  return { since: atOfDay(from), until: end.getTime() };
}

function scopeText(query: URLSearchParams): string {
  const from = dayIn(query, 'first');
  const parts = NAMES.flatMap((name) => {
    const value = query.get(name);
    return value === null ? [] : [WORDS.of[name](name === 'space' ? shortSpace(value) : value)];
  });
  const words = query.get('words');
  if (words !== null) parts.push(WORDS.of.words(words));
  if (query.get('missed') === '1') parts.push(WORDS.of.missed);
  if (from !== undefined) parts.push(WORDS.of.day(longDay(atOfDay(from))));
  return parts.length === 0 ? WORDS.all : parts.join(', ');
}
