/** Many tenants, each with a key and a provider of its own: what do the others cost one of them? */
import { renumber } from '../../lib/bodies.mjs';
import { sleep } from '../../lib/clock.mjs';
import { Connection } from '../../lib/connection.mjs';
import { residentMbOf } from '../../lib/processes.mjs';
import { median } from '../../lib/statistics.mjs';

/** Callers of the console at once. */
const CALLERS = 8;
const ALONE = 400;
const SETTLE_MS = 2_000;

export const tenants = {
  title:
    'Many tenants: time to the first byte of 2 kB, of one tenant alone and of the active ones by turns',

  async measure({ bench, service, options }) {
    const count = Number(options.tenants);
    const active = Math.min(count, Number(options.active));
    const keys = await makeTenants(service, count, active);
    // Nothing that making them left in memory counts.
    service.forget();
    await bench.restart(service);
    await bench.provider.setMode({ kind: 'sse' });
    const connection = new Connection(service);
    const timeOf = (key) => timeOfOne(bench, { service, connection, key });
    await inTurn(keys.slice(0, 1), 2 * ALONE, timeOf);
    const alone = await inTurn(keys.slice(0, 1), ALONE, timeOf);
    // The first round opens a connection to each tenant's provider.
    const first = await inTurn(keys, active, timeOf);
    const many = await inTurn(keys, 2 * active, timeOf);
    const again = await inTurn(keys.slice(0, 1), ALONE, timeOf);
    connection.close();
    await sleep(SETTLE_MS);
    const mb = residentMbOf(service.process.pid);
    const one = median([...alone, ...again]);
    const result = { count, active, alone: one, first: median(first), many: median(many), mb };
    return { hosted: { ...result, ratio: median(many) / one } };
  },

  columns: ['target', 'tenants', 'active', 'one', 'first time', 'by turns', 'ratio', 'MB'],
  row: ({ count, active, alone, first, many, ratio, mb }) => [
    count,
    active,
    alone,
    first,
    many,
    ratio,
    mb,
  ],
};

/** The keys of the first `active` tenants. */
async function makeTenants(service, count, active) {
  const keys = [];
  let next = 0;
  const caller = async () => {
    const connection = new Connection(service);
    while (next < count) {
      const at = next;
      next += 1;
      const tenant = `bench-${at}`;
      const body = { tenant_id: tenant, plan: 'bench' };
      await service.ask('POST', 'tenants', { body, connection });
      await service.addProvider(tenant, 'anthropic_messages', connection);
      const key = await service.addKey(tenant, connection);
      if (at < active) keys[at] = key;
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return keys;
}

async function inTurn(keys, count, timeOf) {
  const times = [];
  for (let at = 0; at < count; at += 1) times.push(await timeOf(keys[at % keys.length]));
  return times;
}

async function timeOfOne(bench, { service, connection, key }) {
  const headers = { authorization: `Bearer ${key}` };
  const request = bench.requestFor(service, { headers });
  const { status, failure, firstByteAt, sentAt } = await connection.request(renumber(request));
  if (status !== 200) throw new Error(`a tenant was answered ${status} ${failure ?? ''}`);
  return firstByteAt - sentAt;
}
