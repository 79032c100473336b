import { describe, expect, test } from 'vitest';
import { runCli, tempFolder } from '../support/cli.ts';
import { callService, itemOf } from '../support/memory-service.ts';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { runServiceWith } from '../support/service-process.ts';

const missing = missingPostgres();

describe.skipIf(missing !== undefined)('a service on PostgreSQL', () => {
  const stores = postgresStores();

  test('from an empty database to a memory that outlives a kill', async () => {
    const home = tempFolder();
    const url = await stores.server().newDatabase();
    const env = { SVC_DATABASE_URL: url };
    const run = (...words: string[]) => runCli(['service', ...words], { home, env });
    const early = await run('init', '--port', '0');
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining('svc service migrate')]);
    const plan = await run('migrate', '--plan', '--json');
    expect(JSON.parse(plan.stdout)).toEqual({ missing: [1], newEpoch: false });
    expect(JSON.parse((await run('migrate', '--json')).stdout)).toMatchObject({ applied: [1] });
    expect((await run('migrate')).stderr).toContain('The tables are up to date.');
    expect((await run('init', '--port', '0')).code).toBe(0);
    const key = (await run('keys', 'create', '--name', 'test')).stdout.trim();
    const first = await runServiceWith(home, env);
    const second = run('start', '--json');
    const capture = (service: string) =>
      callService(service, '/v1/svc/memory/capture', {
        key,
        body: { space: 'a/b', if_generation: 'new', items: [itemOf('The port is 6543.')] },
      });
    expect((await capture(first.url)).json.results).toMatchObject([{ state: 'durable' }]);
    // The folder is one service's: its journal of receipts lies there.
    expect((await second).stderr).toContain('Another svc service runs on this folder.');
    await first.end('SIGKILL');
    const again = await runServiceWith(home, env);
    expect((await capture(again.url)).json.results).toMatchObject([{ state: 'duplicate' }]);
    const ready = await callService(again.url, '/readyz', { key });
    expect(ready.status).toBe(200);
    const doctor = await run('doctor', '--json');
    expect(doctor.stdout).toContain('PostgreSQL 1');
    const backup = await run('backup', 'x.db');
    expect([backup.code, backup.stderr]).toEqual([1, expect.stringContaining('pg_dump')]);
    const before = (await callService(again.url, '/v1/svc/whoami', { key })).status;
    expect(before).toBe(200);
    await run('migrate', '--new-epoch');
    const recall = { space: 'a/b', query: { text: 'which port?' }, candidates: [] };
    const answer = await callService(again.url, '/v1/svc/memory/recall', { key, body: recall });
    expect(answer.status).toBeLessThan(500);
    expect(await again.end('SIGTERM')).toBe(0);
  }, 240_000);
});

test('R29: an address that is none of PostgreSQL is refused without repeating it', async () => {
  const env = { SVC_DATABASE_URL: 'mysql://user:CANARY@host/x' };
  const { code, stderr } = await runCli(['service', 'migrate'], { home: tempFolder(), env });
  expect(code).toBe(1);
  expect(stderr).toContain('SVC_DATABASE_URL is not an address of PostgreSQL.');
  expect(stderr).not.toContain('CANARY');
}, 60_000);
