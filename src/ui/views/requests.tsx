import { useState } from 'preact/hooks';
import type { RowsAnswer } from '../../ports/ui-api.ts';
import { dayIn, hrefOf, route } from '../client/router.ts';
import { useGet } from '../client/use-load.ts';
import { atOfDay, longDay } from '../format.ts';
import { Empty, Shown } from '../parts/states.tsx';
import { TEXTS } from '../texts/texts.ts';
import { RequestTable } from './conversation.tsx';

/** The requests behind a number, so that a person can check it. */

const { requests: WORDS } = TEXTS;
const PAGE = 100;
const PAGES_MAX = 5;
const NAMES = ['conversation', 'space', 'client', 'model'] as const;

export function RequestsView() {
  const { query } = route.value;
  const [limit, setLimit] = useState(PAGE);
  const filter = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? undefined]));
  const loaded = useGet<RowsAnswer>('requests', { ...filter, ...daysOf(query), limit });
  return (
    <>
      <nav aria-label={TEXTS.frame.path}>
        <ol class="path">
          <li>
            <a href={hrefOf('savings')}>{TEXTS.views.savings}</a>
          </li>
          <li>{scopeText(query)}</li>
        </ol>
      </nav>
      <Shown of={loaded} title={TEXTS.views.requests}>
        {({ rows }) => (
          <>
            <h1>{WORDS.title(rows.length, rows.length === limit)}</h1>
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
    return value === null ? [] : [WORDS.of[name](value)];
  });
  if (from !== undefined) parts.push(WORDS.of.day(longDay(atOfDay(from))));
  return parts.length === 0 ? WORDS.all : parts.join(', ');
}
