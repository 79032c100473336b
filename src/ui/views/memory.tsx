import { useState } from 'preact/hooks';
import type { DeskRecord } from '../../ports/memory-desk.ts';
import { type MemoriesAnswer, PROMPT_CHARS_MAX, type ShelvesAnswer } from '../../ports/ui-api.ts';
import type { Words } from '../client/api.ts';
import { dayIn, hrefWith, route } from '../client/router.ts';
import { askAhead, dropAnswers, useGet } from '../client/use-load.ts';
import { day, daySpan } from '../format.ts';
import { Command } from '../parts/command.tsx';
import { AskForm, More } from '../parts/form.tsx';
import { NoticeLine } from '../parts/notice.tsx';
import { Later, useRows } from '../parts/later.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { VIEWS } from '../texts/frame.ts';
import { MEMORY as WORDS } from '../texts/memory.ts';
import { forget } from './memory-acts.ts';
import { Filters, Rail } from './memory-filters.tsx';
import { Looked, WhyNot } from './memory-look.tsx';
import { RecordPanel } from './memory-record.tsx';

/** Memories that are listed at first, and that "more" adds. */
const PAGE = 50;

/** Draws memories by project and day. The user can search them as recall does, and manage them. */
export function MemoryView() {
  const [version, setVersion] = useState(0);
  const reload = (): void => {
    dropAnswers();
    setVersion((one) => one + 1);
  };
  const shelves = useGet<ShelvesAnswer>('shelves', {}, { version });
  return (
    <>
      <Shown of={shelves} title={VIEWS.memory}>
        {(answer) => <Shelves answer={answer} version={version} reload={reload} />}
      </Shown>
      <NoticeLine />
    </>
  );
}

/** Makes the calls with which this view opens, in advance. */
export async function askMemoryAhead(): Promise<void> {
  const answer = await askAhead<ShelvesAnswer>('shelves');
  const space = answer?.shelves?.[0]?.space;
  if (space === undefined) return;
  const query = new URLSearchParams();
  await Promise.all([
    askAhead('days', { space }),
    askAhead('memories', asked({ space, query, limit: PAGE })),
  ]);
}

interface ShelvesProps {
  readonly answer: ShelvesAnswer;
  readonly version: number;
  readonly reload: () => void;
}

function Shelves({ answer: { shelves }, version, reload }: ShelvesProps) {
  const { query } = route.value;
  const words = query.get('q') ?? '';
  const space = query.get('space') ?? shelves?.[0]?.space ?? '';
  const total = (shelves ?? []).reduce((sum, { memories }) => sum + memories, 0);
  const isHosted = shelves === null;
  if (shelves?.length === 0) return <Nothing />;
  return (
    <>
      <h1>{shelves === null ? VIEWS.memory : WORDS.title(total, shelves.length)}</h1>
      {shelves === null && (
        <p class="lead" id="hosted">
          {WORDS.hosted}
        </p>
      )}
      <AskForm
        id="q"
        label={shelves === null ? WORDS.searchWords : WORDS.search}
        button={WORDS.searchButton}
        words={words}
        charsMax={PROMPT_CHARS_MAX}
        ask={(q) => {
          location.hash = hrefWith({ q, ref: '' });
        }}
      />
      <Filters shelves={shelves} space={space} />
      <div class={isHosted ? 'shelf railless' : 'shelf'}>
        {shelves !== null && (
          <Rail shelves={shelves} space={space} version={version} reload={reload} />
        )}
        {words === '' || shelves === null ? (
          <List space={space} isHosted={isHosted} version={version} reload={reload} />
        ) : (
          <Looked space={space} prompt={words} version={version} />
        )}
        <RecordPanel
          spaces={(shelves ?? []).map((one) => one.space)}
          isHosted={isHosted}
          version={version}
          reload={reload}
        />
      </div>
      {shelves !== null && (
        <Later>
          <WhyNot space={space} version={version} />
        </Later>
      )}
    </>
  );
}

function Nothing() {
  return (
    <>
      <h1>{WORDS.none}</h1>
      <p class="lead">{WORDS.noneText}</p>
      <p class="mend">
        <Command text="svc memory import --from claude-code" />
      </p>
    </>
  );
}

interface ListProps {
  readonly space: string;
  /** True with a memory service, which returns no total. */
  readonly isHosted: boolean;
  readonly version: number;
  readonly reload: () => void;
}

function List({ space, isHosted, version, reload }: ListProps) {
  const { query } = route.value;
  const [limit, setLimit] = useState(PAGE);
  const loaded = useGet<MemoriesAnswer>('memories', asked({ space, query, limit }), { version });
  return (
    <section aria-labelledby="found">
      <Shown of={loaded}>
        {({ records, total }) => (
          <>
            <div class="head">
              <h2 id="found">
                {total > limit && isHosted ? WORDS.newest(limit) : WORDS.list(total)}
              </h2>
            </div>
            {records.length === 0 && <Empty>{WORDS.empty}</Empty>}
            <Records records={records} space={space} isHosted={isHosted} reload={reload} />
            {records.length < total && limit < 2 * PAGE && (
              <More show={() => setLimit(limit + PAGE)} />
            )}
          </>
        )}
      </Shown>
    </section>
  );
}

interface Asked {
  readonly space: string;
  readonly query: URLSearchParams;
  readonly limit: number;
}

const FILTERS = ['role', 'client', 'kind', 'source', 'session'] as const;

function asked({ space, query, limit }: Asked): Words {
  return {
    space,
    ...Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ''])),
    words: query.get('q') ?? '',
    ...daySpan(dayIn(query, 'day')),
    limit,
  };
}

function Records(props: {
  readonly records: readonly DeskRecord[];
  readonly space: string;
  readonly isHosted: boolean;
  readonly reload: () => void;
}) {
  const { records, reload } = props;
  const { confirm, confirmHosted } = WORDS.many;
  const question = props.isHosted ? confirmHosted : confirm;
  const rows = useRows(records);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [isAsked, setAsked] = useState(false);
  const shown = chosen.filter((ref) => records.some((one) => one.ref === ref));
  const choose = (ref: string, isOn: boolean): void => {
    setAsked(false);
    setChosen(isOn ? [...shown, ref] : shown.filter((one) => one !== ref));
  };
  return (
    <>
      {shown.length > 0 && (
        <p class="notice" role="group" aria-label={WORDS.many.chosen(shown.length)}>
          <span>{isAsked ? question(shown.length) : WORDS.many.chosen(shown.length)}</span>
          <button
            type="button"
            class="risky"
            onClick={() => {
              if (!isAsked) return setAsked(true);
              setChosen([]);
              setAsked(false);
              void forget({ refs: shown, space: props.space }, reload);
            }}
          >
            {WORDS.many.forget(shown.length)}
          </button>
          <button type="button" onClick={() => setChosen([])}>
            {WORDS.many.clear}
          </button>
        </p>
      )}
      <ol>
        {rows.map((record) => (
          <Row
            key={record.ref + record.space}
            record={record}
            href={hrefWith({ ref: record.ref, space: props.space === '' ? '' : record.space })}
            isChosen={shown.includes(record.ref)}
            choose={choose}
          />
        ))}
      </ol>
    </>
  );
}

const SHOWN_CHARS = 300;

function Row(props: {
  readonly record: DeskRecord;
  readonly href: string;
  readonly isChosen: boolean;
  readonly choose: (ref: string, isOn: boolean) => void;
}) {
  const { record, href, isChosen, choose } = props;
  const { ref, role, text, at, client, source } = record;
  const isOpen = route.value.query.get('ref') === ref;
  return (
    <li class={isOpen ? 'hit chosen' : 'hit'}>
      <span class="tick">
        <input
          type="checkbox"
          aria-label={WORDS.many.choose(ref)}
          checked={isChosen}
          onChange={(event) => choose(ref, event.currentTarget.checked)}
        />
      </span>
      <div>
        <p dir="auto">
          <a href={href} aria-current={isOpen ? 'true' : undefined}>
            {text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text}
          </a>{' '}
          <Badges record={record} />
        </p>
        <p class="meta">
          {WORDS.by(role === 'user' ? WORDS.you : WORDS.assistant, day(at), client)}
          {source !== undefined && `, ${WORDS.badges.unverified}`}
        </p>
      </div>
    </li>
  );
}

function Badges({ record: { pin, editedAt } }: { readonly record: DeskRecord }) {
  return (
    <>
      {pin !== undefined && <span class="state">{WORDS.badges[pin]}</span>}{' '}
      {editedAt !== undefined && <span class="state">{WORDS.badges.edited}</span>}
    </>
  );
}
