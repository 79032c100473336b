import { signal } from '@preact/signals';
import type { About, NewsEvent } from '../../ports/ui-api.ts';
import { ApiError, get, listen, openSession, post } from './api.ts';

/** Whether this page may ask, and whether the proxy still answers. */

export type PageState =
  | { readonly name: 'starting' }
  | { readonly name: 'open' }
  /** `why` is a key of TEXTS.closed. */
  | { readonly name: 'closed'; readonly why: 'noLink' | 'usedLink' | 'ended' | 'byHand' | 'away' };

export const page = signal<PageState>({ name: 'starting' });
export const about = signal<About | undefined>(undefined);
export const line = signal<'live' | 'lost'>('live');
export const lastEventAt = signal<number | undefined>(undefined);

type Listener = (news: NewsEvent) => void;
const listeners = new Set<Listener>();

export function onNews(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export async function startSession(): Promise<void> {
  const code = takeCode();
  if (code === undefined) {
    page.value = { name: 'closed', why: 'noLink' };
    return;
  }
  try {
    await openSession(code);
  } catch (error) {
    const isRefused = error instanceof ApiError && error.code === 'no_session';
    page.value = { name: 'closed', why: isRefused ? 'usedLink' : 'away' };
    return;
  }
  page.value = { name: 'open' };
  listen({ onMessage: hear, onState });
  // The first view does not wait for it.
  get<About>('about').then((answer) => (about.value = answer), noteFailure);
}

export async function closeSession(): Promise<void> {
  await post('close').catch(() => undefined);
  page.value = { name: 'closed', why: 'byHand' };
}

/** Shows every failed call where it belongs, and a session that has ended for the whole page. */
export function noteFailure(error: unknown): void {
  if (error instanceof ApiError && error.code === 'no_session') {
    page.value = { name: 'closed', why: 'ended' };
  }
}

/** The code of the link leaves the address before anything else happens: no history keeps it. */
function takeCode(): string | undefined {
  const [, code] = /^#link=([\w-]{43})$/.exec(location.hash) ?? [];
  if (code !== undefined) history.replaceState(null, '', location.pathname);
  return code;
}

function hear(value: unknown): void {
  lastEventAt.value = Date.now();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Our own server said it.
  for (const listener of listeners) listener(value as NewsEvent);
}

function onState(state: 'live' | 'lost' | 'ended'): void {
  if (state !== 'ended') line.value = state;
  else if (page.value.name === 'open') page.value = { name: 'closed', why: 'ended' };
}
