import { asRecord, asText, parseJson } from '../../core/bytes/json-fields.ts';

/**
 * The calls of the page to its server. The session's secret is in this tab's storage, so that a reload continues the
 * session. No other origin can read it, and it is useless without the cookie, which no script can read.
 */

const ROOT = '/svc/ui/api/';
const SECRET_HEADER = 'x-svc-ui-secret';
/** Default deadline of a call, in milliseconds. */
const CALL_MS = 20_000;
/** Pause before a broken stream of events is opened again, in milliseconds. */
const RECONNECT_MS = 2_000;

const STORED = 'svc-ui-secret';
/** The storage of this tab; undefined if the browser refuses it. Then a reload ends the session. */
const storage = ((): Storage | undefined => {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
})();
let secret = storage?.getItem(STORED) ?? '';

export function hasSecret(): boolean {
  return secret !== '';
}

export function forgetSecret(): void {
  secret = '';
  storage?.removeItem(STORED);
}

export class ApiError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** The values of an address or a call, by name. An address leaves out those that are undefined or ''. */
export type Words = Readonly<Record<string, string | number | undefined>>;

export async function openSession(code: string): Promise<void> {
  const answer = await send<{ readonly secret: string }>('session', { body: { code } });
  ({ secret } = answer);
  storage?.setItem(STORED, secret);
}

export function get<T>(name: string, query: Words = {}, withinMs = CALL_MS): Promise<T> {
  return send<T>(pathOf(name, query), { withinMs });
}

/** Returns the name of a view or a call with its query. use-load.ts caches answers under it. */
export function pathOf(name: string, query: Words): string {
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(set.map(([key, value]) => [key, String(value)])).toString();
  return text === '' ? name : `${name}?${text}`;
}

/** The text of each answer, by which isSameAnswer() compares answers. */
const texts = new WeakMap<object, string>();

export function isSameAnswer(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  const isObject = typeof one === 'object' && one !== null;
  if (!isObject || typeof other !== 'object' || other === null) return false;
  const text = texts.get(one);
  return text !== undefined && text === texts.get(other);
}

export function post<T>(name: string, body: object = {}, withinMs = CALL_MS): Promise<T> {
  return send<T>(name, { body, withinMs });
}

interface Call {
  readonly body?: object;
  readonly withinMs?: number;
}

let calls = 0;

/** Says whether the page waits for an answer to a call. */
export function isAsking(): boolean {
  return calls > 0;
}

function send<T>(path: string, call: Call): Promise<T> {
  calls += 1;
  return sent<T>(path, call).finally(() => (calls -= 1));
}

async function sent<T>(path: string, { body, withinMs = CALL_MS }: Call): Promise<T> {
  const answer = await fetch(ROOT + path, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: headersFor(body !== undefined),
    cache: 'no-store',
    signal: AbortSignal.timeout(withinMs),
  }).catch((error: unknown) => {
    const isLate = error instanceof DOMException && error.name === 'TimeoutError';
    throw new ApiError(isLate ? 'late' : 'unreachable', '');
  });
  const text = await answer.text().catch(() => '');
  // A cut answer is no JSON, so `value` is undefined.
  const value = parseJson(text);
  if (answer.ok && typeof value === 'object' && value !== null) {
    texts.set(value, text);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Our own server said it.
    return value as T;
  }
  const { code, message } = asRecord(asRecord(value)['error']);
  throw new ApiError(asText(code) || 'internal', asText(message));
}

function headersFor(hasBody: boolean): Record<string, string> {
  return {
    ...(hasBody ? { 'content-type': 'application/json' } : {}),
    ...(secret === '' ? {} : { [SECRET_HEADER]: secret }),
  };
}

export interface StreamHandlers {
  readonly onMessage: (value: unknown) => void;
  readonly onState: (state: 'live' | 'lost' | 'ended') => void;
}

/**
 * Reads server-sent events until the session ends, and opens a broken stream again. It uses fetch(), because an
 * EventSource cannot send the secret.
 */
export function listen(handlers: StreamHandlers): void {
  void (async () => {
    for (;;) {
      const end = await readStream(handlers).catch(() => 'lost' as const);
      handlers.onState(end);
      if (end === 'ended') return;
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    }
  })();
}

async function readStream({ onMessage, onState }: StreamHandlers): Promise<'lost' | 'ended'> {
  const answer = await fetch(`${ROOT}events`, { headers: headersFor(false), cache: 'no-store' });
  if (answer.status === 401) return 'ended';
  if (!answer.ok || answer.body === null) return 'lost';
  onState('live');
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return 'lost';
    const events = (waiting + value).split('\n\n');
    waiting = events.pop() ?? '';
    for (const event of events) {
      if (event.startsWith('data: ')) onMessage(JSON.parse(event.slice('data: '.length)));
    }
  }
}
