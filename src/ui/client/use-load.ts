import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { noteFailure } from './session.ts';

/** A call whose answer a view shows. It is always in one of three states, and each is drawn. */
export type Loaded<T> =
  | { readonly state: 'loading' }
  | { readonly state: 'failed'; readonly error: unknown; readonly retry: () => void }
  | { readonly state: 'ready'; readonly value: T; readonly reload: () => void };

/** The last answers, so that a view that is opened again is there at once, and then renewed. */
const answers = new Map<string, unknown>();
const ANSWERS_MAX = 24;

/** After something was forgotten or changed: no old text may be shown again. */
export function dropAnswers(): void {
  answers.clear();
}

function keepAnswer(key: string, value: unknown): void {
  answers.delete(key);
  answers.set(key, value);
  const [oldest] = answers.keys();
  if (answers.size > ANSWERS_MAX && oldest !== undefined) answers.delete(oldest);
}

/** Asks anew when `key` changes. The old value stays in sight while a reload runs. */
export function useLoad<T>(key: string, ask: () => Promise<T>): Loaded<T> {
  const [loaded, setLoaded] = useState<{ key: string; value?: T; error?: unknown } | undefined>();
  const newest = useRef(0);
  const load = useCallback(() => {
    const mine = (newest.current += 1);
    const settle = (found: { value?: T; error?: unknown }): void => {
      if ('value' in found) keepAnswer(key, found.value);
      if (mine === newest.current) setLoaded({ key, ...found });
    };
    ask().then(
      (value) => settle({ value }),
      (error: unknown) => {
        noteFailure(error);
        settle({ error });
      },
    );
  }, [key]);
  useEffect(load, [load]);
  if (loaded === undefined || loaded.key !== key) {
    if (!answers.has(key)) return { state: 'loading' };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The key names the call.
    return { state: 'ready', value: answers.get(key) as T, reload: load };
  }
  if ('error' in loaded) return { state: 'failed', error: loaded.error, retry: load };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It is there without an error.
  return { state: 'ready', value: loaded.value as T, reload: load };
}
