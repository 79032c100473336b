import { signal } from '@preact/signals';
import type { About, NewsEvent } from '../../ports/ui-api.ts';
import { ApiError, forgetSecret, get, hasSecret, listen, openSession, post } from './api.ts';
import { showView } from './router.ts';

/** Whether this page has a session, and whether the proxy still answers. */

export type PageState =
  | { readonly name: 'starting' }
  | { readonly name: 'open' }
  /** `why` is a key of CLOSED. */
  | { readonly name: 'closed'; readonly why: 'noLink' | 'usedLink' | 'ended' | 'byHand' | 'away' };

export const page = signal<PageState>({ name: 'starting' });
export const about = signal<About | undefined>(undefined);
export const line = signal<'live' | 'lost'>('live');
export const lastEventAt = signal<number | undefined>(undefined);

type Listener = (news: NewsEvent) => void;
const listeners = new Set<Listener>();
/** Called when the session ends, so that no text that it showed stays in the page. */
export const onEnd: ((why: 'byHand' | 'ended') => void)[] = [];
let isListening = false;

export function onNews(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export async function startSession(): Promise<void> {
  // Pasting a link into the tab changes only the fragment.
  addEventListener('hashchange', () => {
    const code = takeCode();
    if (code !== undefined) void openWith(code);
  });
  const code = takeCode();
  if (code !== undefined) await openWith(code);
  else if (hasSecret()) await resume();
  else page.value = { name: 'closed', why: 'noLink' };
}

/** Continues this tab's session after a reload. */
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
    // An open page keeps its own session.
    if (page.value.name === 'open') return;
    const isRefused = error instanceof ApiError && error.code === 'no_session';
    page.value = { name: 'closed', why: isRefused ? 'usedLink' : 'away' };
    return;
  }
  open();
  // Do not wait for this answer: the first view does not need it.
  get<About>('about').then((answer) => (about.value = answer), noteFailure);
}

export async function closeSession(): Promise<void> {
  await post('close').catch(() => undefined);
  end('byHand');
}

/** Shows a failed call in its view, and an ended session for the whole page. */
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

/** Removes the link's code from the address first, so that no history keeps it. */
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
  if (state !== 'ended') line.value = state;
  else {
    isListening = false;
    if (page.value.name === 'open') end('ended');
  }
}
