import { signal } from '@preact/signals';
import type { About, NewsEvent } from '../../ports/ui-api.ts';
import { ApiError, forgetSecret, get, hasSecret, listen, openSession, post } from './api.ts';
import { showView } from './router.ts';

/** Knows whether this page has a session, and whether the proxy answers. */

export type PageState =
  | { readonly name: 'starting' }
  | { readonly name: 'open' }
  /** `why`: the reason, a key of CLOSED in texts/frame.ts. */
  | { readonly name: 'closed'; readonly why: 'noLink' | 'usedLink' | 'ended' | 'byHand' | 'away' };

export const page = signal<PageState>({ name: 'starting' });
export const about = signal<About | undefined>(undefined);
export const line = signal<'live' | 'lost'>('live');
export const lastEventAt = signal<number | undefined>(undefined);
/** How often the stream of events has come back after a break, in which the page has missed events. */
export const returns = signal(0);

type Listener = (news: NewsEvent) => void;
const listeners = new Set<Listener>();
/** Functions to call when the session ends, so that no text from it stays in the page. */
export const onEnd: ((why: 'byHand' | 'ended') => void)[] = [];
let isListening = false;

export function onNews(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export async function startSession(): Promise<void> {
  // If the user pastes a link into the tab, only the fragment of the address changes.
  addEventListener('hashchange', () => {
    const code = takeCode();
    if (code !== undefined) void openWith(code);
  });
  const code = takeCode();
  if (code !== undefined) await openWith(code);
  else if (hasSecret()) await resume();
  else page.value = { name: 'closed', why: 'noLink' };
}

/** Continues the session of this tab after a reload. */
async function resume(): Promise<void> {
  try {
    about.value = await get<About>('about');
    open();
  } catch (error) {
    const isOver = error instanceof ApiError && error.code === 'no_session';
    if (isOver) forgetSecret();
    page.value = { name: 'closed', why: isOver ? 'ended' : 'away' };
  }
}

function open(): void {
  page.value = { name: 'open' };
  if (!isListening) listen({ onMessage: hear, onState });
  isListening = true;
}

async function openWith(code: string): Promise<void> {
  try {
    await openSession(code);
  } catch (error) {
    // A page with a session keeps it.
    if (page.value.name === 'open') return;
    const isRefused = error instanceof ApiError && error.code === 'no_session';
    page.value = { name: 'closed', why: isRefused ? 'usedLink' : 'away' };
    return;
  }
  open();
  // Do not wait for this answer, because the first view does not need it.
  get<About>('about').then((answer) => (about.value = answer), noteFailure);
}

export async function closeSession(): Promise<void> {
  await post('close').catch(() => undefined);
  end('byHand');
}

/** Ends the page if a failed call shows that the session has ended. Other failures are shown in their view. */
export function noteFailure(error: unknown): void {
  if (error instanceof ApiError && error.code === 'no_session') {
    end('ended');
  }
}

function end(why: 'byHand' | 'ended'): void {
  forgetSecret();
  page.value = { name: 'closed', why };
  for (const forget of onEnd) forget(why);
}

/** Returns the code of a link in the address, and removes it from there, so that no history keeps it. */
function takeCode(): string | undefined {
  const [, code] = /^#link=([\w-]{43})$/.exec(location.hash) ?? [];
  if (code !== undefined) showView();
  return code;
}

function hear(value: unknown): void {
  lastEventAt.value = Date.now();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Our own server said it.
  for (const listener of listeners) listener(value as NewsEvent);
}

function onState(state: 'live' | 'lost' | 'ended'): void {
  if (state !== 'ended') {
    if (state === 'live' && line.value === 'lost') returns.value += 1;
    line.value = state;
  } else {
    isListening = false;
    if (page.value.name === 'open') end('ended');
  }
}
