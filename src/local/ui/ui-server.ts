import type { ServerResponse } from 'node:http';
import { asRecord } from '../../core/bytes/json-fields.ts';
import { errorBody } from '../../core/http/gate.ts';
import { ProxyError } from '../../core/errors.ts';
import { UI_API_PATH, UI_BODY_BYTES_MAX, UI_SECRET_HEADER } from '../../core/http/ui-gate.ts';
import type { Clock } from '../../ports/clock.ts';
import { readBody } from '../../http/request-bodies.ts';
import { answerJson } from '../answers.ts';
import type { UiCall, UiDoor } from '../ui-door.ts';
import type { EventStreams } from './live-requests.ts';
import { readPageFile, SAFE_HEADERS } from './page-files.ts';
import { type SessionHandle, UI_TIMES, UiSessions } from './sessions.ts';
import { type ApiAnswer, UiRefusal, type UiRoute } from './ui-routes.ts';

interface UiServerOptions {
  /** The folder of the page's files. */
  readonly files: string;
  readonly routes: readonly UiRoute[];
  readonly streams: EventStreams;
  readonly clock: Clock;
}

/**
 * The server of the page. The gate has admitted each request before (core/http/ui-gate.ts); the session is checked
 * here. No answer contains a provider's key or the local token.
 */
export class UiServer implements UiDoor {
  readonly #options: UiServerOptions;
  readonly #sessions: UiSessions;
  readonly #routes: ReadonlyMap<string, UiRoute[1]>;

  constructor(options: UiServerOptions) {
    this.#options = options;
    this.#sessions = new UiSessions(options.clock);
    this.#routes = new Map(options.routes);
  }

  newLink(): string {
    return `link=${this.#sessions.newLink()}`;
  }

  close(): void {
    this.#options.streams.close();
  }

  async answer(call: UiCall): Promise<void> {
    try {
      const { path } = call.admission;
      if (path.startsWith(UI_API_PATH)) await this.#answerApi(call);
      else await this.#answerFile(call);
    } catch (error) {
      answerFailure(call.outgoing, error);
    }
  }

  async #answerFile({ admission, outgoing }: UiCall): Promise<void> {
    const file = await readPageFile(this.#options.files, admission.path);
    if (file === undefined) throw new UiRefusal(404, 'not_found', 'The page has no such file.');
    const cache = file.isHashed ? 'public, max-age=31536000, immutable' : 'no-store';
    outgoing.writeHead(200, {
      ...SAFE_HEADERS,
      'content-type': file.type,
      'content-length': file.body.length,
      'cache-control': cache,
    });
    outgoing.end(file.body);
  }

  async #answerApi(call: UiCall): Promise<void> {
    const { admission, incoming, outgoing } = call;
    const name = admission.path.slice(UI_API_PATH.length);
    const body = incoming.method === 'POST' ? await bodyOf(call) : undefined;
    if (name === 'session' && incoming.method === 'POST') return this.#openSession(call, body);
    const session = this.#sessionOf(call);
    if (session === undefined) throw NO_SESSION;
    if (name === 'close' && incoming.method === 'POST') {
      session.close();
      answerPage(outgoing, {}, { 'set-cookie': cookieLine(call.port, '', 0) });
      return;
    }
    if (name === 'events' && incoming.method === 'GET') {
      this.#options.streams.open(outgoing, session);
      return;
    }
    const route = this.#routes.get(`${incoming.method} ${name}`);
    if (route === undefined) throw new UiRefusal(404, 'not_found', 'The page has no such call.');
    answerPage(outgoing, await route({ query: new URLSearchParams(admission.query), body }));
  }

  #openSession({ outgoing, port }: UiCall, body: unknown): void {
    const { code } = asRecord(body);
    const session = typeof code === 'string' ? this.#sessions.redeem(code) : undefined;
    if (session === undefined) throw NO_SESSION;
    const seconds = UI_TIMES.sessionMs / 1000;
    const cookie = cookieLine(port, session.cookie, seconds);
    answerPage(outgoing, { secret: session.secret }, { 'set-cookie': cookie });
  }

  #sessionOf({ admission: { headers }, port }: UiCall): SessionHandle | undefined {
    const secrets = headers.get(UI_SECRET_HEADER) ?? [];
    const cookies = (headers.get('cookie') ?? [])
      .flatMap((line) => line.split(';'))
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(`${cookieName(port)}=`));
    const [secret, cookie] = [secrets[0], cookies[0]?.slice(cookieName(port).length + 1)];
    if (secrets.length !== 1 || cookies.length !== 1) return undefined;
    if (secret === undefined || cookie === undefined) return undefined;
    return this.#sessions.find({ cookie, secret });
  }
}

const NO_SESSION = new UiRefusal(401, 'no_session', 'This page has no session, or it has ended.');

/** Returns the cookie's name. It has the port, because cookies ignore ports, and several proxies may run here. */
function cookieName(port: number): string {
  return `svc_ui_${port}`;
}

function cookieLine(port: number, value: string, seconds: number): string {
  return `${cookieName(port)}=${value}; Path=${UI_API_PATH}; Max-Age=${seconds}; HttpOnly; SameSite=Strict`;
}

async function bodyOf({ incoming, admission }: UiCall): Promise<unknown> {
  const length = Number(admission.headers.get('content-length')?.[0] ?? 0);
  const bytes = await readBody(incoming, { length, wireBytesMax: UI_BODY_BYTES_MAX });
  try {
    return JSON.parse(bytes?.toString('utf8') ?? '');
  } catch {
    throw new UiRefusal(400, 'invalid', 'The body is not JSON.');
  }
}

function answerPage(
  outgoing: ServerResponse,
  value: ApiAnswer,
  more: Readonly<Record<string, string>> = {},
  status = 200,
): void {
  answerJson(outgoing, value, { status, headers: { ...SAFE_HEADERS, ...more } });
}

/** Answers with an error. Shows only messages that svc has written for users, because others may quote a text. */
function answerFailure(outgoing: ServerResponse, error: unknown): void {
  if (outgoing.headersSent) {
    outgoing.destroy();
    return;
  }
  if (error instanceof ProxyError) {
    const body = errorBody(error, undefined, '');
    outgoing.writeHead(error.status, { ...SAFE_HEADERS, 'content-type': 'application/json' });
    outgoing.end(body);
    return;
  }
  const refusal = error instanceof UiRefusal ? error : refusalOf(error);
  const { status, code, message } = refusal;
  answerPage(outgoing, { error: { code, message } }, {}, status);
}

function refusalOf(error: unknown): UiRefusal {
  const isMemory = error instanceof Error && error.name === 'MemoryError';
  return isMemory
    ? new UiRefusal(503, 'memory_away', 'The memory cannot answer now. Check with: svc doctor')
    : new UiRefusal(500, 'internal', 'svc failed on this call.');
}
