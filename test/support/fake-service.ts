import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import {
  captureRequest,
  recallRequest,
  retrieveRequest,
  purgeRequest,
} from '../../src/core/memory-api/contract.ts';
import { faultOf, FAULTS, type FaultCode } from '../../src/core/memory-api/faults.ts';
import { formatServiceKey } from '../../src/core/memory-api/service-key.ts';
import { parseShape, type Shape } from '../../src/core/memory-api/shape.ts';
import { FakeOperations, Refusal } from './fake-operations.ts';
import { schemaOf } from './memory-api.ts';

/**
 * A memory service that keeps the contract, on a real socket, and can be made to break it. Every
 * request must be valid for the published document; what is not is refused and remembered.
 */

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: readonly string[];
  readonly body: string;
  readonly at: number;
}

export interface FakeCall {
  readonly path: string;
  readonly request: Readonly<Record<string, unknown>>;
}

type Json = Record<string, unknown>;

export class FakeService {
  /** The one key that it accepts. */
  key = formatServiceKey(new Uint8Array(8).fill(7), new Uint8Array(32).fill(9));
  readonly operations = new FakeOperations();
  readonly seen: SeenRequest[] = [];
  /** Requests that the published document does not know. */
  readonly invalid: string[] = [];
  revoked = false;
  /** Answers in the service's place when it returns true. */
  intercept: (call: FakeCall, response: ServerResponse) => boolean | Promise<boolean> = () => false;
  /** Changes an honest answer. */
  alter: (call: FakeCall, answer: Json) => unknown = (_, answer) => answer;
  readonly #server: Server;
  #url = '';

  constructor(tls?: { readonly key: string; readonly cert: string }) {
    const listener = (request: IncomingMessage, response: ServerResponse): void => {
      void this.#answer(request, response);
    };
    this.#server =
      tls === undefined ? createHttpServer(listener) : createHttpsServer(tls, listener);
  }

  get url(): string {
    return this.#url;
  }

  /** How often a path was asked. */
  count(path: string): number {
    return this.seen.filter((request) => request.path.endsWith(path)).length;
  }

  async listen(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    const address = this.#server.address();
    const isTls = 'setSecureContext' in this.#server;
    const at = typeof address === 'object' && address !== null ? address.port : 0;
    this.#url = isTls ? `https://localhost:${at}` : `http://127.0.0.1:${at}`;
    return this;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const url = new URL(request.url ?? '/', 'http://service');
    this.seen.push({
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: request.rawHeaders,
      body,
      at: performance.now(),
    });
    const call = { path: url.pathname, request: jsonOf(body) };
    if (await this.intercept(call, response)) return;
    const answer = await this.#dispatch(request, url, call.request).catch(
      (error: unknown) => error,
    );
    if (answer instanceof Refusal) {
      refuse(response, answer.code, { details: answer.details });
      return;
    }
    if (answer instanceof Error) throw answer;
    sendJson(response, 200, this.alter(call, answer as Json));
  }

  async #dispatch(request: IncomingMessage, url: URL, body: Json): Promise<unknown> {
    if (request.headers.authorization !== `Bearer ${this.key}`) throw new Refusal('AUTH_INVALID');
    if (this.revoked) throw new Refusal('AUTH_REVOKED');
    const needs = (scope: string): void => {
      if (!this.operations.scopes.includes(scope)) throw new Refusal('SCOPE_DENIED');
    };
    switch (`${request.method} ${url.pathname}`) {
      case 'GET /v1/svc/whoami':
        return this.operations.whoAmI();
      case 'POST /v1/svc/memory/recall':
        needs('read');
        return this.operations.recall(this.#read('RecallRequest', recallRequest, body));
      case 'POST /v1/svc/memory/capture':
        needs('write');
        return this.operations.capture(this.#read('CaptureRequest', captureRequest, body));
      case 'POST /v1/svc/memory/retrieve':
        needs('read');
        return this.operations.retrieve(this.#read('RetrieveRequest', retrieveRequest, body));
      case 'GET /v1/svc/memory/items':
        needs('read');
        return this.operations.items(url.searchParams);
      case 'POST /v1/svc/memory/purges':
        needs('write');
        return this.operations.purge(this.#read('PurgeRequest', purgeRequest, body));
      default:
        throw new Refusal('NOT_FOUND');
    }
  }

  #read<Value>(schema: string, shape: Shape<Value>, body: Json): Value {
    const { value } = parseShape(shape, body);
    // What the shape leaves behind was not in the contract.
    const isClosed = JSON.stringify(sorted(value)) === JSON.stringify(sorted(body));
    if (value !== undefined && schemaOf(schema)(body) && isClosed) return value;
    this.invalid.push(JSON.stringify(body));
    throw new Refusal('INVALID_REQUEST');
  }
}

/** A refusal as the contract has it. */
export function refuse(response: ServerResponse, code: FaultCode, note: RefusalNote = {}): void {
  const { details, headers } = note;
  const body = faultOf(code, {
    message: 'No.',
    requestId: 'req_fake',
    ...(details === undefined ? {} : { details }),
  });
  response.writeHead(FAULTS[code].status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

interface RefusalNote {
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function jsonOf(body: string): Json {
  try {
    return JSON.parse(body) as Json;
  } catch {
    return {};
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([name, member]) => [name, sorted(member)]));
}
