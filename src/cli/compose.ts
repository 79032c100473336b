import { createHash, randomUUID } from 'node:crypto';
import { createBodyDecoder } from '../adapters/body-decoder.ts';
import { openEmbeddedStore } from '../adapters/store/embedded-store.ts';
import { createUpstream } from '../adapters/undici-upstream.ts';
import type { Dialect } from '../core/dialect.ts';
import type { Settings, UpstreamSettings } from '../core/settings.ts';
import { VERSION } from '../core/version.ts';
import { createLocalServer } from '../local/server.ts';
import type { Clock } from '../ports/clock.ts';
import type { SafeLine } from '../ports/report.ts';
import type { RequestRow } from '../ports/request-log.ts';
import { createHandler } from '../proxy/handle.ts';
import type { ConfiguredUpstream, LiveSettings } from '../proxy/parts.ts';
import { CliError } from './cli-error.ts';
import type { Terminal } from './terminal.ts';

/** The composition root: the only place where adapters meet ports. */

export interface StartProxyOptions {
  readonly settings: Settings;
  readonly dataFolder: string;
  readonly terminal: Terminal;
  /** Leave old tool output out where the memory holds it; see ProxyParts. */
  readonly shortens?: boolean;
  /** Called with each finished request. */
  readonly onRow?: (row: RequestRow) => void;
}

export interface RunningProxy {
  readonly host: string;
  /** The port that the system gave, where the settings say 0. */
  readonly port: number;
  /** Takes no more requests, lets running answers finish, closes everything. */
  stop(): Promise<void>;
  /**
   * Takes over settings of a changed file from the next request on: the local token at once, host
   * and port never.
   */
  apply(settings: Settings): void;
}

/** Throws the server's own error (EADDRINUSE, EACCES) when the address cannot be had. */
export async function startProxy(options: StartProxyOptions): Promise<RunningProxy> {
  const { settings, terminal } = options;
  if (settings.memory.kind !== 'embedded') {
    throw new CliError(
      'A hosted memory is not supported by this version.',
      'Set "memory": { "kind": "embedded" } in the configuration.',
    );
  }
  const runtime = new Runtime(settings);
  const decoder = createBodyDecoder();
  const report = ({ code, fields }: SafeLine): void => terminal.warn(lineOf(code, fields));
  // The store opens in its worker while the listener starts: neither waits for the other.
  const store = openEmbeddedStore({
    folder: options.dataFolder,
    report: (line) => terminal.warn(line),
  });
  const handler = createHandler({
    version: VERSION,
    live: () => runtime.live,
    memory: store.memory,
    ledger: store.ledger,
    outbox: store.outbox,
    requestLog: store.requestLog,
    clock: systemClock,
    shortens: options.shortens === true,
    onRow: options.onRow ?? (() => {}),
  });
  const server = createLocalServer({
    settings: settings.proxy,
    tokenDigests: () => runtime.tokenDigests,
    decode: decoder.decode,
    handler,
    clock: systemClock,
    newId: newRequestId,
    report,
    version: VERSION,
  });
  const close = async (): Promise<void> => {
    await store.close();
    await Promise.all([decoder.close(), runtime.close()]);
  };
  const address = await server.listen().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  runtime.warm();
  // Requests go on without a memory, so nobody would notice.
  store.health().catch(() => {
    terminal.warn('The memory cannot be used: requests go on without it. Look with: svc doctor');
  });
  return {
    ...address,
    apply: (next) => runtime.apply(next),
    stop: async () => {
      await server.stop(settings.proxy.drainMs);
      await close();
    },
  };
}

/** The settings in force and what is built from them; replaced whole when the file changes. */
class Runtime {
  #live: LiveSettings;
  #tokenDigests: readonly Buffer[];

  constructor(settings: Settings) {
    this.#live = { proxy: settings.proxy, upstreams: openUpstreams(settings, new Map()) };
    this.#tokenDigests = [digestOf(settings.localToken)];
  }

  get live(): LiveSettings {
    return this.#live;
  }

  get tokenDigests(): readonly Buffer[] {
    return this.#tokenDigests;
  }

  apply(settings: Settings): void {
    const before = this.#live.upstreams;
    const upstreams = openUpstreams(settings, before);
    this.#live = { proxy: settings.proxy, upstreams };
    this.#tokenDigests = [digestOf(settings.localToken)];
    const kept = new Set([...upstreams.values()].map(({ upstream }) => upstream));
    for (const { upstream } of before.values()) {
      // Running answers finish on the old connections.
      if (!kept.has(upstream)) void upstream.close();
    }
  }

  warm(): void {
    for (const { upstream } of this.#live.upstreams.values()) upstream.warm();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#live.upstreams.values()].map(({ upstream }) => upstream.close()));
  }
}

/** An upstream that did not change keeps its connections. */
function openUpstreams(
  { upstreams, proxy }: Settings,
  before: ReadonlyMap<Dialect, ConfiguredUpstream>,
): ReadonlyMap<Dialect, ConfiguredUpstream> {
  const headersMs = proxy.upstreamHeadersMs;
  return new Map(
    upstreams.map((settings) => {
      const old = before.get(settings.apiStyle);
      if (old !== undefined && isSame(old.settings, settings)) return [settings.apiStyle, old];
      const upstream = createUpstream(settings, { headersMs });
      return [settings.apiStyle, { settings, upstream }];
    }),
  );
}

function isSame(one: UpstreamSettings, other: UpstreamSettings): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

function lineOf(code: string, fields: SafeLine['fields']): string {
  const pairs = Object.entries(fields ?? {}).map(([name, value]) => `${name}=${String(value)}`);
  return [code, ...pairs].join(' ');
}

// 92 random bits. Node keeps random bytes for UUIDs in stock; asking for single ones costs 20 us.
function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
