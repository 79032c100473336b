import { useState } from 'preact/hooks';
import type { Shelf } from '../../ports/memory-desk.ts';
import { type DaysAnswer, UNDO_MAX } from '../../ports/ui-api.ts';
import { post } from '../client/api.ts';
import { hrefOf, hrefWith, route } from '../client/router.ts';
import { isUnplaced } from '../../core/request/space-names.ts';
import { shortSpace } from '../client/space-names.ts';
import { useGet } from '../client/use-load.ts';
import { atOfDay, day, whole } from '../format.ts';
import { Choice, typed } from '../parts/form.tsx';
import { Later } from '../parts/later.tsx';
import { Shown } from '../parts/states.tsx';
import { MEMORY as WORDS } from '../texts/memory.ts';
import { act, forget } from './memory-acts.ts';

/**
 * The filters of the memory view (project, day, session, speaker, client, source and kind), and the actions on a
 * project.
 */

/** Values of the address that a chosen filter removes: the search and the open memory. */
const CLEARS = { q: '', ref: '' };
const CLIENTS = ['claude-code', 'codex', 'opencode', 'pi', 'qwen-code', 'svc'];
/** The filters that are disabled with a memory service, which does not support them, each with its values. */
const HOSTED_OFF = [
  ['client', CLIENTS.map((name) => [name, name] as const)],
  ['source', Object.entries(WORDS.sources)],
  ['kind', Object.entries(WORDS.kinds)],
] as const;

export function Filters({
  shelves,
  space,
}: {
  /** The spaces; null with a memory service. */
  readonly shelves: readonly Shelf[] | null;
  readonly space: string;
}) {
  const { filters } = WORDS;
  const session = route.value.query.get('session') ?? '';
  const isHosted = shelves === null;
  const projects = shelves?.map((one) => [one.space, shortSpace(one.space)] as const) ?? [
    ['', filters.all],
    ...(space === '' ? [] : [[space, shortSpace(space)] as const]),
  ];
  return (
    <div class="filters">
      <Choice
        name="space"
        label={filters.space}
        chosen={space}
        options={projects}
        clears={CLEARS}
      />
      <Choice
        name="role"
        clears={CLEARS}
        label={filters.role}
        options={[
          ['', filters.anyone],
          ['user', filters.you],
          ['assistant', filters.assistant],
        ]}
      />
      {HOSTED_OFF.map(([name, options]) => (
        <Choice
          key={name}
          name={name}
          clears={CLEARS}
          label={filters[name]}
          options={[['', filters.any], ...options]}
          isOff={isHosted}
        />
      ))}
      {session !== '' && (
        <a class="button" href={hrefWith({ session: '' })}>
          {WORDS.session(session)}: {WORDS.wholeProject}
        </a>
      )}
    </div>
  );
}

interface RailProps {
  readonly shelves: readonly Shelf[];
  readonly version: number;
  readonly space: string;
  readonly reload: () => void;
}

export function Rail({ shelves, space, version, reload }: RailProps) {
  return (
    <nav class="rail" aria-label={WORDS.projects}>
      <h2>{WORDS.projects}</h2>
      <ul>
        {shelves.map((one) => (
          <li key={one.space}>
            <a
              href={hrefOf('memory', { space: one.space })}
              aria-current={one.space === space ? 'true' : undefined}
            >
              <span class="cut name">{shortSpace(one.space)}</span>
              <span>{whole(one.memories)}</span>
            </a>
          </li>
        ))}
      </ul>
      <Days space={space} version={version} />
      <Later>
        <ProjectActs shelves={shelves} space={space} reload={reload} />
      </Later>
    </nav>
  );
}

function Days({ space, version }: Pick<RailProps, 'space' | 'version'>) {
  const loaded = useGet<DaysAnswer>('days', { space }, { version });
  const chosen = route.value.query.get('day') ?? '';
  return (
    <>
      <h2 class="cut">{WORDS.daysOf(shortSpace(space))}</h2>
      <Shown of={loaded}>
        {({ days }) => (
          <ul>
            <li>
              <a
                href={hrefWith({ day: '', q: '' })}
                aria-current={chosen === '' ? 'true' : undefined}
              >
                {WORDS.allDays}
              </a>
            </li>
            {days.slice(0, DAYS_SHOWN).map((one) => (
              <li key={one.day}>
                <a
                  href={hrefWith({ day: one.day, q: '' })}
                  aria-current={chosen === one.day ? 'true' : undefined}
                >
                  {day(atOfDay(one.day))}
                  <span>{whole(one.memories)}</span>
                </a>
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </>
  );
}

const DAYS_SHOWN = 14;

function ProjectActs({ shelves, space, reload }: Omit<RailProps, 'version'>) {
  const { project } = WORDS;
  const [count, setCount] = useState<number | undefined>();
  const others = shelves.map((one) => one.space).filter((one) => one !== space);
  const send = async (to: string, isMerge: boolean): Promise<void> => {
    const isDone = await act(async () => {
      await post('spaces', { space, to, isMerge });
      return WORDS.done.renamed;
    });
    if (!isDone) return;
    location.hash = hrefOf('memory', { space: to });
    reload();
  };
  return (
    <>
      <h2>{project.title}</h2>
      <div class="buttons project">
        <details name="project">
          <summary class="button">{project.rename}</summary>
          <form onSubmit={(event) => void send(typed(event, 'to'), false)}>
            <label>
              {project.name}
              <input
                name="to"
                required
                maxLength={128}
                defaultValue={isUnplaced(space) ? '' : shortSpace(space)}
              />
            </label>
            <button type="submit">{project.renameButton}</button>
          </form>
        </details>
        {others.length > 0 && (
          <details name="project">
            <summary class="button">{project.merge}</summary>
            <form onSubmit={(event) => void send(typed(event, 'to'), true)}>
              <label>
                {project.into}
                <select name="to">
                  {others.map((one) => (
                    <option key={one} value={one}>
                      {shortSpace(one)}
                    </option>
                  ))}
                </select>
              </label>
              <p class="quiet">{project.mergeNote}</p>
              <button type="submit">{project.mergeButton(shortSpace(space), '…')}</button>
            </form>
          </details>
        )}
        <details
          name="project"
          onToggle={(event) => {
            if (event.currentTarget.open) void counted(space).then(setCount);
          }}
        >
          <summary class="button risky">{project.forget}</summary>
          <div>
            <p>{countText(count)}</p>
            <button
              type="button"
              class="risky"
              disabled={count === undefined || count === 0}
              onClick={() => void forget({ space }, reload)}
            >
              {WORDS.many.forget(count ?? 0)}
            </button>
          </div>
        </details>
      </div>
    </>
  );
}

function countText(count: number | undefined): string {
  if (count === undefined) return WORDS.project.counting;
  return count > UNDO_MAX ? WORDS.many.confirmFinal(count) : WORDS.many.confirm(count);
}

async function counted(space: string): Promise<number | undefined> {
  let found: number | undefined;
  await act(async () => {
    found = (await post<{ readonly count: number }>('count', { space })).count;
    return undefined;
  });
  return found;
}
