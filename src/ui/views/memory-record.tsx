import { useEffect, useRef, useState } from 'preact/hooks';
import type { Pin } from '../../core/memory/record.ts';
import type { DeskRecord } from '../../ports/memory-desk.ts';
import type { MemoryAnswer } from '../../ports/ui-api.ts';
import { post } from '../client/api.ts';
import { hrefOf, hrefWith, route } from '../client/router.ts';
import { onEnd } from '../client/session.ts';
import { shortSpace } from '../client/space-names.ts';
import { useGet } from '../client/use-load.ts';
import { clock, day, longDay, moment } from '../format.ts';
import { Shown } from '../parts/states.tsx';
import { STATES } from '../texts/frame.ts';
import { MEMORY } from '../texts/memory.ts';
import { act, forget } from './memory-acts.ts';

/** One memory: its exact text, its origin, where it was recalled, and what the user can do with it. */

const { record: WORDS } = MEMORY;
const SIGHTINGS_SHOWN = 5;

interface PanelProps {
  readonly spaces: readonly string[];
  readonly isHosted: boolean;
  readonly version: number;
  readonly reload: () => void;
}

export function RecordPanel(props: PanelProps) {
  const { query } = route.value;
  const ref = query.get('ref') ?? '';
  const space = query.get('space') ?? '';
  if (ref === '') return <aside class="panel record empty">{WORDS.pick}</aside>;
  return <Record key={ref} {...props} refOf={ref} space={space} />;
}

interface RecordProps extends PanelProps {
  readonly refOf: string;
  readonly space: string;
}

function Record(props: RecordProps) {
  const { refOf: ref, space, version } = props;
  const loaded = useGet<MemoryAnswer>('memory', { ref, space }, { version });
  const panel = useRef<HTMLElement>(null);
  // Scroll to the panel, because on a narrow screen it is above the list in which the user chose the memory.
  useEffect(() => panel.current?.scrollIntoView({ block: 'nearest' }), []);
  return (
    <article ref={panel} class="panel record" aria-labelledby="rec">
      <Shown of={loaded}>{(answer) => <Opened {...props} answer={answer} />}</Shown>
    </article>
  );
}

interface OpenedProps extends RecordProps {
  readonly answer: MemoryAnswer;
}

function Opened(props: OpenedProps) {
  const { answer, isHosted } = props;
  const { record } = answer;
  const [isEditing, setEditing] = useState(drafts.has(record.ref));
  return (
    <>
      <div>
        <div class="head">
          <h2 id="rec">{record.role === 'user' ? WORDS.you : WORDS.assistant}</h2>
          <p>
            <code>{record.ref}</code>
          </p>
        </div>
        {isEditing ? (
          <EditForm {...props} close={() => setEditing(false)} />
        ) : (
          <blockquote dir="auto">{record.text}</blockquote>
        )}
      </div>
      <Origin answer={answer} />
      <Trail answer={answer} />
      {!isHosted && <Pins {...props} />}
      <div class="buttons">
        {isHosted ? (
          <Off />
        ) : (
          <>
            {!isEditing && (
              <button type="button" onClick={() => setEditing(true)}>
                {WORDS.edit}
              </button>
            )}
            <Move {...props} />
          </>
        )}
        <Forget {...props} />
      </div>
    </>
  );
}

/** Draws the buttons that are disabled with a memory service, with the reason. */
function Off() {
  return (
    <>
      <p class="small quiet" id="off">
        {WORDS.off}
      </p>
      {[WORDS.edit, WORDS.move, WORDS.pinOff].map((name) => (
        <button key={name} type="button" disabled aria-describedby="off">
          {name}
        </button>
      ))}
    </>
  );
}

function Origin({ answer: { record, session } }: { readonly answer: MemoryAnswer }) {
  const { space, at, conversation, exchange, client, branch, editedAt } = record;
  return (
    <dl class="facts">
      <dt>{WORDS.project}</dt>
      <dd>{shortSpace(space)}</dd>
      <dt>{WORDS.said}</dt>
      <dd>
        {longDay(at)}, {clock(at)}
      </dd>
      <dt>{WORDS.session}</dt>
      <dd>
        <a href={hrefOf('memory', { space, session: conversation })} dir="auto">
          {session === '' ? WORDS.noSession : shortened(session)}
        </a>
        , {WORDS.exchange(exchange)}
      </dd>
      <dt>{WORDS.client}</dt>
      <dd>
        {client}
        {branch !== undefined && `, ${WORDS.branch(branch)}`}
      </dd>
      <dt>{WORDS.source}</dt>
      <dd>
        {sourceOf(record)}
        {editedAt !== undefined && `, ${WORDS.edited(day(editedAt))}`}
      </dd>
    </dl>
  );
}

const SESSION_CHARS = 60;

function shortened(text: string): string {
  return text.length > SESSION_CHARS ? `${text.slice(0, SESSION_CHARS)} …` : text;
}

function sourceOf({ source, conversation, importedAt }: DeskRecord): string {
  if (source === 'unverified') return WORDS.unverified;
  if (importedAt !== undefined) return WORDS.imported(day(importedAt));
  return conversation.startsWith('added_') ? WORDS.byHand : WORDS.captured;
}

function Trail({ answer: { sightings } }: { readonly answer: MemoryAnswer }) {
  return (
    <div>
      <h3>{WORDS.recalled(sightings.length)}</h3>
      <ul class="trail">
        {sightings.slice(0, SIGHTINGS_SHOWN).map(({ id, at, client }) => (
          <li key={id}>
            <a href={hrefOf('request', { id })}>{moment(at)}</a>
            <span class="cut">{client}</span>
          </li>
        ))}
      </ul>
      {sightings.length > SIGHTINGS_SHOWN && (
        <p class="small quiet">{WORDS.moreSightings(sightings.length - SIGHTINGS_SHOWN)}</p>
      )}
    </div>
  );
}

const PINS: readonly (readonly [value: Pin | 'fits', text: string])[] = [
  ['always', WORDS.pins.always],
  ['fits', WORDS.pins.fits],
  ['never', WORDS.pins.never],
];

function Pins({ answer: { record }, reload }: OpenedProps) {
  const { ref, space, pin = 'fits' } = record;
  const choose = (value: Pin | 'fits'): void =>
    void act(async () => {
      await post('pin', { space, ref, pin: value === 'fits' ? null : value });
      return MEMORY.done.pinned;
    }).then(reload);
  return (
    <fieldset>
      <legend>{WORDS.pin}</legend>
      <div class="choice">
        {PINS.map(([value, text]) => (
          <label key={value}>
            <input type="radio" name="pin" checked={pin === value} onChange={() => choose(value)} />
            <span>{text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/**
 * Unsaved texts of the edit form, by the reference of the memory. They survive the end of a session, as at a restart of
 * the proxy, because the user may continue with a new link. If the user closes the session, they are deleted.
 */
const drafts = new Map<string, string>();

onEnd.push((why) => {
  if (why === 'byHand') drafts.clear();
});

/** Draws the form for editing a memory. If saving fails, the typed text stays. */
function EditForm({
  answer: { record },
  reload,
  close,
}: OpenedProps & { readonly close: () => void }) {
  const [text, setText] = useState(drafts.get(record.ref) ?? record.text);
  const leave = (): void => {
    drafts.delete(record.ref);
    close();
  };
  const save = async (): Promise<void> => {
    let ref = record.ref;
    const isDone = await act(async () => {
      ({ ref } = await post<{ readonly ref: string }>('edit', {
        space: record.space,
        ref: record.ref,
        text,
      }));
      return MEMORY.done.edited;
    });
    if (!isDone) return;
    leave();
    location.hash = hrefWith({ ref });
    reload();
  };
  return (
    <form
      class="edit"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <label class="for-readers" for="edit">
        {WORDS.editLabel}
      </label>
      <textarea
        id="edit"
        rows={8}
        value={text}
        maxLength={32_768}
        dir="auto"
        onInput={(event) => {
          drafts.set(record.ref, event.currentTarget.value);
          setText(event.currentTarget.value);
        }}
      />
      <p class="small quiet">{WORDS.editNote}</p>
      <div class="buttons">
        <button class="main" type="submit" disabled={text.trim() === ''}>
          {WORDS.save}
        </button>
        <button type="button" onClick={leave}>
          {STATES.cancel}
        </button>
      </div>
    </form>
  );
}

function Move({ answer: { record }, spaces, reload }: OpenedProps) {
  const others = [...new Set(['global', ...spaces])].filter((one) => one !== record.space);
  const [to, setTo] = useState(others[0] ?? '');
  const move = async (): Promise<void> => {
    const { space, ref } = record;
    const isDone = await act(async () => {
      await post('move', { space, to, refs: [ref] });
      return MEMORY.done.moved;
    });
    if (!isDone) return;
    location.hash = hrefWith({ space: to, ref });
    reload();
  };
  return (
    <details name="act">
      <summary class="button">{WORDS.move}</summary>
      <div>
        <label>
          {WORDS.project}
          <select value={to} onChange={(event) => setTo(event.currentTarget.value)}>
            {others.map((one) => (
              <option key={one} value={one}>
                {shortSpace(one)}
              </option>
            ))}
          </select>
        </label>
        <p class="quiet">{WORDS.moveNote}</p>
        <button type="button" onClick={() => void move()}>
          {WORDS.moveButton}
        </button>
      </div>
    </details>
  );
}

function Forget({ answer: { record, sightings }, isHosted, reload }: OpenedProps) {
  const { ref, space } = record;
  return (
    <details name="act">
      <summary class="button risky">{WORDS.forget}</summary>
      <div>
        <p>{isHosted ? WORDS.forgetHosted : WORDS.forgetNote(sightings.length)}</p>
        <button
          type="button"
          class="risky"
          onClick={() => {
            location.hash = hrefWith({ ref: '' });
            void forget({ refs: [ref], space }, reload);
          }}
        >
          {WORDS.forgetButton}
        </button>
      </div>
    </details>
  );
}
