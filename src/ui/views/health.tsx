import { useState } from 'preact/hooks';
import type { HealthAnswer, HealthCheck, StoreAnswer } from '../../ports/ui-api.ts';
import { post } from '../client/api.ts';
import { closeSession } from '../client/session.ts';
import { useGet } from '../client/use-load.ts';
import { bytes, clockSeconds, whole } from '../format.ts';
import { Command } from '../parts/command.tsx';
import { NoticeLine } from '../parts/notice.tsx';
import { FactTable } from '../parts/tables.tsx';
import { Shown } from '../parts/states.tsx';
import { Section } from '../parts/section.tsx';
import { STATES, VIEWS } from '../texts/frame.ts';
import { HEALTH as WORDS } from '../texts/health.ts';
import { act } from './memory-acts.ts';

/**
 * The health view: the checks of `svc doctor`, problems first, each with the command that fixes it; facts about the
 * store; a live check; and a button that ends the session.
 */

/** The number of checks of the level `ok` that are shown at first. */
const OK_SHOWN = 9;
/** Deadline of the checks, in milliseconds. They ask providers, and read the whole store. */
const CHECK_MS = 60_000;

export function HealthView() {
  const [version, setVersion] = useState(0);
  const checked = useGet<HealthAnswer>('health', {}, { version, withinMs: CHECK_MS });
  const store = useGet<StoreAnswer>('store');
  return (
    <>
      {checked.state === 'loading' ? (
        <h1 aria-busy="true">{WORDS.looking}</h1>
      ) : (
        <Shown of={checked} title={VIEWS.health}>
          {(answer) => <Checks answer={answer} again={() => setVersion((one) => one + 1)} />}
        </Shown>
      )}
      <div class="columns">
        <Shown of={store}>{(facts) => <StoreFacts facts={facts} />}</Shown>
        <LiveCheck />
        <ThisPage />
      </div>
      <NoticeLine />
    </>
  );
}

const ORDER = ['problem', 'warning', 'ok'] as const;

function Checks(props: { readonly answer: HealthAnswer; readonly again: () => void }) {
  const { checks, at } = props.answer;
  const [isAll, setAll] = useState(false);
  const bad = checks.filter(({ level }) => level !== 'ok').length;
  const sorted = checks.toSorted(
    (one, other) => ORDER.indexOf(one.level) - ORDER.indexOf(other.level),
  );
  const shown = isAll ? sorted : sorted.slice(0, bad + OK_SHOWN);
  return (
    <>
      <h1>{bad === 0 ? WORDS.fine(checks.length) : WORDS.look(bad, checks.length - bad)}</h1>
      <p class="lead">{WORDS.looked(clockSeconds(at))}</p>
      <Section
        id="checks"
        title={WORDS.checks}
        beside={
          <button type="button" onClick={props.again}>
            {WORDS.again}
          </button>
        }
      >
        <CheckList checks={shown} />
        {shown.length < sorted.length && (
          <p class="small lead">
            <button type="button" onClick={() => setAll(true)}>
              {WORDS.moreOk(sorted.length - shown.length)}
            </button>
          </p>
        )}
      </Section>
    </>
  );
}

const DOTS = { ok: 'dot ok', warning: 'dot warn', problem: 'dot bad' } as const;
const LEVELS = { ok: '', warning: 'state warn', problem: 'state bad' } as const;

function CheckList({ checks }: { readonly checks: readonly HealthCheck[] }) {
  return (
    <ul class="checks">
      {checks.map(({ level, subject, found, fix }) => (
        <li key={subject + found}>
          <span class={DOTS[level]} />
          <span class={level === 'ok' ? 'quiet level' : 'level'}>
            <span class={LEVELS[level]}>{WORDS.levels[level]}</span>
          </span>
          <span class="subject">{subject}</span>
          <span class={level === 'ok' ? 'found quiet' : 'found'}>{found}</span>
          {fix !== undefined && <Mend fix={fix} />}
        </li>
      ))}
    </ul>
  );
}

function Mend({ fix }: { readonly fix: string }) {
  const [, command = ''] = /(svc [a-z][^,.;:]*)/.exec(fix) ?? [];
  return (
    <span class="mend">
      <Command text={fix} copied={command} />
    </span>
  );
}

function StoreFacts({ facts }: { readonly facts: StoreAnswer }) {
  const rows = [
    [WORDS.memories, whole(facts.memories)],
    [WORDS.projects, whole(facts.projects)],
    [WORDS.passages, whole(facts.passages)],
    [WORDS.size, bytes(facts.bytes)],
    [WORDS.engine, facts.engine],
  ] as const;
  const service = [
    [WORDS.inUse, facts.service === '' ? WORDS.local : facts.service],
    [WORDS.outbox, facts.waiting === 0 ? WORDS.empty : WORDS.waiting(facts.waiting)],
    [WORDS.svc, facts.svc],
    [WORDS.node, facts.node],
  ] as const;
  return (
    <>
      <Section id="store" title={WORDS.store}>
        <FactTable rows={rows} />
      </Section>
      <Section id="service" title={WORDS.service}>
        <FactTable rows={service} />
      </Section>
    </>
  );
}

/** Deadline of the model requests of `svc doctor --live`, in milliseconds. */
const LIVE_MS = 150_000;

function LiveCheck() {
  const [isRunning, setRunning] = useState(false);
  const [checks, setChecks] = useState<readonly HealthCheck[]>([]);
  const run = async (): Promise<void> => {
    setRunning(true);
    await act(async () => {
      const answer = await post<HealthAnswer>('live', {}, LIVE_MS);
      setChecks(answer.checks);
      return undefined;
    });
    setRunning(false);
  };
  return (
    <Section id="live" title={WORDS.live}>
      <p class="lead">{WORDS.liveText}</p>
      <div class="buttons lead">
        <button type="button" disabled={isRunning} onClick={() => void run()}>
          {isRunning ? STATES.loading : WORDS.liveButton}
        </button>
      </div>
      {checks.length > 0 && <CheckList checks={checks} />}
    </Section>
  );
}

function ThisPage() {
  return (
    <Section id="page" title={WORDS.page}>
      <p class="lead">{WORDS.pageText}</p>
      <div class="buttons lead">
        <button type="button" onClick={() => void closeSession()}>
          {WORDS.close}
        </button>
      </div>
    </Section>
  );
}
