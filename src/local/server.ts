import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ProxyError } from '../core/errors.ts';
import {
  type Admission,
  admit,
  allowedMethods,
  checkUpgrade,
  isAnthropic,
  routeKind,
} from '../core/http/gate.ts';
import type { RequestHead } from '../core/http/http-form.ts';
import { headerOf } from '../core/http/header-rules.ts';
import { admitUi, isUiTarget, UI_PATH } from '../core/http/ui-gate.ts';
import { type ModeLimits, modesToTell } from '../core/http/modes.ts';
import { relayedEvidence, unreadEvidence } from '../core/plan/plan.ts';
import {
  CHALLENGE_HEADER,
  makeProof,
  PROOF_HEADER,
  splitTarget,
} from '../core/http/local-token.ts';
import { type HookRequest, readHookRequest } from '../core/hooks/hook-question.ts';
import { parseJson } from '../core/bytes/json-fields.ts';
import type { Login } from '../core/http/logins.ts';
import { errorDialect, pathOf, type Route } from '../core/http/routes.ts';
import type { ProxySettings } from '../core/settings/settings.ts';
import type { BodyDecoder } from '../ports/body-decoder.ts';
import type { Clock } from '../ports/clock.ts';
import type { Report } from '../ports/report.ts';
import type { RequestRow } from '../ports/request-log.ts';
import type { Handler } from '../proxy/dependencies.ts';
import { goneSignal } from '../proxy/relay.ts';
import { askForBody, RequestBodies } from '../http/request-bodies.ts';
import {
  Connections,
  dropBody,
  endRaw,
  listenAt,
  type ListenerBounds,
  requestHead,
  serverOptions,
  serveWith,
} from '../http/bounded-server.ts';
import { describeFault } from '../http/faults.ts';
import type { UiDoor } from './ui-door.ts';
import { answerError, answerJson, type ErrorContext, writeErrorAnswer } from './answers.ts';

interface LocalServerOptions {
  /**
   * Returns the settings in force. It is called for each use of a setting, so a changed one counts at once; host and
   * port count only when the server starts.
   */
  readonly settings: () => ProxySettings;
  /** Returns the sha256 of each valid token. It is called for each check of a token, so a new token counts at once. */
  readonly tokenDigests: () => readonly Buffer[];
  /** Returns the sha256 of each token that is valid in the path of a URL. */
  readonly pathTokenDigests?: () => readonly Buffer[];
  /** Returns the login that the upstream of a route takes; undefined if it takes none. */
  readonly loginOf?: (route: Route) => Login | undefined;
  readonly decode: BodyDecoder;
  readonly handler: Handler;
  readonly clock: Clock;
  /** Returns a new id: `req_` and 24 characters. */
  readonly newId: () => string;
  readonly report: Report;
  readonly version: string;
  /** Returns the configured modes, and what the memory can do. */
  readonly modeLimits: () => ModeLimits;
  /** Returns the rows of the requests that are being answered. */
  readonly inFlight?: () => readonly RequestRow[];
  /** Returns the answer to a client's hook. Never rejects. Undefined: every answer is ''. */
  readonly hook?: (request: HookRequest) => Promise<string>;
  /** Returns the page; undefined if it is turned off. */
  readonly ui?: () => Promise<UiDoor> | undefined;
}

/** Limits in milliseconds for connections and requests. */
const TIMES = {
  /** For the head of a request. A program on this machine sends it at once; a slow one keeps a socket. */
  head: 10_000,
  /** For head and body. 64 MiB on loopback take less than one second. */
  request: 60_000,
  /** Between requests. Agents think and run tools for minutes, and a new connection costs them time. */
  keepAlive: 300_000,
  /** Interval of checks of the first two limits. Node's default of 30 s would turn 10 s into up to 40. */
  check: 2_000,
  /** Least time between two reports that connections cannot be accepted. */
  acceptReport: 60_000,
} as const;

const BOUNDS: ListenerBounds = {
  times: TIMES,
  /** Bytes of the longest head. Codex sends its state in headers; Node's default is 16 KiB. */
  headerBytesMax: 64 << 10,
  /** Bound on connections: about twice the 1,000 open streams that a process must support. */
  connectionsMax: 2_048,
};

const LOOPBACK = ['127.0.0.1', '::1'];

/**
 * The listener on loopback. It checks access, reads and decodes the body, and gives the request to the handler. An
 * error ends in #fail(), except one inside the page's server, which answers its own errors. #fail() answers in the form
 * of the client's API if no answer has begun; otherwise it breaks the connection. The listener never logs a header, a
 * body or a key.
 */
export class LocalServer {
  readonly #options: LocalServerOptions;
  readonly #connections = new Connections();
  readonly #server: Server;
  readonly #bodies: RequestBodies;
  #port = 0;
  #stopped: Promise<void> | undefined;
  #acceptReportedAt = -Infinity;

  constructor(options: LocalServerOptions) {
    if (!LOOPBACK.includes(options.settings().host)) {
      throw new TypeError('svc listens only on 127.0.0.1 or ::1.');
    }
    this.#options = options;
    this.#bodies = new RequestBodies(options.decode, () => options.settings().bodyBytesMax);
    this.#server = createServer(serverOptions(BOUNDS));
    this.#server.on('connection', (socket: Socket) => this.#connections.add(socket));
    serveWith(this.#server, {
      bounds: BOUNDS,
      connections: this.#connections,
      serve: (incoming, outgoing) => this.#serve(incoming, outgoing),
    });
    this.#server.on('upgrade', (incoming, socket) => this.#refuseUpgrade(incoming, socket));
    this.#server.on('connect', (incoming, socket) => this.#refuseConnect(incoming, socket));
    this.#server.on('clientError', (error, socket) => this.#answerBroken(error, socket));
  }

  /** The number of requests whose answer has not ended. */
  get openRequests(): number {
    return this.#connections.openRequests;
  }

  /** Starts listening, and returns the address. Rejects with Node's error (EADDRINUSE, EACCES, …) if that fails. */
  async listen(): Promise<{ host: string; port: number }> {
    const address = await listenAt(this.#server, this.#options.settings(), () =>
      this.#reportAccept(),
    );
    this.#port = address.port;
    return address;
  }

  /** Accepts no more requests, lets open answers finish for `drainMs`, and closes all connections. */
  stop(drainMs: number): Promise<void> {
    this.#stopped ??= this.#connections.close(this.#server, drainMs);
    return this.#stopped;
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const call: Call = {
      incoming,
      outgoing,
      head: requestHead(incoming),
      id: this.#options.newId(),
      startedAt: this.#options.clock.monotonic(),
    };
    this.#answer(call).catch((error: unknown) => this.#fail(call, error));
  }

  async #answer(call: Call): Promise<void> {
    const { incoming, outgoing, head } = call;
    if (isUiTarget(head.target)) {
      const door = this.#options.ui?.();
      if (door !== undefined) return this.#answerUi(call, door);
    }
    const admission = this.#admit(head);
    if (admission.awaitsContinue && admission.body !== undefined) askForBody(outgoing);
    const { route } = admission;
    if (route.kind === 'local') {
      // Say only that the process is alive, because any program on this machine may ask.
      return answerJson(
        outgoing,
        { status: 'ok', service: 'svc' },
        { headers: this.#proofFor(head) },
      );
    }
    if (route.kind === 'open-requests') {
      return answerJson(outgoing, { requests: this.#options.inFlight?.() ?? [] });
    }
    if (route.kind === 'ui-link') {
      return answerJson(outgoing, { link: `${UI_PATH}#${await this.#uiLink()}` });
    }
    const received = await this.#bodies.receive(incoming, admission.body, {
      gone: goneSignal(outgoing),
    });
    if (received === 'gone') return;
    try {
      if (route.kind === 'hook') {
        const asked = readHookRequest(parseJson(received.body?.toString('utf8') ?? ''));
        return answerJson(outgoing, { text: (await this.#options.hook?.(asked)) ?? '' });
      }
      await this.#options.handler(
        {
          id: call.id,
          route,
          method: head.method,
          target: admission.target,
          headers: admission.headers,
          body: received.body,
          encoded: received.encoded,
          startedAt: call.startedAt,
        },
        outgoing,
      );
    } finally {
      received.release();
    }
    if (!outgoing.writableEnded && !outgoing.destroyed) {
      throw new Error('The handler came back without having ended its answer.');
    }
  }

  async #answerUi({ incoming, outgoing, head }: Call, door: Promise<UiDoor>): Promise<void> {
    this.#checkServing();
    const admission = admitUi(head, this.#port);
    await (await door).answer({ incoming, outgoing, admission, port: this.#port });
  }

  async #uiLink(): Promise<string> {
    const door = await this.#options.ui?.();
    if (door === undefined) throw new ProxyError('ROUTE_UNKNOWN', 'The page is turned off.');
    return door.newLink();
  }

  #checkServing(): void {
    if (this.#stopped !== undefined) throw new ProxyError('SHUTTING_DOWN', 'svc is stopping.');
  }

  /** Returns the header with svc's proof, if the request has a challenge. Only a holder of the token can use it. */
  #proofFor(head: RequestHead): Readonly<Record<string, string>> {
    const challenge = headerOf(head.headers, CHALLENGE_HEADER);
    const [digest] = this.#options.tokenDigests();
    if (challenge === undefined || digest === undefined) return {};
    const proof = makeProof(digest, challenge, { pid: process.pid, port: this.#port });
    return proof === undefined ? {} : { [PROOF_HEADER]: proof };
  }

  #admit(head: RequestHead): Admission {
    this.#checkServing();
    const { settings, tokenDigests, pathTokenDigests, loginOf } = this.#options;
    const { relayPaths, bodyBytesMax, zstdBytesMax } = settings();
    return admit(head, {
      port: this.#port,
      tokenDigests: tokenDigests(),
      pathTokenDigests: pathTokenDigests?.() ?? [],
      ...(loginOf === undefined ? {} : { loginOf }),
      relayPaths,
      bodyBytesMax,
      zstdBytesMax,
    });
  }

  #fail({ incoming, outgoing, head, id }: Call, thrown: unknown): void {
    const isGone = outgoing.destroyed || incoming.socket.destroyed;
    if (!(thrown instanceof ProxyError) && !isGone) {
      this.#options.report({ code: 'INTERNAL', fields: { request: id, ...describeFault(thrown) } });
    }
    // An answer that has begun must not look complete, and a complete one must not be cut.
    if (isGone || outgoing.headersSent) {
      if (!outgoing.writableEnded) outgoing.destroy();
      return;
    }
    const error =
      thrown instanceof ProxyError
        ? thrown
        : new ProxyError('INTERNAL', 'svc failed on this request.', { cause: thrown });
    // After a malformed request, svc and the client may disagree where the next one begins, so close the connection.
    const isMalformed = error.code === 'REQUEST_MALFORMED';
    const close = isMalformed || !incoming.complete || this.#stopped !== undefined;
    if (close) dropBody(incoming);
    answerError(outgoing, error, { ...this.#contextOf(head, id), close });
  }

  /**
   * Refuses an upgrade of the connection, on every path and without a check of the token. Only this answer makes Codex
   * continue over HTTP at once; after a 401 it tries seven times. The answer reveals nothing. A web page gets its usual
   * 403.
   */
  #refuseUpgrade(incoming: IncomingMessage, socket: Duplex): void {
    const head = requestHead(incoming);
    let error = new ProxyError('UPGRADE_REFUSED', 'svc does not upgrade connections.');
    try {
      checkUpgrade(head, this.#port);
    } catch (refusal) {
      if (refusal instanceof ProxyError) error = refusal;
    }
    this.#endRaw(socket, error, head);
  }

  #refuseConnect(incoming: IncomingMessage, socket: Duplex): void {
    const error = new ProxyError('METHOD_NOT_ALLOWED', 'svc does not open tunnels.');
    this.#endRaw(socket, error, requestHead(incoming));
  }

  /** Answers bytes that are not HTTP, headers that are too long, or a request that does not arrive in time. */
  #answerBroken(error: NodeJS.ErrnoException, socket: Duplex): void {
    const isSilent = 'bytesRead' in socket && socket.bytesRead === 0;
    if (error.code === 'ECONNRESET' || isSilent) socket.destroy();
    else this.#endRaw(socket, readParserError(error.code), undefined);
  }

  #endRaw(duplex: Duplex, error: ProxyError, head: RequestHead | undefined): void {
    // A TCP server gives TCP sockets; only Node's types allow others.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const socket = duplex as Socket;
    if (!socket.writable || this.#connections.isAnswering(socket)) {
      socket.destroy();
      return;
    }
    const id = this.#options.newId();
    endRaw(socket, writeErrorAnswer(error, this.#contextOf(head, id)));
  }

  #contextOf(head: RequestHead | undefined, requestId: string): ErrorContext {
    const { version } = this.#options;
    if (head === undefined) {
      return { dialect: undefined, requestId, version, allow: '', evidence: [] };
    }
    return {
      dialect: errorDialect(pathOf(splitTarget(head.target).target), isAnthropic(head.headers)),
      requestId,
      version,
      allow: allowedMethods(head, this.#options.settings().relayPaths),
      evidence: this.#evidenceFor(head, requestId),
    };
  }

  /** Returns the evidence headers for an answer that the handler did not make. */
  #evidenceFor(head: RequestHead, requestId: string): readonly string[] {
    const { version, modeLimits } = this.#options;
    const issuer = { kind: 'local-proxy', version } as const;
    const kind = routeKind(head, this.#options.settings().relayPaths);
    const modes = modesToTell(head.headers, modeLimits());
    if (kind === 'model') return unreadEvidence({ issuer, requestId, modes });
    return kind === 'relay' ? relayedEvidence({ issuer, requestId, modes }) : [];
  }

  /** Reports at most once a minute that connections cannot be accepted, mostly because too many files are open. */
  #reportAccept(): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#acceptReportedAt < TIMES.acceptReport) return;
    this.#acceptReportedAt = now;
    this.#options.report({
      code: 'ACCEPT_FAILED',
      fields: { openRequests: this.#connections.openRequests },
    });
  }
}

interface Call {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly head: RequestHead;
  readonly id: string;
  readonly startedAt: number;
}

function readParserError(code: string | undefined): ProxyError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ProxyError('HEADERS_TOO_MANY', 'The request headers are too long.');
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new ProxyError('REQUEST_TIMEOUT', 'The request did not arrive in time.');
  }
  return new ProxyError('REQUEST_MALFORMED', 'The request is not well-formed HTTP.');
}
