import { request as httpsRequest } from 'node:https';
import { onTestFinished } from 'vitest';
import { openHostedMemory } from '../../../src/adapters/memory-client/open-hosted-memory.ts';
import type { FuzzedPlace, FuzzedProxy } from '../../../test/support/conversation-fuzz/place.ts';
import { forgetElsewhere } from '../../../test/support/conversation-fuzz/running.ts';
import { DIALECTS } from '../../../test/support/dialect-wire.ts';
import { FACTS, recordOf } from '../../../test/support/records.ts';
import { providerBody } from './model-process.ts';
import { startTwoNodes, type TwoNodes } from './two-nodes.ts';

type Headers = Readonly<Record<string, string>>;

/**
 * Two nodes of a service with model traffic, as the place of histories: each history is a tenant of its own. A node
 * that was stopped or killed starts again at another port.
 */
export async function hostedPlaces(): Promise<() => Promise<FuzzedPlace>> {
  const two = await startTwoNodes({ dialects: [] });
  const limits = { requests_per_minute: 1_000_000, memory_calls_per_minute: 1_000_000 };
  await two.console('POST plans', { name: 'large', limits });
  let tenants = 0;
  return () => {
    tenants += 1;
    return openPlace(two, `tenant-${tenants}`);
  };
}

/** So long the proxy waits for the ledger of a bound conversation, less what a timer may be early. */
const LOOK_MS = 1_990;

async function openPlace(two: TwoNodes, tenant: string): Promise<FuzzedPlace> {
  const { provider, baseUrl } = two.place;
  await two.console('POST tenants', { tenant_id: tenant, plan: 'large' });
  for (const dialect of DIALECTS) {
    // oxlint-disable-next-line no-await-in-loop -- One call after the other.
    await two.console('POST providers', providerBody(dialect, baseUrl), { tenant });
  }
  const scopes = ['read', 'write', 'receipt:read'];
  const { json } = await two.console('POST keys', { name: 'fuzz', scopes }, { tenant });
  const key = String(json.secret);
  const service = openHostedMemory({
    settings: {
      kind: 'hosted',
      baseUrl: `http://127.0.0.1:${two.balancer.port}`,
      serviceKey: key,
      allowPrivate: true,
    },
    recallMs: 10_000,
    report: () => undefined,
  });
  onTestFinished(() => service.close());
  const soon = (): AbortSignal => AbortSignal.timeout(30_000);
  let imports = 0;
  return {
    provider,
    givesUpMs: LOOK_MS,
    proxies: [new Node(two, 0, key), new Node(two, 1, key)],
    capture: async (records) => {
      const stored = await service.memory.capture(records, soon());
      if (stored.some((state) => state !== 'stored' && state !== 'duplicate')) {
        throw new Error(`the service stored ${JSON.stringify(stored)}`);
      }
    },
    retrieve: async (asked) => (await service.memory.retrieve(asked, soon()))?.text,
    forget: () => void forgetElsewhere(service.memory).catch(() => undefined),
    // Nobody can hold the database of a service from outside.
    lock: () => Promise.resolve(),
    unlock: () => undefined,
    import: (space) => {
      imports += 1;
      const records = FACTS.map((fact, at) =>
        recordOf(`${fact} Import ${imports}.${at}`, { space }),
      );
      service.memory.capture(records, soon()).catch(() => undefined);
    },
    askProvider: (path, body, headers) => post(`${provider.url}${path}`, body, headers),
    close: () => service.close(),
  };
}

class Node implements FuzzedProxy {
  readonly #two: TwoNodes;
  readonly #at: number;
  readonly #key: string;

  constructor(two: TwoNodes, at: number, key: string) {
    this.#two = two;
    this.#at = at;
    this.#key = key;
  }

  async start(): Promise<void> {
    const node = this.#two.nodes[this.#at];
    const isRunning = node?.child.exitCode === null && node.child.signalCode === null;
    if (!isRunning) await this.#two.start(this.#at);
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    await this.#two.nodes[this.#at]?.end(signal);
  }

  async send(path: string, body: Buffer, headers: Headers): Promise<Response> {
    const answer = await fetch(`${this.#two.nodes[this.#at]?.url}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${this.#key}`,
        ...headers,
      },
      body,
      signal: AbortSignal.timeout(60_000),
    });
    await answer.arrayBuffer();
    return answer;
  }
}

/** Asks the provider, whose certificate nobody here knows. */
function post(url: string, body: Buffer, headers: Headers): Promise<Response> {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, rejectUnauthorized: false, timeout: 60_000 };
    const outgoing = httpsRequest(url, options, (incoming) => {
      incoming.resume();
      incoming.on('error', reject);
      incoming.on('end', () => resolve(new Response(null, { status: incoming.statusCode ?? 500 })));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
