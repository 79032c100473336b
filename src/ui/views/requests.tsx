import { useState } from 'preact/hooks';
import type { RowsAnswer } from '../../ports/ui-api.ts';
import { dayIn, hrefOf, hrefWith, route } from '../client/router.ts';
import { shortSpace } from '../client/space-names.ts';
import { useGet } from '../client/use-load.ts';
import { atOfDay, daySpan, longDay } from '../format.ts';
import { Choice, More, typed } from '../parts/form.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { VIEWS } from '../texts/frame.ts';
import { NOW } from '../texts/now.ts';
import { REQUESTS as WORDS } from '../texts/request.ts';
import { RequestTable } from './conversation.tsx';

const PAGE = 100;
const PAGES_MAX = 5;
const NAMES = ['conversation', 'space', 'client', 'model'] as const;

/**
 * Lists the newest requests: of all, or of those behind a number of another view, so that users can check the number.
 */
export function RequestsView() {
  const { query } = route.value;
  const [limit, setLimit] = useState(PAGE);
  const filters = [...NAMES, 'words', 'missed'].map((name) => [name, query.get(name) ?? undefined]);
  const days = daySpan(dayIn(query, 'first'), dayIn(query, 'last'));
  const asked = { ...Object.fromEntries(filters), ...days, limit };
  const loaded = useGet<RowsAnswer>('requests', asked);
  return (
    <>
      <Shown of={loaded} title={VIEWS.requests}>
        {({ rows }) => (
          <>
            <h1>{WORDS.title(rows.length, rows.length === limit)}</h1>
            <p class="lead">
              {scopeText(query)}
              {[...query].length > 0 && (
                <>
                  {'. '}
                  <a href={hrefOf('requests')}>{WORDS.showAll}</a>
                </>
              )}
            </p>
            <Filters query={query} rows={rows} />
            {rows.length === 0 && <Empty>{WORDS.none}</Empty>}
            <section aria-label={NOW.requests}>
              <RequestTable rows={rows} isLong />
              {rows.length === limit && limit < PAGE * PAGES_MAX && (
                <More show={() => setLimit(limit + PAGE)} />
              )}
            </section>
          </>
        )}
      </Shown>
    </>
  );
}

const CHOICES = ['space', 'client', 'model'] as const;

/** Draws the filters. Each offers the values in the visible rows, and the chosen value. */
function Filters(props: { readonly query: URLSearchParams; readonly rows: RowsAnswer['rows'] }) {
  const { query, rows } = props;
  const any = ['', WORDS.any] as const;
  return (
    <form
      class="filters"
      role="search"
      onSubmit={(event) => {
        location.hash = hrefWith({ words: typed(event, 'words') });
      }}
    >
      <label>
        <span>{WORDS.search}</span>
        <input type="search" name="words" maxLength={200} defaultValue={query.get('words') ?? ''} />
      </label>
      {CHOICES.map((name) => {
        const values = new Set([query.get(name) ?? '', ...rows.map((row) => row[name])]);
        values.delete('');
        const options = [...values]
          .toSorted()
          .map((value) => [value, name === 'space' ? shortSpace(value) : value] as const);
        return (
          <Choice key={name} name={name} label={WORDS.choices[name]} options={[any, ...options]} />
        );
      })}
      <Choice name="missed" label={WORDS.missed} options={[any, ['1', WORDS.onlyMissed]]} />
    </form>
  );
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
