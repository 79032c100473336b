import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiError } from '../client/api.ts';
import type { Loaded } from '../client/use-load.ts';
import { FAILURES, STATES } from '../texts/frame.ts';

/** Delay before the text "Loading" is shown, in milliseconds. Most answers come sooner. */
const QUIET_MS = 300;

export function Busy() {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <p class="lead" role="status" aria-busy="true">
      {isSlow ? STATES.loading : ''}
    </p>
  );
}

export function Failed({ error, retry }: { readonly error: unknown; readonly retry: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <span class="dot bad" />
      <span>{failureText(error)}</span>
      <button type="button" onClick={retry}>
        {STATES.retry}
      </button>
    </div>
  );
}

export function failureText(error: unknown): string {
  const code = error instanceof ApiError ? error.code : 'internal';
  const message = error instanceof ApiError ? error.message : '';
  return message !== '' ? message : (FAILURES[code] ?? FAILURES['internal'] ?? '');
}

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="lead">{children}</p>;
}

/** Draws what was loaded; until then that it loads, or why it failed. */
export function Shown<T>(props: {
  readonly of: Loaded<T>;
  /** The headline while there is no value. Give it if the value makes a whole view. */
  readonly title?: string;
  readonly children: (value: T, reload: () => void) => ComponentChildren;
}) {
  const { of: loaded, title, children } = props;
  if (loaded.state === 'loading') {
    return (
      <>
        {title !== undefined && <h1 class="for-readers">{title}</h1>}
        <Busy />
      </>
    );
  }
  if (loaded.state === 'failed') {
    return (
      <>
        {title !== undefined && <h1>{title}</h1>}
        <Failed error={loaded.error} retry={loaded.retry} />
      </>
    );
  }
  return <>{children(loaded.value, loaded.reload)}</>;
}
