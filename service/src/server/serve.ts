import type { IncomingMessage, ServerResponse } from 'node:http';
import { asRecord } from '../../../src/core/bytes/json-fields.ts';
import { MemoryError, ProxyError } from '../../../src/core/errors.ts';
import { pathOf } from '../../../src/core/http/routes.ts';
import { headerOf } from '../../../src/core/http/header-rules.ts';
import { HEADERS_MAX } from '../../../src/core/http/http-form.ts';
import { REQUEST_BYTES_MAX } from '../../../src/core/memory-api/limits.ts';
import { limitsOfCall } from '../core/limits.ts';
import { forwardedAddress } from '../core/rates.ts';
import { healthPath, KEYS_PATH, METHODS } from './routes.ts';
import { describeFault } from '../../../src/http/faults.ts';
import { dropBody } from '../../../src/http/bounded-server.ts';
import { askForBody, RequestBodies } from '../../../src/http/request-bodies.ts';
import { goneSignal } from '../../../src/proxy/relay.ts';
import { answerFault, answerReply, CLIENT_GONE } from './answers.ts';
import { Authenticator, type Credentials, refuseSuspended } from './authenticator.ts';
import { ModelAdmission, takeLimits } from './admission.ts';
import { tellingChanges } from './change-watch.ts';
import {
  type CallHead,
  deadlineOf,
  expectBody,
  ifVersionOf,
  parseBody,
  readHead,
  type Reply,
  tooLarge,
} from './call.ts';
import { admitRoute, CONSOLE_START, runConsole } from './console/console.ts';
import type { ConsoleReply } from './console/operation.ts';
import { invalid, ServiceFault } from './fault.ts';
import { HealthCheck } from './health.ts';
import {
  isModelPath,
  type ModelEnding,
  type ModelExchange,
  ModelServer,
} from './models/model-server.ts';
import { KEY_OPERATIONS, KEY_START, MEMORY_START } from './operations/operations.ts';
import type { ServiceParts, ServingParts } from './parts.ts';
import { withVault } from './signer.ts';

/**
 * Answers the requests that the listener accepts. It passes model requests on to ModelServer. A call of the memory API
 * goes through head → key → route → scope → rate → body → operation; a call of the console has no rate. Without a key
 * every call except HEAD /, a health check and the list of public keys is refused, and no byte of a body is read.
 */

/** A running call, with the facts for its row in the log. */
interface Serving extends ModelExchange {
  /** Gives back the memory that is reserved for the call's body; called once the call is answered. */
  release?: () => void;
}

interface Ending extends ModelEnding {
  readonly bytesOut: number;
}

export class CallServer {
  readonly #parts: ServingParts;
  readonly #authenticator: Authenticator;
  readonly #health: HealthCheck;
  readonly #models: ModelServer;
  readonly #bodies: RequestBodies;
  #isStopping = false;

  constructor(given: ServiceParts) {
    const own = { ...given, store: tellingChanges(given.store, given.changes) };
    const parts = { ...withVault(own), admission: new ModelAdmission(own) };
    this.#parts = parts;
    this.#authenticator = new Authenticator(parts);
    this.#health = new HealthCheck(parts);
    this.#models = new ModelServer(parts, this.#authenticator);
    this.#bodies = new RequestBodies(parts.models.decode, () => REQUEST_BYTES_MAX.capture, BODIES);
  }

  /**
   * Refuses new calls with a key or token from now on, and closes the connection after each refusal, so that the client
   * connects to another node.
   */
  stop(): void {
    this.#isStopping = true;
  }

  /**
   * Makes the receipts of the answers that are open now say that the service ended them. The caller ends these answers
   * next.
   */
  cut(): void {
    this.#models.cut();
  }

  /** Runs the background work for at most `withinMs` milliseconds, once no more calls come. Never rejects. */
  drain(withinMs: number): Promise<void> {
    return this.#models.drain(withinMs);
  }

  /** Answers a call. Never rejects. */
  async serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { clock, newRequestId } = this.#parts;
    const startedAt = clock.monotonic();
    const path = pathOf(incoming.url ?? '');
    const isModel = isModelPath(path);
    // A model request gets its id later: that of its receipt, or a new one if it is refused before it has a receipt.
    const requestId = isModel ? '' : newRequestId();
    const serving: Serving = { incoming, outgoing, requestId, startedAt, bytesIn: 0 };
    try {
      if (path === '/' && incoming.method === 'HEAD') this.#note(serving, answerRoot(outgoing));
      else if (isModel) this.#note(serving, await this.#serveModel(serving));
      else this.#note(serving, await this.#answer(serving));
    } catch (error) {
      this.#note(serving, this.#fail(serving, error));
    } finally {
      serving.release?.();
    }
  }

  async #answer(serving: Serving): Promise<Ending> {
    const { incoming, outgoing, requestId } = serving;
    const { method = '', url: target = '', rawHeaders: headers } = incoming;
    if (headers.length > 2 * HEADERS_MAX) {
      throw invalid(`The call has more than ${HEADERS_MAX} headers.`);
    }
    const head = readHead({ method, target, headers });
    const health = healthPath(head.path);
    // HEAD too, because some monitors send it.
    if (health !== undefined && (method === 'GET' || method === 'HEAD')) {
      serving.operation = health;
      const bytesOut = await this.#health.answer(outgoing, health, this.#isStopping);
      return { status: outgoing.statusCode, bytesOut };
    }
    if (head.path === KEYS_PATH && method === 'GET') {
      serving.operation = 'receiptKeys';
      const bytesOut = answerReply(outgoing, await this.#receiptKeys(), requestId);
      return { status: outgoing.statusCode, bytesOut };
    }
    if (this.#isStopping) throw new ServiceFault('SHUTTING_DOWN', 'The service is stopping.');
    const reply = head.path.startsWith(CONSOLE_START)
      ? await this.#runConsole(serving, head)
      : await this.#run(serving, head);
    const bytesOut = reply === undefined ? 0 : answerReply(outgoing, reply, requestId);
    return { status: reply === undefined ? CLIENT_GONE : outgoing.statusCode, bytesOut };
  }

  async #serveModel(serving: Serving): Promise<Ending> {
    const credentials = this.#credentialsOf(serving.incoming);
    const ending = await this.#models.serve(serving, credentials, this.#isStopping);
    return { ...ending, bytesOut: 0 };
  }

  /** Returns the public signing keys, with which every holder of a receipt can verify it. */
  async #receiptKeys(): Promise<Reply> {
    const keys = await this.#parts.signer.publicKeys();
    return { body: JSON.stringify({ keys }), headers: { 'cache-control': 'max-age=3600' } };
  }

  /** Runs a call of the console. Undefined if the client disconnected before its body was complete. */
  async #runConsole(serving: Serving, head: CallHead): Promise<Reply | undefined> {
    const signal = AbortSignal.timeout(deadlineOf(head.headers));
    const credentials = this.#credentialsOf(serving.incoming);
    const actor = await this.#authenticator.admitAdmin(credentials, signal);
    serving.keyId = actor.id;
    const path = head.path.slice(CONSOLE_START.length);
    const { operation, bodyBytesMax } = admitRoute({ method: head.method, path }, actor);
    serving.operation = operation.name;
    const owner = actor.tenant ?? actor.id;
    const body = await this.#receive(serving, head, bodyBytesMax, owner);
    if (body === 'gone') return undefined;
    const { method, query, headers } = head;
    const parsed = body === undefined ? {} : parseBody(body);
    const tenant = headerOf(headers, 'x-svc-tenant');
    const { links } = this.#parts.models;
    const parts = { ...this.#parts, links };
    const ifVersion = ifVersionOf(headers);
    const request = { method, path, query, tenant, body: parsed, ifVersion };
    return consoleReply(await runConsole(parts, request, actor));
  }

  /** Runs an operation for keys. Undefined if the client disconnected before the body was complete. */
  async #run(serving: Serving, head: CallHead): Promise<Reply | undefined> {
    const { incoming, requestId } = serving;
    const now = this.#parts.clock.now();
    const ms = deadlineOf(head.headers);
    const signal = AbortSignal.timeout(ms);
    const presented = this.#authenticator.present(this.#credentialsOf(incoming));
    const caller = await this.#authenticator.admit(presented, (id) =>
      this.#parts.store.findCaller(id, signal),
    );
    const { key, tenant } = caller;
    serving.keyId = key.keyId;
    refuseSuspended(caller);
    const { method, path } = head;
    const name = path.startsWith(KEY_START) ? path.slice(KEY_START.length) : '';
    const { row, parameter } = KEY_OPERATIONS.mustFind(method, name);
    serving.operation = row.name;
    if (row.scope !== undefined && !key.scopes.includes(row.scope)) {
      throw new ServiceFault('SCOPE_DENIED', `The key lacks the scope ${row.scope}.`);
    }
    const { limiter, settings } = this.#parts;
    const { requestsPerMinute } = settings;
    const limited = { key, limits: tenant.limits, requestsPerMinute };
    await takeLimits(limiter, limitsOfCall(limited, path.startsWith(MEMORY_START)));
    const body = await this.#receive(serving, head, row.bodyBytesMax, key.tenant);
    if (body === 'gone') return undefined;
    const store = this.#parts.store.of(key.tenant);
    const deadlineAt = now + ms;
    const call = { requestId, key, store, head, parameter, body, signal, deadlineAt, now };
    return row.run(call, this.#parts);
  }

  #credentialsOf(incoming: IncomingMessage): Credentials {
    return {
      authorization: headerOf(incoming.rawHeaders, 'authorization'),
      apiKey: headerOf(incoming.rawHeaders, 'x-api-key'),
      address: this.#addressOf(incoming),
    };
  }

  /**
   * Receives the body of a call. `owner`: the tenant, or an admin without a tenant, whose share of the budget for
   * bodies this body uses. Returns undefined for a call without a body, and 'gone' if the client has disconnected.
   */
  async #receive(
    serving: Serving,
    { headers }: CallHead,
    bodyBytesMax: number | undefined,
    owner: string,
  ): Promise<Buffer | undefined | 'gone'> {
    const { incoming, outgoing } = serving;
    const expected = expectBody(headers, bodyBytesMax);
    if (expected === undefined) return outgoing.destroyed ? 'gone' : undefined;
    if (headerOf(headers, 'expect') !== undefined) askForBody(outgoing);
    try {
      const sender = { gone: goneSignal(outgoing), owner };
      const received = await this.#bodies.receive(incoming, expected, sender);
      if (received === 'gone') return 'gone';
      serving.release = received.release;
      serving.bytesIn = received.body?.length ?? 0;
      return outgoing.destroyed ? 'gone' : received.body;
    } catch (error) {
      if (!(error instanceof ProxyError)) throw error;
      if (error.code !== 'TOO_BUSY') throw tooLarge(expected.wireBytesMax, error.message);
      const message = 'Too many large calls are under way.';
      throw new ServiceFault('STORE_UNAVAILABLE', message, { afterMs: 1000 });
    }
  }

  /** Returns the caller's address. Behind a proxy that is the last one in x-forwarded-for, which the proxy added. */
  #addressOf({ socket, rawHeaders }: IncomingMessage): string {
    const own = socket.remoteAddress ?? '';
    if (!this.#parts.settings.isBehindProxy) return own;
    let forwarded = '';
    for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
      if (rawHeaders[at]?.toLowerCase() === 'x-forwarded-for') forwarded = rawHeaders[at + 1] ?? '';
    }
    return forwardedAddress(forwarded.slice(forwarded.lastIndexOf(',') + 1)) ?? own;
  }

  #fail({ incoming, outgoing, requestId }: Serving, thrown: unknown): Ending {
    const isGone = outgoing.destroyed || incoming.socket.destroyed;
    const fault = faultFor(thrown);
    if (fault.code === 'INTERNAL' && !isGone) {
      const fields = { request: requestId, ...describeFault(thrown) };
      this.#parts.report({ code: 'INTERNAL', fields });
    }
    if (isGone || outgoing.headersSent) {
      // A half answer must not look complete, so the connection is cut.
      if (!outgoing.writableEnded) outgoing.destroy();
      return { status: CLIENT_GONE, bytesOut: 0 };
    }
    const close = !incoming.complete || this.#isStopping;
    if (close) dropBody(incoming);
    const bytesOut = answerFault(outgoing, fault, { requestId, close });
    return { status: outgoing.statusCode, code: fault.code, bytesOut };
  }

  #note(serving: Serving, { status, code, bytesOut }: Ending): void {
    const { clock, onCall } = this.#parts;
    const { method = '' } = serving.incoming;
    onCall({
      at: clock.now(),
      requestId: serving.requestId,
      operation: serving.operation,
      method: LOGGED_METHODS.has(method) ? method : '?',
      status,
      code,
      keyId: serving.keyId,
      bytesIn: serving.bytesIn,
      bytesOut,
      ms: Math.round((clock.monotonic() - serving.startedAt) * 10) / 10,
    });
  }
}

/**
 * Bounds on the bodies of the memory API and console that are held at once: 16 of the largest (8 MiB), 12 of one tenant
 * (see ByteBudget).
 */
const BODIES = { bytesMax: 128 << 20, waitMs: 2_000, waitingMax: 64 };

/** Answers `HEAD /`, which some clients send to open a connection early. */
function answerRoot(outgoing: ServerResponse): Ending {
  outgoing.writeHead(200, { 'content-length': 0, 'cache-control': 'no-store' });
  outgoing.end();
  return { status: 200, bytesOut: 0 };
}

function consoleReply({ status, body }: ConsoleReply): Reply {
  const { version } = asRecord(body);
  return {
    status,
    body: body === undefined ? '' : JSON.stringify(body),
    ...(typeof version === 'number' ? { headers: { etag: `"${version}"` } } : {}),
  };
}

const LOGGED_METHODS: ReadonlySet<string> = new Set([...METHODS, 'HEAD', 'OPTIONS']);

function faultFor(thrown: unknown): ServiceFault {
  if (thrown instanceof ServiceFault) return thrown;
  if (thrown instanceof MemoryError) {
    const message =
      thrown.reason === 'timeout'
        ? 'The store did not answer before the deadline.'
        : 'The store is unavailable.';
    return new ServiceFault('STORE_UNAVAILABLE', message, { afterMs: 1000 });
  }
  return new ServiceFault('INTERNAL', 'The service failed on this call.');
}
