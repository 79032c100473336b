import { request as httpsRequest } from 'node:https';
import { openHostedMemory } from '../../../src/adapters/memory-client/open-hosted-memory.ts';
import type { FuzzedPlace, FuzzedProxy } from '../../../test/support/conversation-fuzz/place.ts';
import { post } from '../../../test/support/conversation-fuzz/running.ts';
import { DIALECTS } from '../../../test/support/dialect-wire.ts';
import { FACTS, recordOf } from '../../../test/support/records.ts';
import { providerBody } from './model-process.ts';
import { startTwoNodes, type TwoNodes } from './two-nodes.ts';

/** The proxy waits 2 s for the ledger of a bound conversation (src/proxy/bonds.ts). A timer may fire a little early. */
const LOOK_MS = 1_990;

/**
 * Starts two nodes of a service with model traffic. Each call of the result opens a place for one history, which is a
 * tenant of its own. A node that was stopped or killed starts again on another port.
 */
export async function hostedPlaces(): Promise<() => Promise<FuzzedPlace>> {
  const two = await startTwoNodes({ dialects: [] });
  // Limits that no history reaches.
  const limits = { requests_per_minute: 1_000_000, memory_calls_per_minute: 1_000_000 };
  await two.console('POST plans', { name: 'large', limits });
  let tenants = 0;
  return () => {
    tenants += 1;
    return openPlace(two, `tenant-${tenants}`);
  };
}

async function openPlace(two: TwoNodes, tenant: string): Promise<FuzzedPlace> {
  const { provider, baseUrl } = two.place;
  // A history that failed may have left it stopped, and it answers the console.
  await nodeOf(two, 0, '').start();
  await two.console('POST tenants', { tenant_id: tenant, plan: 'large' });
  for (const dialect of DIALECTS) {
    // oxlint-disable-next-line no-await-in-loop -- One call after the other.
    await two.console('POST providers', providerBody(dialect, baseUrl), { tenant });
  }
  // As in the histories of the local proxy: a low budget and much room for blocks.
  const settings = { input_budget: 1_500, recalled_tokens_max: 8_192 };
  await two.console('PATCH settings', settings, { tenant, ifVersion: 0 });
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
  let imports = 0;
  return {
    provider,
    givesUpMs: LOOK_MS,
    proxies: [nodeOf(two, 0, key), nodeOf(two, 1, key)],
    memory: service.memory,
    // No other process locks a whole PostgreSQL. node-outages.test.ts covers one that does not answer.
    lock: () => Promise.resolve(),
    unlock: () => undefined,
    // The database has a disk and a clock of its own.
    fill: () => undefined,
    free: () => undefined,
    setClock: () => undefined,
    import: (space) => {
      imports += 1;
      const records = FACTS.map((fact, at) =>
        recordOf(`${fact} Import ${imports}.${at}`, { space }),
      );
      service.memory.capture(records, AbortSignal.timeout(30_000)).catch(() => undefined);
    },
    askProvider: (path, body, headers) => postToProvider(`${provider.url}${path}`, body, headers),
    close: () => service.close(),
  };
}

/** One of the two nodes. Both run already when the first history begins. */
function nodeOf(two: TwoNodes, at: number, key: string): FuzzedProxy {
  return {
    start: async () => {
      const child = two.nodes[at]?.child;
      if (child?.exitCode !== null || child.signalCode !== null) await two.start(at);
    },
    stop: async (signal = 'SIGTERM') => void (await two.nodes[at]?.end(signal)),
    send: (path, body, headers, until) => {
      const all = {
        'content-type': 'application/json',
        authorization: `Bearer ${key}`,
        ...headers,
      };
      return post(`${two.nodes[at]?.url}${path}`, body, all, until);
    },
  };
}

/** Posts to the provider without a check of its certificate, which only the nodes trust. */
function postToProvider(...[url, body, headers]: Parameters<typeof post>): Promise<Response> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(60_000);
    const options = { method: 'POST', headers, rejectUnauthorized: false, signal };
    const outgoing = httpsRequest(url, options, (incoming) => {
      incoming.resume();
      incoming.on('error', reject);
      incoming.on('end', () => resolve(new Response(null, { status: incoming.statusCode ?? 500 })));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
