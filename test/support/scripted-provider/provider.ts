import { EventEmitter, once } from 'node:events';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import { decodeBody } from './body-coding.ts';
import { answerChat } from './chat-completions.ts';
import { type Fault, FaultPlan, errorBodyOf, errorEventOf } from './faults.ts';
import { listField, roughTokens } from './loose-json.ts';
import { answerMessages } from './messages.ts';
import { type ProviderRecord, answerOf } from './provider-record.ts';
import { type PromptUsage, uncached } from './prompt-cache.ts';
import { answerResponses } from './responses.ts';
import { randomId } from './script.ts';
import type { AnswerTerms, ScriptedAnswer } from './scripted-answer.ts';
import type { Judgement } from '../strict-provider/judgement.ts';
import { type StrictProvider, modelRequest } from '../strict-provider/strict-provider.ts';

/**
 * A model provider on loopback that speaks all three dialects, JSON and streamed, answers as the
 * request's own text tells it to (see script.ts), fails on demand, and records every byte.
 */
export async function startScriptedProvider(
  options: ProviderOptions = {},
): Promise<ScriptedProvider> {
  const provider = new ScriptedProvider(options);
  await provider.start();
  return provider;
}

export interface ProviderOptions {
  /** What the provider reports as used; clients compact by it. Without it nothing is cached. */
  readonly usageOf?: (request: unknown) => PromptUsage;
  /** Refuses, drops and charges as the real providers do; `usageOf` is not asked then. */
  readonly strict?: StrictProvider;
  /** False: 404 on /v1/models and on count_tokens, as gateways do. */
  readonly hasExtraRoutes?: boolean;
  /** Cuts every event into writes of so many bytes. */
  readonly writeBytes?: number;
  /** Headers of every answer. */
  readonly headers?: Readonly<Record<string, string>>;
}

export class ScriptedProvider {
  /** In order of arrival. */
  readonly records: ProviderRecord[] = [];
  options: ProviderOptions;
  readonly #changes = new EventEmitter().setMaxListeners(0);
  readonly #connections = new WeakMap<Socket, number>();
  readonly #server: Server;
  #connectionCount = 0;
  #faults = new FaultPlan([]);

  constructor(options: ProviderOptions) {
    this.options = options;
    // A provider outlives any pause of its clients: no limit of its own may end a test early.
    this.#server = createServer({ requestTimeout: 0, keepAliveTimeout: 65_000 });
    this.#server.on('request', (request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        response.destroy(error instanceof Error ? error : undefined);
      });
    });
    this.#server.on('connection', (socket) => {
      this.#connectionCount += 1;
      this.#connections.set(socket, this.#connectionCount);
      socket.on('error', () => socket.destroy());
    });
    this.#server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
      this.#record(request, Buffer.alloc(0)).status = 426;
      socket.end('HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    });
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** From now on; what was counted before is forgotten. */
  failWith(...faults: readonly Fault[]): void {
    this.#faults = new FaultPlan(faults);
  }

  /** Resolves as soon as the records say so; rejects after `ms`. */
  async until(
    isTrue: (records: readonly ProviderRecord[]) => boolean,
    ms = 120_000,
  ): Promise<void> {
    const signal = AbortSignal.timeout(ms);
    while (!isTrue(this.records)) await once(this.#changes, 'change', { signal });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat((await request.toArray()) as Buffer[]);
    if (request.url === '/__log') {
      response.end(JSON.stringify(this.records.map(readable)));
      return;
    }
    const record = this.#record(request, body);
    response.on('close', () => {
      record.isClientGone = !response.writableFinished;
      record.isOver = true;
      this.#changes.emit('change');
    });
    const hasTools = listField(record.json, 'tools').length > 0;
    const fault = this.#faults.strike({ path: record.path, hasTools });
    const call = { record, response, fault, changed: () => this.#changes.emit('change') };
    await answerCall(call, this.options);
  }

  #record(request: IncomingMessage, body: Buffer): ProviderRecord {
    const target = request.url ?? '';
    const path = target.split('?')[0] ?? '';
    const record: ProviderRecord = {
      n: this.records.length + 1,
      connection: this.#connections.get(request.socket) ?? 0,
      method: request.method ?? '',
      target,
      path,
      dialect: dialectOf(path, request),
      headers: request.rawHeaders,
      body,
      json: parsed(body, request.headers['content-encoding']),
      answerId: randomId('req_'),
      decision: undefined,
      judgement: undefined,
      status: 0,
      sent: [],
      isClientGone: false,
      isOver: false,
    };
    this.records.push(record);
    this.#changes.emit('change');
    return record;
  }
}

interface Call {
  readonly record: ProviderRecord;
  readonly response: ServerResponse;
  readonly fault: Fault | undefined;
  readonly changed: () => void;
}

async function answerCall(call: Call, options: ProviderOptions): Promise<void> {
  const { record, response, fault } = call;
  const idName = record.dialect === 'anthropic_messages' ? 'request-id' : 'x-request-id';
  response.setHeader(idName, record.answerId);
  for (const [name, value] of Object.entries(options.headers ?? {}))
    response.setHeader(name, value);
  if (fault?.kind === 'hang') return;
  if (fault?.kind === 'reset') {
    response.socket?.resetAndDestroy();
    return;
  }
  if (fault?.kind === 'status') {
    for (const [name, value] of Object.entries(fault.headers ?? {}))
      response.setHeader(name, value);
    sendJson(call, fault.status, errorBodyOf(record.dialect, fault.status, fault.message));
    return;
  }
  const judgement = options.strict === undefined ? undefined : judged(record, options.strict);
  if (judgement?.kind === 'refused') {
    const { status, message } = judgement.refusal;
    sendJson(call, status, errorBodyOf(record.dialect, status, message));
    return;
  }
  const extra = extraAnswer(record, options.hasExtraRoutes ?? true);
  if (extra !== undefined) {
    sendJson(call, extra.status, extra.body);
    return;
  }
  const answer = modelAnswer(record, judgement ?? { usage: usageOf(record, options) });
  if (answer === undefined) {
    sendJson(
      call,
      404,
      errorBodyOf(record.dialect, 404, `no route ${record.method} ${record.path}`),
    );
    return;
  }
  record.decision = answer.decision;
  const { stream } = record.json as { stream?: boolean };
  if (stream === true) await sendEvents(call, answer, options.writeBytes);
  else sendJson(call, 200, answer.whole);
}

/** Undefined where no rule of a provider applies. */
function judged(record: ProviderRecord, strict: StrictProvider): Judgement | undefined {
  const request = modelRequest(record.path, record.headers, record.json);
  if (request === undefined || record.method !== 'POST') return undefined;
  const judgement = strict.judge(request);
  record.judgement = judgement;
  return judgement;
}

function usageOf(record: ProviderRecord, options: ProviderOptions): PromptUsage {
  return (options.usageOf ?? uncached)(record.json);
}

function modelAnswer(record: ProviderRecord, terms: AnswerTerms): ScriptedAnswer | undefined {
  if (record.method !== 'POST' || record.json === undefined) return undefined;
  switch (record.path) {
    case '/v1/messages':
      return answerMessages(record.json, terms);
    case '/v1/responses':
      return answerResponses(record.json, terms);
    case '/v1/chat/completions':
      return answerChat(record.json, terms);
    default:
      return undefined;
  }
}

/** The routes beside the model ones. */
function extraAnswer(
  record: ProviderRecord,
  exists: boolean,
): { readonly status: number; readonly body: object } | undefined {
  const { path, dialect } = record;
  const isModels = record.method === 'GET' && path.startsWith('/v1/models');
  const isCount = path === '/v1/messages/count_tokens';
  if (!isModels && !isCount) return undefined;
  if (!exists) return { status: 404, body: errorBodyOf(dialect, 404) };
  if (isCount) return { status: 200, body: { input_tokens: roughTokens(record.json ?? '') } };
  if (dialect !== 'anthropic_messages') {
    const model = { id: 'gpt-5', object: 'model', created: 1_754_425_777, owned_by: 'scripted' };
    return { status: 200, body: { object: 'list', data: [model] } };
  }
  const id = 'claude-sonnet-4-5';
  const model = { type: 'model', id, display_name: 'Sonnet', created_at: '2025-09-29T00:00:00Z' };
  return { status: 200, body: { data: [model], has_more: false, first_id: id, last_id: id } };
}

function sendJson({ record, response, changed }: Call, status: number, body: object): void {
  const bytes = Buffer.from(JSON.stringify(body));
  record.status = status;
  record.sent.push(bytes);
  changed();
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(bytes);
}

async function sendEvents(
  call: Call,
  answer: ScriptedAnswer,
  writeBytes = Infinity,
): Promise<void> {
  const { record, response, fault } = call;
  record.status = 200;
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
  });
  response.flushHeaders();
  if (fault?.kind === 'slow') await sleep(fault.ms);
  for (const [index, event] of answer.events.entries()) {
    const isOver = await strikeBetween(call, index);
    if (isOver) return;
    for (let at = 0; at < event.length; at += writeBytes) {
      await send(call, event.slice(at, at + writeBytes));
    }
    if (answer.decision.gapMs > 0) await sleep(answer.decision.gapMs);
  }
  if (fault?.kind === 'tail') await sleep(fault.ms);
  response.end();
}

/** Resolves to true when the stream is over because of its fault or its client. */
async function strikeBetween(call: Call, index: number): Promise<boolean> {
  const { record, response, fault } = call;
  if (response.destroyed) return true;
  if (fault === undefined || !('after' in fault) || fault.after !== index) return false;
  switch (fault.kind) {
    case 'cut':
      // What was sent so far must reach the other side before the connection breaks.
      await sleep(20);
      response.socket?.resetAndDestroy();
      return true;
    case 'end':
      response.end();
      return true;
    case 'stall':
      await sleep(fault.ms);
      return response.destroyed;
    case 'errevent':
      await send(call, errorEventOf(record.dialect ?? 'openai_responses'));
      response.end();
      return true;
    case 'inject':
      await send(call, fault.raw);
      return false;
  }
}

/** Resolves when the connection took the bytes, or is gone. */
async function send({ record, response, changed }: Call, text: string): Promise<void> {
  if (response.destroyed) return;
  const bytes = Buffer.from(text);
  record.sent.push(bytes);
  changed();
  await new Promise<void>((resolve) => {
    response.write(bytes, () => resolve());
  });
}

function dialectOf(path: string, request: IncomingMessage): Dialect | undefined {
  if (path.includes('/messages')) return 'anthropic_messages';
  if (path.includes('/responses')) return 'openai_responses';
  if (path.includes('/chat/completions')) return 'openai_chat_completions';
  return request.headers['anthropic-version'] === undefined ? undefined : 'anthropic_messages';
}

function parsed(body: Buffer, coding: string | undefined): unknown {
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(decodeBody(body, coding).toString());
  } catch {
    return undefined;
  }
}

function readable(record: ProviderRecord): object {
  const { body, sent: _, ...rest } = record;
  return { ...rest, bodyBytes: body.length, answer: answerOf(record).toString() };
}
