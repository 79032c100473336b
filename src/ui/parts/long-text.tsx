import { useState } from 'preact/hooks';
import { TEXTS } from '../texts/texts.ts';

/** A text that may be very long: its beginning, and the rest by one click. It is always shown as text. */

const LINES_SHOWN = 24;
const CHARS_SHOWN = 6_000;

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
        {TEXTS.request.otherLines(rest)}
      </button>
    </>
  );
}
