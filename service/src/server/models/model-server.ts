import type { IncomingMessage, ServerResponse } from 'node:http';
import { apiOf } from '../../../../src/core/dialects/apis.ts';
import { MemoryError, ProxyError } from '../../../../src/core/errors.ts';
import { withoutHeader } from '../../../../src/core/http/header-rules.ts';
import {
  checkBody,
  checkForm,
  indexHeaders,
  type RequestHead,
} from '../../../../src/core/http/http-form.ts';
import { modesToTell, requestedModes } from '../../../../src/core/http/modes.ts';
import {
  errorDialect,
  explainUnknownPath,
  findPath,
  MODELS,
  type PathEntry,
  pathOf,
} from '../../../../src/core/http/routes.ts';
import { relayedEvidence, unreadEvidence } from '../../../../src/core/plan/plan.ts';
import { dropBody, requestHead } from '../../../../src/http/bounded-server.ts';
import { describeFault } from '../../../../src/http/faults.ts';
import { askForBody, RequestBodies } from '../../../../src/http/request-bodies.ts';
import { goneSignal } from '../../../../src/proxy/relay.ts';
import {
  ACCOUNT_DEFAULTS,
  type AccountSettings,
  MODEL_BODY_BYTES,
} from '../../core/account-settings.ts';
import { newReceiptId } from '../../core/ids.ts';
import { listedModels, modelListBody } from '../../core/routing.ts';
import type { Caller, ChangedFact } from '../../ports/control-store.ts';
import { JournalFullError } from '../../ports/receipt-store.ts';
import {
  type Authenticator,
  type Credentials,
  type Presented,
  refuseSuspended,
} from '../authenticator.ts';
import { Confirmed } from '../change-watch.ts';
import { refusalOf, ServiceFault } from '../fault.ts';
import type { ServingParts } from '../parts.ts';
import { journalFull, KeyHandlers } from './key-handlers.ts';
import { answerModelError, answerReply, CLIENT_GONE, errorDialectOf } from '../answers.ts';
import {
  type ModelCall,
  receiptKind,
  refusedClosing,
  refusedOpening,
  UnforwardedReceipts,
} from './receipt-facts.ts';
import { ProviderChoice } from './provider-choice.ts';

/**
 * Serves the model routes: head → key → limits → route → modes → body → handler. The handler is ProxyHandler, which the
 * local proxy uses too. Errors are answered in the dialect of the path.
 */

/** A request of a model route, with the facts for its row in the log. */
export interface ModelExchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** The start by the monotonic clock, in milliseconds. */
  readonly startedAt: number;
  /** '' until the key is checked, then the id of the receipt. An error before the check gets a new id. */
  requestId: string;
  operation?: string;
  keyId?: string;
  bytesIn: number;
}

export interface ModelEnding {
  readonly status: number;
  readonly code?: string;
}

/** Deadline of looking up the key. If the store is slower, a cached caller is used for GOOD_MS: see Confirmed. */
const KEY_MS = 2_000;
/**
 * Bound on the running requests of a tenant: half of a process's connections, so that a tenant does not use up all,
 * with many clients or with a provider that sends its requests back to this service.
 */
const RUNNING_MAX = 2_048;

export class ModelServer {
  readonly #parts: ServingParts;
  readonly #authenticator: Authenticator;
  readonly #callers: Confirmed<Caller | undefined>;
  readonly #accounts: Confirmed<AccountSettings>;
  readonly #choice: ProviderChoice;
  readonly #handlers: KeyHandlers;
  readonly #unforwarded: UnforwardedReceipts;
  readonly #bodies: RequestBodies;
  readonly #running = new Map<string, number>();
  readonly #shutdown = { isCutting: false };

  constructor(parts: ServingParts, authenticator: Authenticator) {
    this.#parts = parts;
    this.#authenticator = authenticator;
    this.#callers = new Confirmed({ ...parts, concerns: concernsCaller });
    this.#accounts = new Confirmed({
      ...parts,
      concerns: ({ kind, id }, tenant) => kind === 'settings' && id === tenant,
    });
    this.#choice = new ProviderChoice(parts);
    this.#unforwarded = new UnforwardedReceipts(parts);
    this.#handlers = new KeyHandlers(parts, this.#choice, this.#unforwarded);
    this.#bodies = new RequestBodies(parts.models.decode, () => MODEL_BODY_BYTES.decoded);
  }

  /**
   * Makes the receipts of the answers that are open now say that the service ended them. The caller ends these answers
   * next.
   */
  cut(): void {
    this.#shutdown.isCutting = true;
  }

  /** Runs the background work for at most `withinMs` milliseconds. Never rejects. */
  drain(withinMs: number): Promise<void> {
    return this.#handlers.drain(withinMs);
  }

  /** Answers a request. Never rejects. */
  async serve(
    exchange: ModelExchange,
    credentials: Credentials,
    isStopping: boolean,
  ): Promise<ModelEnding> {
    const head = requestHead(exchange.incoming);
    const stage: Stage = { exchange, head, isStopping, call: undefined };
    try {
      await this.#answer(stage, credentials);
      return { status: exchange.outgoing.statusCode };
    } catch (error) {
      return this.#fail(stage, error);
    }
  }

  async #answer(stage: Stage, credentials: Credentials): Promise<void> {
    const { exchange, head } = stage;
    const { outgoing } = exchange;
    const index = indexHeaders(head.headers);
    checkForm(head, index);
    const presented = this.#authenticator.present(credentials);
    const isAnthropic = index.has('anthropic-version');
    const call = await this.#admit(stage, presented, isAnthropic);
    if (call.route.kind === 'model') requestedModes(head.headers);
    const { body: expected, awaitsContinue } = checkBody(head.method, index, BODIES);
    if (awaitsContinue && expected !== undefined) askForBody(outgoing);
    if (call.kind === 'models') return this.#listModels(stage, call, isAnthropic);
    const sender = { gone: goneSignal(outgoing), owner: call.caller.key.tenant };
    const received = await this.#bodies.receive(exchange.incoming, expected, sender);
    if (received === 'gone')
      throw new ProxyError('REQUEST_TIMEOUT', 'The client closed the connection.');
    exchange.bytesIn = received.body?.length ?? 0;
    try {
      await this.#handle(stage, call, received.body);
    } finally {
      received.release();
    }
  }

  async #handle(
    { exchange, head }: Stage,
    call: ModelCall,
    body: Buffer | undefined,
  ): Promise<void> {
    const { outgoing, startedAt } = exchange;
    const { socket } = exchange.incoming;
    // The socket's timeout is for silent clients. A model may be silent for minutes, so the socket has no timeout until
    // the answer ends.
    const silence = socket.timeout ?? 0;
    socket.setTimeout(0);
    outgoing.once('close', () => {
      if (!socket.destroyed) socket.setTimeout(silence);
    });
    const { receiptId: id, route } = call;
    // The decoded body may have another length than the one that the client sent.
    const headers = withoutHeader(head.headers, 'content-length');
    const request = { ...head, id, route, headers, body, startedAt };
    const { key } = call.caller;
    const { tenant } = key;
    const handler = this.#handlers.of(key);
    const release = this.#run(tenant);
    try {
      const account = await this.#accounts.ask(tenant, () =>
        this.#parts.store.of(tenant).getSettings(),
      );
      call.isHandled = true;
      await handler.handle(call, request, { outgoing, account });
    } finally {
      release();
    }
  }

  /** Counts a running request of a tenant. Returns the function that ends it. Throws ProxyError TOO_BUSY. */
  #run(tenant: string): () => void {
    const running = this.#running.get(tenant) ?? 0;
    if (running >= RUNNING_MAX) {
      throw new ProxyError('TOO_BUSY', 'Too many requests of this tenant are in progress.');
    }
    this.#running.set(tenant, running + 1);
    return () => {
      const left = (this.#running.get(tenant) ?? 1) - 1;
      if (left > 0) this.#running.set(tenant, left);
      else this.#running.delete(tenant);
    };
  }

  /** Checks the key, and only then the route, so that a caller without a key learns nothing about paths. */
  async #admit(stage: Stage, presented: Presented, isAnthropic: boolean): Promise<ModelCall> {
    const { exchange, head, isStopping } = stage;
    const { clock, admission } = this.#parts;
    const path = pathOf(head.target);
    const entry = findPath({ path, isAnthropic, relayPaths: [] });
    const route = entry?.route ?? ({ kind: 'relay', dialect: errorDialectOf(head) } as const);
    const kind = receiptKind(route, path);
    const began = clock.monotonic();
    const caller = await this.#authenticator.admit(presented, (id) =>
      this.#callers.ask(id, () => this.#parts.store.findCaller(id, AbortSignal.timeout(KEY_MS))),
    );
    const at = clock.now();
    exchange.requestId = newReceiptId(at, this.#parts.randomBytes);
    exchange.keyId = caller.key.keyId;
    stage.call = {
      receiptId: exchange.requestId,
      at,
      caller,
      kind,
      route,
      authMs: clock.monotonic() - began,
      isHandled: false,
      hasReceipt: true,
      shutdown: this.#shutdown,
    };
    exchange.operation = kind;
    // The tenant is known now, so a refusal from here on can get a receipt: see UnforwardedReceipts.
    refuseSuspended(caller);
    if (isStopping) throw new ProxyError('SHUTTING_DOWN', 'The service is stopping.');
    // Count the call before its route is checked, because a call of an unknown path counts too.
    const entering = clock.monotonic();
    await admission.enter(caller);
    stage.call.enterMs = clock.monotonic() - entering;
    checkRoute(entry, head);
    return stage.call;
  }

  async #listModels({ exchange, head }: Stage, call: ModelCall, isAnthropic: boolean) {
    const { outgoing, requestId, startedAt } = exchange;
    const { tenant, allowedModels } = call.caller.key;
    const providers = await this.#choice.providers(tenant);
    const side = providers.filter(({ isEnabled, apiStyle }) => {
      return isEnabled && (apiOf(apiStyle).provider === 'anthropic') === isAnthropic;
    });
    const path = pathOf(head.target);
    const id = path === MODELS ? undefined : decodeURIComponent(path.slice(MODELS.length + 1));
    const models = listedModels(side, allowedModels);
    const body = modelListBody(models, { id, isAnthropic });
    if (body === undefined) {
      throw new ServiceFault('MODEL_NOT_FOUND', 'There is no such model.');
    }
    const text = JSON.stringify(body);
    const totalMs = this.#parts.clock.monotonic() - startedAt;
    const closing = { ...refusedClosing(call, { code: '', status: 200 }, totalMs), ...LISTED };
    const hasReceipt = this.#unforwarded.served(refusedOpening(call), closing);
    const more = hasReceipt ? { headers: { 'x-svc-receipt-id': requestId } } : {};
    answerReply(outgoing, { body: text, ...more }, requestId);
  }

  #fail({ exchange, head, isStopping, call }: Stage, thrown: unknown): ModelEnding {
    if (exchange.requestId === '') exchange.requestId = this.#parts.newRequestId();
    const { incoming, outgoing, requestId, startedAt } = exchange;
    const isGone = outgoing.destroyed || incoming.socket.destroyed;
    const error = asKnown(thrown);
    const failure = refusalOf(error);
    if (failure.code === 'INTERNAL' && !isGone) {
      const fields = { request: requestId, ...describeFault(thrown) };
      this.#parts.report({ code: 'INTERNAL', fields });
    }
    if (call !== undefined && !call.isHandled) {
      const totalMs = this.#parts.clock.monotonic() - startedAt;
      const refused = refusedClosing(call, failure, totalMs);
      const closing = isGone ? { ...refused, ...GONE } : refused;
      call.hasReceipt = this.#unforwarded.refused(refusedOpening(call), closing);
    }
    if (isGone || outgoing.headersSent) {
      // A half answer must not look complete, so the connection is cut.
      if (!outgoing.writableEnded) outgoing.destroy();
      return { status: CLIENT_GONE };
    }
    const close = failure.code === 'REQUEST_MALFORMED' || !incoming.complete || isStopping;
    if (close) dropBody(incoming);
    answerModelError(outgoing, error, {
      dialect: errorDialectOf(head),
      requestId,
      hasReceipt: call?.hasReceipt === true,
      evidence: call === undefined ? [] : evidenceOf(head, call),
      close,
    });
    return { status: outgoing.statusCode, code: failure.code };
  }
}

/** Says whether a change concerns a caller. A change of a plan concerns all tenants that have the plan. */
function concernsCaller({ kind, id }: ChangedFact, keyId: string, caller: Caller | undefined) {
  if (kind === 'key') return id === keyId;
  if (kind === 'tenant') return id === caller?.key.tenant;
  return kind === 'plan' && id === caller?.tenant.plan;
}

interface Stage {
  readonly exchange: ModelExchange;
  readonly head: RequestHead;
  /** True if the service no longer accepts requests. */
  readonly isStopping: boolean;
  /** Set once the key is known. */
  call: ModelCall | undefined;
}

const BODIES = { bodyBytesMax: MODEL_BODY_BYTES.decoded, zstdBytesMax: MODEL_BODY_BYTES.zstd };

const GONE = {
  status: 'client_aborted',
  httpStatus: null,
  errorCode: null,
  errorSource: null,
} as const;
const LISTED = { status: 'completed', errorCode: null, errorSource: null } as const;

/** Says whether a path is a model route, or is so similar to one that the caller expects errors of a model API. */
export function isModelPath(path: string): boolean {
  const entry = findPath({ path, isAnthropic: false, relayPaths: [] });
  if (entry?.route.kind === 'model' || entry?.route.kind === 'relay') return true;
  return errorDialect(path, false) !== undefined;
}

/** Checks the route and the method. Throws ProxyError ROUTE_UNKNOWN, or ServiceFault METHOD_NOT_ALLOWED. */
function checkRoute(entry: PathEntry | undefined, { method, target }: RequestHead): void {
  if (entry === undefined) {
    throw new ProxyError('ROUTE_UNKNOWN', explainUnknownPath(pathOf(target), 'the service'));
  }
  if (entry.methods.includes(method)) return;
  const allow = entry.methods.join(', ');
  const message = 'This path does not support this method.';
  throw new ServiceFault('METHOD_NOT_ALLOWED', message, { allow });
}

function asKnown(thrown: unknown): unknown {
  if (thrown instanceof JournalFullError) return journalFull();
  if (!(thrown instanceof MemoryError)) return thrown;
  return new ServiceFault('STORE_UNAVAILABLE', 'The store is unavailable now.');
}

function evidenceOf({ headers }: RequestHead, call: ModelCall): readonly string[] {
  const { scopes } = call.caller.key;
  const supports = { read: scopes.includes('read'), write: scopes.includes('write') };
  const { compressionMode } = ACCOUNT_DEFAULTS;
  const modes = modesToTell(headers, { memoryMode: 'read-write', compressionMode, supports });
  const facts = { issuer: { kind: 'service' }, requestId: call.receiptId, modes } as const;
  return call.kind === 'model' ? unreadEvidence(facts) : relayedEvidence(facts);
}
