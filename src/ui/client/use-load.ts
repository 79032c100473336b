import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { get, isAsking, isSameAnswer, pathOf, type Words } from './api.ts';
import { noteFailure, onEnd } from './session.ts';

/** The state of a call. */
export type Loaded<T> =
  | { readonly state: 'loading' }
  | { readonly state: 'failed'; readonly error: unknown; readonly retry: () => void }
  | { readonly state: 'ready'; readonly value: T; readonly reload: () => void };

/** The last answers by call. A view opens at once with its last answer, and loads a new one meanwhile. */
const answers = new Map<string, unknown>();
const ANSWERS_MAX = 24;

/** Drops all answers. Call it after a change of memories, so that no old text is shown again. */
export function dropAnswers(): void {
  answers.clear();
}

onEnd.push(dropAnswers);

function keepAnswer(key: string, value: unknown): void {
  answers.delete(key);
  answers.set(key, value);
  const [oldest] = answers.keys();
  if (answers.size > ANSWERS_MAX && oldest !== undefined) answers.delete(oldest);
}

/** Loads an answer in advance, for a view that the user may open next. */
export async function askAhead<T>(name: string, query: Words = {}): Promise<T | undefined> {
  const key = pathOf(name, query);
  if (!answers.has(key)) {
    const value = await get<T>(name, query).catch(() => undefined);
    if (value !== undefined && !answers.has(key)) keepAnswer(key, value);
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The key names the call.
  return answers.get(key) as T | undefined;
}

/**
 * Interval of checks whether the page is idle, in milliseconds. It is idle when it is drawn and no answer is pending.
 */
const LOOK_MS = 30;

/** Runs `works` one after the other, each when the page is idle. */
export async function runAtRest(works: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const work of works) {
    // oxlint-disable-next-line no-await-in-loop -- One after the other is the aim.
    await rest();
    // oxlint-disable-next-line no-await-in-loop -- As above.
    await work();
  }
}

async function rest(): Promise<void> {
  do {
    // oxlint-disable-next-line no-await-in-loop -- It looks again and again.
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    // oxlint-disable-next-line no-await-in-loop -- As above.
    await idle();
  } while (isAsking());
}

/** Resolves when the browser is idle, or soon in Safari, which has no requestIdleCallback. */
function idle(): Promise<unknown> {
  return new Promise((resolve) => {
    if ('requestIdleCallback' in globalThis) requestIdleCallback(resolve);
    else setTimeout(resolve);
  });
}

interface GetOptions {
  /** The call is made again if this value changes. */
  readonly version?: number | string;
  /** Deadline, in milliseconds. */
  readonly withinMs?: number;
}

export function useGet<T>(name: string, query: Words = {}, options: GetOptions = {}): Loaded<T> {
  const { version = 0, withinMs } = options;
  return useLoad(pathOf(name, query), () => get<T>(name, query, withinMs), version);
}

interface Shown {
  readonly key: string;
  readonly value?: unknown;
  readonly error?: unknown;
}

/**
 * Calls `ask` at first and whenever `key` or `version` changes. If only `version` has changed, the old value stays
 * until the new one is there. An equal answer draws nothing again.
 */
export function useLoad<T>(
  key: string,
  ask: () => Promise<T>,
  version: number | string = 0,
): Loaded<T> {
  const shown = useRef<Shown | undefined>(undefined);
  const newest = useRef(0);
  const [, draw] = useState(0);
  if (shown.current?.key !== key) {
    shown.current = answers.has(key) ? { key, value: answers.get(key) } : undefined;
  }
  const load = useCallback(() => {
    const mine = (newest.current += 1);
    const show = (next: Shown): void => {
      if (mine !== newest.current) return;
      shown.current = next;
      draw(mine);
    };
    void (async () => {
      try {
        const value = await ask();
        keepAnswer(key, value);
        const { current } = shown;
        const isKnown = current !== undefined && isSameAnswer(current.value, value);
        if (!isKnown) show({ key, value });
      } catch (error) {
        noteFailure(error);
        show({ key, error });
      }
    })();
  }, [key, version]);
  useEffect(load, [load]);
  const { current } = shown;
  if (current === undefined) return { state: 'loading' };
  if ('error' in current) return { state: 'failed', error: current.error, retry: load };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The key names the call.
  return { state: 'ready', value: current.value as T, reload: load };
}
