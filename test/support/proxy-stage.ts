import { TEXTS } from '../../src/adapters/texts.ts';
import { factsOfModel, type ModelFacts } from '../../src/core/settings/model-facts.ts';
import { FOLDER_PROJECTS } from './folder-projects.ts';
import { accountsOf } from '../../src/proxy/accounts.ts';
import { ProxyHandler } from '../../src/proxy/handle.ts';
import { LOCAL_TENANT } from '../../src/core/ledger/entries.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { createUpstream } from '../../src/adapters/network/undici-upstream.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import type { ProxySettings, UpstreamSettings } from '../../src/core/settings/settings.ts';
import type { Ledger } from '../../src/ports/ledger.ts';
import type { Memory } from '../../src/ports/memory.ts';
import type { Outbox } from '../../src/ports/outbox.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import type { ConfiguredUpstream, Handler } from '../../src/proxy/dependencies.ts';
import { PROXY_SETTINGS, startServer, TOKEN } from './local-server.ts';
import { ask, type ClientAnswer } from './sockets.ts';
import {
  type ProviderOptions,
  type ScriptedProvider,
  startScriptedProvider,
} from './scripted-provider/provider.ts';
import { upstreamFor } from '../../src/proxy/upstream-choice.ts';

/** The whole proxy on real sockets, between a test and the scripted provider. */
export interface ProxyStage {
  readonly provider: ScriptedProvider;
  readonly rows: readonly RequestRow[];
  readonly memory: Memory;
  /** Milliseconds that the proxy's clock is ahead of the real one. */
  setClockAhead(ms: number): void;
  send(dialect: Dialect, body: unknown, headers?: readonly string[]): Promise<ClientAnswer>;
  /** A path that svc passes on unread. */
  sendTo(method: 'GET' | 'POST', path: string, headers: readonly string[]): Promise<ClientAnswer>;
  /** The body of the newest request as the provider got it. */
  forwarded(): string;
  /** Resolves when the memory was given what the requests so far had for it: a tool takes longer. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export interface StageOptions {
  readonly folder: string;
  readonly settings?: Partial<ProxySettings>;
  readonly provider?: ProviderOptions;
  /** Stands between the proxy and its store. */
  readonly wrap?: (memory: Memory) => Memory;
  /** Stands between the proxy and its ledger. */
  readonly wrapLedger?: (ledger: Ledger) => Ledger;
  /** The published price of a cache read of the tests' models, in dollars: input costs 3. */
  readonly cacheRead?: number;
  /** In place of the store's own. */
  readonly outbox?: () => Outbox;
}

const PATHS: Readonly<Record<Dialect, string>> = {
  anthropic_messages: '/v1/messages',
  openai_responses: '/v1/responses',
  openai_chat_completions: '/v1/chat/completions',
};

/** The models of the tests: their prices are published, so that batches go in every dialect. */
const TEST_MODELS: ReadonlySet<string> = new Set(['test-model', 'm']);

function testFacts(cacheRead: number): ModelFacts {
  const price = { input: 3, output: 15, cacheRead, cacheWrite: 3.75 };
  return { windowTokens: 1_000_000, inputTokensMax: 1_000_000, outputTokensMax: 64_000, price };
}

export async function openProxyStage({
  folder,
  settings,
  provider: options = {},
  wrap,
  wrapLedger,
  cacheRead = 0.3,
  outbox,
}: StageOptions): Promise<ProxyStage> {
  const provider = await startScriptedProvider(options);
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const memory = wrap?.(store.memory) ?? store.memory;
  // A busy machine opens a store late: only a test of a silent memory may reach its deadline.
  const proxy = { ...PROXY_SETTINGS, recallMs: 10_000, ...settings };
  const upstreams = new Map(
    DIALECTS.map((dialect) => [dialect, upstreamOf(dialect, provider.url)]),
  );
  const rows: RequestRow[] = [];
  let aheadMs = 0;
  const handler = new ProxyHandler({
    texts: TEXTS,
    accounts: accountsOf((model) =>
      TEST_MODELS.has(model) ? testFacts(cacheRead) : factsOfModel(model),
    ),
    issuer: { kind: 'local-proxy', version: '0.1.2' },
    tenant: LOCAL_TENANT,
    settings: () => proxy,
    choose: ({ request }) => ({ configured: upstreamFor({ proxy, upstreams }, request.route) }),
    memory,
    ledger: wrapLedger?.(store.ledger) ?? store.ledger,
    outbox: outbox?.() ?? store.outbox,
    factsOf: (model) => (TEST_MODELS.has(model) ? testFacts(cacheRead) : factsOfModel(model)),
    clock: { now: () => Date.now() + aheadMs, monotonic: () => performance.now() + aheadMs },
    projects: FOLDER_PROJECTS,
    blockKey: 'a secret of these tests',
    outputFolder: undefined,
    note: ({ row }) => {
      store.requestLog.add(row);
      rows.push(row);
    },
  });
  const handling = new Set<Promise<void>>();
  const handle: Handler = (request, outgoing) => {
    const handled = handler.handle(request, outgoing).finally(() => handling.delete(handled));
    handling.add(handled);
    return handled;
  };
  const server = await startServer(handle, settings);
  return {
    provider,
    rows,
    memory: store.memory,
    setClockAhead: (ms) => {
      aheadMs = ms;
    },
    send: (dialect, body, headers = []) =>
      ask(server.port, {
        path: PATHS[dialect],
        headers: [
          'authorization',
          `Bearer ${TOKEN}`,
          'content-type',
          'application/json',
          ...headers,
        ],
        body: Buffer.from(JSON.stringify(body)),
      }),
    sendTo: (method, path, headers) =>
      ask(server.port, {
        method,
        path,
        headers: ['authorization', `Bearer ${TOKEN}`, ...headers],
        ...(method === 'GET' ? {} : { body: Buffer.from('{"messages":[]}') }),
      }),
    forwarded: () => provider.records.at(-1)?.body.toString() ?? '',
    settled: async () => {
      await Promise.allSettled(handling);
      await handler.drain(30_000);
    },
    stop: async () => {
      await server.close();
      await Promise.all([...upstreams.values()].map(({ upstream }) => upstream.close()));
      await store.close();
      await provider.stop();
    },
  };
}

function upstreamOf(apiStyle: Dialect, baseUrl: string): ConfiguredUpstream {
  const settings: UpstreamSettings = {
    name: apiStyle,
    apiStyle,
    baseUrl,
    providerKey: 'test-key',
    auth: 'bearer',
    headers: {},
    query: {},
    allowPrivate: true,
  };
  return { settings, upstream: createUpstream(settings, { headersMs: 600_000 }) };
}
