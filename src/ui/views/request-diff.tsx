import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ItemNote } from '../../core/plan/item-notes.ts';
import type { BlockLine, BlockText, TextAnswer } from '../../ports/ui-api.ts';
import { hrefOf } from '../client/router.ts';
import { shortSpace } from '../client/space-names.ts';
import { useGet } from '../client/use-load.ts';
import { day, whole } from '../format.ts';
import { Shown } from '../parts/states.tsx';
import { REQUEST as WORDS } from '../texts/request.ts';

interface NumberedNote extends ItemNote {
  /** The numbers of the items, "8" or "9–10"; '' for the parts of the body outside the list of items. */
  readonly number: string;
}

function numbered(notes: readonly ItemNote[]): readonly NumberedNote[] {
  let next = 1;
  return notes.map((note) => {
    if (note.edit === 'block') return { ...note, number: String(Math.max(1, next - 1)) };
    const from = next;
    next += note.count;
    const to = next - 1;
    if (note.count === 0) return { ...note, number: '' };
    return { ...note, number: from === to ? String(from) : `${from}–${to}` };
  });
}

/** Draws two columns: the items that the client sent, and what svc sent instead of each. */
export function Diff(props: {
  readonly notes: readonly ItemNote[];
  readonly blocks: readonly BlockText[];
  readonly came: number;
  readonly went: number;
}) {
  return (
    <div class="diff">
      <div class="pair sides">
        <h3>
          {WORDS.clientSent} <span class="label">{WORDS.tokens(props.came)}</span>
        </h3>
        <h3>
          {WORDS.wentOutLong} <span class="label">{WORDS.tokens(props.went)}</span>
        </h3>
      </div>
      {numbered(props.notes).map((note, at) => (
        <Row key={at} note={note} blocks={props.blocks} />
      ))}
    </div>
  );
}

function Row({
  note,
  blocks,
}: {
  readonly note: NumberedNote;
  readonly blocks: readonly BlockText[];
}) {
  switch (note.edit) {
    case 'same':
      return <Same note={note} />;
    case 'stub':
      return <Stub note={note} />;
    case 'left_out':
      return <LeftOut note={note} />;
    case 'block': {
      const [fingerprint] = note.refs ?? [];
      const block = blocks.find((one) => one.fingerprint === fingerprint);
      return <Added note={note} lines={block?.lines ?? []} />;
    }
  }
}

function Same({ note }: { readonly note: NumberedNote }) {
  return (
    <details class="fold">
      <summary>
        <span class="nr">{note.number}</span>
        <span class="cut">{sameText(note)}</span>
        <span class="size">{WORDS.tokens(note.tokens)}</span>
      </summary>
      <div class="pair">
        <p class="small quiet">
          {WORDS.noBodies} <code>{WORDS.keepSetting}</code>.
        </p>
        <p class="small quiet echo">{WORDS.asItCame}</p>
      </div>
    </details>
  );
}

function sameText({ count, kind, number }: NumberedNote): string {
  if (count === 0) return WORDS.head;
  if (count === 1 && kind !== undefined) return WORDS.kinds[kind];
  return number.startsWith('1–') ? WORDS.headAnd(count) : WORDS.items(count);
}

function Stub({ note }: { readonly note: NumberedNote }) {
  const { number, count, tool, refs = [] } = note;
  const [ref = ''] = refs;
  return (
    <article class="pair item gone" aria-label={WORDS.leftOutLabel(number)}>
      <div class="sent">
        <What number={number} tokens={note.tokens}>
          <span>
            {count > 1 ? (
              WORDS.olderOutputs(count)
            ) : (
              <>
                {WORDS.outputOf} <b>{tool ?? WORDS.someTool}</b>
              </>
            )}
          </span>
        </What>
        {count === 1 && <Hidden refs={[ref]} />}
      </div>
      <div class="left">
        <What number={number} tokens={note.after ?? 0}>
          <span>{count > 1 ? WORDS.stubs(count) : WORDS.stub}</span>
        </What>
        {count === 1 && <StubText refOf={ref} tool={tool} />}
      </div>
    </article>
  );
}

function LeftOut({ note }: { readonly note: NumberedNote }) {
  return (
    <article class="pair item gone" aria-label={WORDS.leftOutLabel(note.number)}>
      <div class="sent">
        <What number={note.number} tokens={note.tokens}>
          <span>{WORDS.exchange(note.count)}</span>
        </What>
        <Hidden refs={note.refs ?? []} />
      </div>
      <div class="left nothing">
        <p class="small quiet">{WORDS.nothingStands}</p>
      </div>
    </article>
  );
}

/** Draws the head of an item: its number, what it is, and its tokens. */
function What(props: {
  readonly number: string;
  readonly tokens: number;
  readonly children: ComponentChildren;
}) {
  return (
    <p class="what">
      <span class="nr">{props.number}</span>
      {props.children}
      <span class="size">{whole(props.tokens)}</span>
    </p>
  );
}

/** Draws texts that were left out. They are loaded when the user opens them. */
function Hidden({ refs }: { readonly refs: readonly string[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="turn">{WORDS.showText}</summary>
      {isOpen && refs.map((ref) => <Text key={ref} refOf={ref} />)}
    </details>
  );
}

function Text({ refOf: ref }: { readonly refOf: string }) {
  const loaded = useGet<TextAnswer>('text', { ref });
  return (
    <Shown of={loaded}>
      {({ text, isCut }) => (
        <>
          <LongText text={text} />
          {isCut && (
            <p class="quiet">
              {WORDS.cut} {ref}
            </p>
          )}
        </>
      )}
    </Shown>
  );
}

const LINES_SHOWN = 24;
const CHARS_SHOWN = 6_000;

/** Draws the beginning of a long text, and the rest after a click. */
export function LongText({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const lines = text.split('\n');
  const head = lines.slice(0, LINES_SHOWN).join('\n').slice(0, CHARS_SHOWN);
  if (isWhole || head.length >= text.length) return <pre dir="auto">{text}</pre>;
  const rest = Math.max(1, lines.length - LINES_SHOWN);
  return (
    <>
      <pre dir="auto">{head}</pre>
      <button type="button" onClick={() => setWhole(true)}>
        {WORDS.otherLines(rest)}
      </button>
    </>
  );
}

function StubText(props: { readonly refOf: string; readonly tool: string | undefined }) {
  const { refOf: ref, tool } = props;
  const loaded = useGet<TextAnswer>('text', { ref, tool });
  return <Shown of={loaded}>{({ stub }) => <pre dir="auto">{stub ?? ref}</pre>}</Shown>;
}

function Added(props: { readonly note: NumberedNote; readonly lines: readonly BlockLine[] }) {
  const { note, lines } = props;
  return (
    <article class="pair item" id="added" aria-label={WORDS.addedLabel}>
      <div class="nothing" aria-hidden="true" />
      <div class="left block">
        <p class="what">
          <span class="nr">{note.number}</span>
          <b>{WORDS.blockTitle}</b>
          <span class="size good">+{whole(note.after ?? 0)}</span>
        </p>
        {lines.length === 0 && <p class="small quiet">{WORDS.blockGone}</p>}
        <ul class="lines">
          {lines.map((line, at) => (
            <Line key={at} line={line} />
          ))}
        </ul>
      </div>
    </article>
  );
}

function Line({ line: { text, memory } }: { readonly line: BlockLine }) {
  if (memory === undefined) {
    return (
      <li class="fence" dir="auto">
        {text}
      </li>
    );
  }
  const { ref, at, client, conversation, space } = memory;
  return (
    <li class="memory" dir="auto">
      {text}
      <span class="from">
        <a href={hrefOf('memory', { space, ref })} aria-label={WORDS.ofMemory(ref)}>
          {ref}
        </a>{' '}
        · {WORDS.from(day(at), client, shortSpace(space))} ·{' '}
        <a href={hrefOf('memory', { space, session: conversation })}>{WORDS.session}</a>
      </span>
    </li>
  );
}
