import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { MEMORY } from '../texts/memory.ts';

/** Shows the result of the user's last action at the foot of a view, with a button to undo it if possible. */

export interface Happened {
  readonly text: string;
  readonly isBad?: boolean;
  /** `until`: when the undo ends, in milliseconds since 1970. */
  readonly undo?: { readonly until: number; readonly run: () => void };
}

export const happened = signal<Happened | undefined>(undefined);

/** How long a notice without an undo is shown, in milliseconds: enough to read a sentence. */
const SHOWN_MS = 12_000;

export function NoticeLine() {
  const now = happened.value;
  const [, setTime] = useState(0);
  useEffect(() => {
    if (now === undefined) return undefined;
    const until = now.undo?.until ?? Date.now() + SHOWN_MS;
    const timer = setInterval(() => {
      setTime(Date.now());
      if (Date.now() >= until && happened.value === now) happened.value = undefined;
    }, 1000);
    return () => clearInterval(timer);
  }, [now]);
  const seconds = Math.ceil(((now?.undo?.until ?? 0) - Date.now()) / 1000);
  return (
    <div role="status" class="happened">
      {now !== undefined && (
        <p class={now.isBad === true ? 'notice bad' : 'notice'}>
          <span class={now.isBad === true ? 'dot bad' : 'dot'} />
          <span>{now.text}</span>
          {now.undo !== undefined && seconds > 0 && (
            <button type="button" onClick={now.undo.run}>
              {MEMORY.undo(seconds)}
            </button>
          )}
        </p>
      )}
    </div>
  );
}
