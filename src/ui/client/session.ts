import { signal } from '@preact/signals';
import type { About, NewsEvent } from '../../ports/ui-api.ts';
import { ApiError, forgetSecret, get, hasSecret, listen, openSession, post } from './api.ts';
import { showView } from './router.ts';

/** The session of this page, and its stream of events. */

export type PageState =
  | { readonly name: 'starting' }
  | { readonly name: 'open' }
  /** `why`: the reason, a key of CLOSED in texts/frame.ts. */
  | { readonly name: 'closed'; readonly why: 'noLink' | 'usedLink' | 'ended' | 'byHand' | 'away' };

export const page = signal<PageState>({ name: 'starting' });
export const about = signal<About | undefined>(undefined);
/** Whether the stream of events is open. */
export const line = signal<'live' | 'lost'>('live');
export const lastEventAt = signal<number | undefined>(undefined);
/** How often the stream of events was opened again after a break. The page has missed the events of the break. */
export const returns = signal(0);

type Listener = (news: NewsEvent) => void;
const listeners = new Set<Listener>();
/** Functions to call when the session ends. They delete texts. `byHand`: the user has closed the session. */
export const onEnd: ((why: 'byHand' | 'ended') => void)[] = [];
let isListening = false;

export function onNews(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export async function startSession(): Promise<void> {
  // A new link that the user pastes into this tab changes only the fragment, so the browser does not load the page.
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
    // A page that has a session keeps it.
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

/** Closes the page if a failed call shows that the session has ended. The view of the call shows other failures. */
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

/** Returns the code of a link in the address, and removes it from the address and so from the history. */
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
