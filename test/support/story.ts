import { TEXTS } from '../../src/adapters/texts.ts';
import { factsOfModel } from '../../src/core/settings/model-facts.ts';
import { FOLDER_PROJECTS } from './folder-projects.ts';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { openState } from '../../src/adapters/state/state.ts';
import { CodeFiles } from '../../src/adapters/projects/code-files.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { createUpstream } from '../../src/adapters/network/undici-upstream.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import type { ProxySettings } from '../../src/core/settings/settings.ts';
import type { UpstreamAuth } from '../../src/core/http/header-rules.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { Ledger } from '../../src/ports/ledger.ts';
import type { Memory } from '../../src/ports/memory.ts';
import type { Projects } from '../../src/ports/projects.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { accountsOf } from '../../src/proxy/accounts.ts';
import { ProxyHandler } from '../../src/proxy/handle.ts';
import { LOCAL_TENANT } from '../../src/core/ledger/entries.ts';
import type { ConfiguredUpstream, ProxyDependencies } from '../../src/proxy/dependencies.ts';
import { answerTo, PATHS } from './dialect-wire.ts';
import { PROXY_SETTINGS, startServer, TOKEN } from './local-server.ts';
import { ask, type ClientAnswer } from './sockets.ts';
import { tempFolder } from './temp-folder.ts';
import { upstreamSettings } from './upstream.ts';
import { upstreamFor } from '../../src/proxy/upstream-choice.ts';

/** The whole proxy over real sockets, with a provider that writes down what reaches it. */

export const PROVIDER_KEY = 'provider-key-CANARY-5d1f';

export interface SeenRequest {
  readonly path: string;
  /** As sent: name, value, name, value. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Sent before `body` ends: the connection is broken there. */
  readonly cutAfter?: number;
  /** The body stays open after its last byte until the test ends. */
  readonly hangs?: boolean;
  /** Before the head. */
  readonly delayMs?: number;
  /** The body comes in so many pieces, with a pause before each; the last one only then. */
  readonly pieces?: {
    readonly count: number;
    readonly pauseMs: number;
    readonly last?: Promise<unknown>;
  };
}

export interface RecordingProvider {
  readonly url: string;
  readonly seen: SeenRequest[];
  /** Decides every answer; a plain one says "Noted." */
  reply: (request: SeenRequest) => Reply;
}

/** With `tls` it speaks https; `url` then names an address that its certificate does not. */
export async function startRecordingProvider(tls?: {
  readonly key: string;
  readonly cert: string;
}): Promise<RecordingProvider> {
  const provider = { url: '', seen: [] as SeenRequest[], reply: answerTo };
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void =>
    void take(provider, incoming, outgoing);
  const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  // A busy machine must not close a connection while a request is on its way.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  provider.url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return provider;
}

async function take(
  provider: RecordingProvider,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  // A caller that was killed while it sent was not heard to the end.
  const chunks = await incoming.toArray().catch(() => undefined);
  if (chunks === undefined) return;
  const body = Buffer.concat(chunks as Buffer[]);
  const request = { path: incoming.url ?? '', headers: incoming.rawHeaders, body };
  provider.seen.push(request);
  const reply = provider.reply(request);
  if (reply.delayMs !== undefined) await sleep(reply.delayMs, undefined, { ref: false });
  outgoing.writeHead(reply.status, reply.headers);
  if (reply.pieces !== undefined) return sendPieces(outgoing, reply.body, reply.pieces);
  if (reply.hangs === true) outgoing.write(reply.body);
  else if (reply.cutAfter === undefined) outgoing.end(reply.body);
  else outgoing.write(reply.body.slice(0, reply.cutAfter), () => outgoing.destroy());
}

async function sendPieces(
  outgoing: ServerResponse,
  text: string,
  { count, pauseMs, last }: NonNullable<Reply['pieces']>,
): Promise<void> {
  const bytes = Buffer.from(text);
  const size = Math.ceil(bytes.length / count);
  for (let at = 0; at < bytes.length && !outgoing.destroyed; at += size) {
    // oxlint-disable-next-line no-await-in-loop -- An answer that streams.
    await sleep(pauseMs, undefined, { ref: false });
    // oxlint-disable-next-line no-await-in-loop
    if (at + size >= bytes.length) await last;
    outgoing.write(bytes.subarray(at, at + size));
  }
  outgoing.end();
}

export interface StoryOptions {
  readonly provider: RecordingProvider;
  /** A memory of the test's own; the embedded store otherwise. */
  readonly memory?: Memory;
  /** Replaces the ledger. */
  readonly ledger?: Ledger;
  /** Stands between the proxy and the store's ledger. */
  readonly wrapLedger?: (ledger: Ledger) => Ledger;
  /** Checks the limits of a service; there are none otherwise. */
  readonly admit?: ProxyDependencies['admit'];
  readonly folder?: string;
  readonly settings?: Partial<ProxySettings>;
  readonly dialects?: readonly Dialect[];
  /** Who pays at the provider: a key of svc's otherwise. */
  readonly auth?: UpstreamAuth;
  /** The real one otherwise. */
  readonly clock?: Clock;
  /** The secret of the marks of hooks; none otherwise. */
  readonly hookKey?: string;
  /** Every folder is its own project otherwise, and no file is looked at. */
  readonly projects?: Projects;
}

export interface Story {
  readonly port: number;
  readonly folder: string;
  readonly memory: Memory;
  readonly rows: RequestRow[];
  /** What svc said to the person at the terminal. */
  readonly lines: string[];
  /** Sends these bytes, or this value as JSON, to the dialect's path. */
  send(
    dialect: Dialect,
    body: object | string | Buffer,
    headers?: Readonly<Record<string, string>>,
  ): Promise<ClientAnswer>;
  /** Resolves when everything captured so far is in the memory. */
  settled(): Promise<void>;
  /** Resolves when the work in the background is done, too. */
  drained(): Promise<void>;
  stop(): Promise<void>;
}

const DIALECTS = ['anthropic_messages', 'openai_responses', 'openai_chat_completions'] as const;

export async function startStory(options: StoryOptions): Promise<Story> {
  const folder = options.folder ?? tempFolder();
  const lines: string[] = [];
  const store = openParts(options, folder, (line) => lines.push(line));
  const upstreams = openUpstreams(options);
  const rows: RequestRow[] = [];
  // A machine that runs many tests at once may need longer than a person should wait.
  const proxy = { ...PROXY_SETTINGS, recallMs: 10_000, ...options.settings };
  const handler = new ProxyHandler({
    texts: TEXTS,
    accounts: accountsOf(factsOfModel),
    ...store.parts,
    factsOf: factsOfModel,
    issuer: { kind: 'local-proxy', version: '0.1.2' },
    tenant: LOCAL_TENANT,
    settings: () => proxy,
    choose: ({ request }) => ({ configured: upstreamFor({ proxy, upstreams }, request.route) }),
    clock: options.clock ?? { now: () => Date.now(), monotonic: () => performance.now() },
    projects: options.projects ?? FOLDER_PROJECTS,
    ...(options.projects !== undefined && { code: store.code }),
    blockKey: 'a secret of these tests',
    hookKey: () => options.hookKey,
    ...(options.admit !== undefined && { admit: options.admit }),
    outputFolder: undefined,
    note: ({ row }) => {
      store.log(row);
      rows.push(row);
    },
  });
  const server = await startServer(
    (request, outgoing) => handler.handle(request, outgoing),
    options.settings,
  );
  const stop = once(async () => {
    await server.close();
    await handler.drain(30_000);
    await store.close();
    for (const { upstream } of upstreams.values()) await upstream.close();
  });
  onTestFinished(stop);
  return {
    port: server.port,
    folder,
    memory: store.parts.memory,
    rows,
    lines,
    send: (dialect, body, headers = {}) =>
      ask(server.port, {
        path: PATHS[dialect],
        headers: [
          'Authorization',
          `Bearer ${TOKEN}`,
          'Content-Type',
          'application/json',
          ...Object.entries(headers).flat(),
        ],
        body: bytesOf(body),
      }),
    settled: () => store.parts.outbox.flush(30_000),
    drained: () => handler.drain(30_000),
    stop,
  };
}

export function bytesOf(body: object | string | Buffer): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

interface StoreParts extends Pick<ProxyDependencies, 'ledger' | 'outbox'> {
  readonly memory: Memory;
}

interface OpenedParts {
  readonly parts: StoreParts;
  readonly code?: ProxyDependencies['code'];
  readonly log: (row: RequestRow) => void;
  close(): Promise<void>;
}

function openParts(
  { memory, ledger, wrapLedger = (one) => one }: StoryOptions,
  folder: string,
  report: (line: string) => void,
): OpenedParts {
  if (memory === undefined) {
    const store = openEmbeddedStore({ folder, report });
    return {
      parts: { ...store, ledger: wrapLedger(ledger ?? store.ledger) },
      code: { reader: new CodeFiles(), provenance: store.provenance },
      log: (row) => store.requestLog.add(row),
      close: () => store.close(),
    };
  }
  const state = openState({ folder, report });
  const outbox = state.outboxFor('story', memory);
  return {
    log: () => {},
    parts: { memory, ledger: wrapLedger(ledger ?? state.ledger), outbox },
    close: async () => {
      outbox.close();
      await state.close();
    },
  };
}

function openUpstreams({
  provider,
  dialects = DIALECTS,
  auth,
}: StoryOptions): Map<Dialect, ConfiguredUpstream> {
  return new Map(
    dialects.map((apiStyle) => {
      const settings = upstreamSettings({
        apiStyle,
        baseUrl: provider.url,
        providerKey: PROVIDER_KEY,
        auth: auth ?? (apiStyle === 'anthropic_messages' ? 'x-api-key' : 'bearer'),
        allowPrivate: true,
      });
      return [apiStyle, { settings, upstream: createUpstream(settings, { headersMs: 600_000 }) }];
    }),
  );
}

function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= work());
}
