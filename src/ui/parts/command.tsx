import { useState } from 'preact/hooks';
import { STATES } from '../texts/frame.ts';

/** Shows a command for the terminal, with a button that copies it. */
export function Command({
  text,
  copied = text,
}: {
  readonly text: string;
  readonly copied?: string;
}) {
  const [isCopied, setCopied] = useState(false);
  const { copy, copied: done } = STATES;
  return (
    <>
      <code class="command">{text}</code>
      {copied !== '' && (
        <button
          type="button"
          onClick={() => void navigator.clipboard.writeText(copied).then(() => setCopied(true))}
        >
          {isCopied ? done : copy}
        </button>
      )}
    </>
  );
}
