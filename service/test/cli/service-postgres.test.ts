import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { KNOWN } from '../../src/adapters/postgres-store/migrations.ts';
import { runServiceHere, tempFolder } from '../../../test/support/cli.ts';
import { callService, itemOf } from '../support/memory-service.ts';
import { missingPostgres } from '../support/postgres.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { addressOf, postgresStores } from '../support/postgres-stores.ts';
import { runServiceWith } from '../support/service-process.ts';

const missing = missingPostgres();

describe.skipIf(missing !== undefined)('a service on PostgreSQL', () => {
  const stores = postgresStores();

  test('from an empty database to a memory that outlives a kill', async () => {
    const home = tempFolder();
    const url = await stores.server().newDatabase();
    const env = { SVC_DATABASE_URL: url };
    const run = (...words: string[]) => runServiceHere(words, { home, env });
    const early = await run('init', '--port', '0');
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining('svc-service migrate')]);
    const plan = await run('migrate', '--plan', '--json');
    const all = KNOWN.map(({ number }) => number);
    expect(JSON.parse(plan.stdout)).toEqual({ missing: all, newEpoch: false });
    expect(JSON.parse((await run('migrate', '--json')).stdout)).toMatchObject({ applied: all });
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

  test('a start that cannot listen leaves no node behind', async () => {
    const home = tempFolder();
    const env = { SVC_DATABASE_URL: await stores.server().newDatabase() };
    const run = (...words: string[]) => runServiceHere(words, { home, env });
    await run('init', '--port', '0', '--rate', '600', '--auto-migrate');
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = taken.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const failed = await run('start', '--port', port);
    taken.close();
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining(port)]);
    const started = await runServiceWith(home, env);
    expect(await started.end('SIGTERM')).toBe(0);
  }, 120_000);
});

describe.skipIf(missing !== undefined)('a service whose settings name its servers', () => {
  const stores = postgresStores();

  test('R29: the address comes from a file, and no output ever holds its password', async () => {
    const home = tempFolder();
    const { port } = stores.server();
    const { database } = addressOf(await stores.server().newDatabase());
    const file = join(home, 'database-url');
    const text = `postgres://svc:CANARY-pass@127.0.0.1:${port}/${database}\n`;
    writeFileSync(file, text, { mode: 0o600 });
    const outputs: string[] = [];
    const run = async (...words: string[]) => {
      const result = await runServiceHere(words, { home });
      outputs.push(result.stdout, result.stderr);
      return result;
    };
    const init = await run(
      'init',
      '--port',
      '0',
      '--database-from',
      `file:${file}`,
      '--auto-migrate',
    );
    expect([init.code, init.stderr]).toEqual([0, expect.stringContaining('The service is in')]);
    const key = (await run('keys', 'create', '--name', 'test')).stdout.trim();
    const service = await runServiceWith(home, {});
    expect(readFileSync(`/proc/${service.child.pid}/cmdline`, 'utf8')).not.toContain('CANARY');
    const body = { space: 'a/b', if_generation: 'new', items: [itemOf('The port is 6543.')] };
    const kept = await callService(service.url, '/v1/svc/memory/capture', { key, body });
    expect(kept.json.results).toMatchObject([{ state: 'durable' }]);
    const doctor = await run('doctor', '--json');
    const found = (subject: string) =>
      (JSON.parse(doctor.stdout) as { checks: { subject: string; found: string }[] }).checks.find(
        (check) => check.subject === subject,
      )?.found;
    expect(found('Server')).toMatch(new RegExp(`^PostgreSQL \\d+.*127.0.0.1:${port} writes$`));
    expect(found('Switch')).toBe(
      'the server reports no standby: if it is lost, you need a restore, which begins a new epoch',
    );
    expect(found('Limiter')).toBe('limits are counted in its own process');
    const status = await run('status');
    expect(status.stdout).toContain('1 record');
    expect(status.stdout).toMatch(
      new RegExp(`PostgreSQL \\d+.* on 127.0.0.1:${port}, the server reports no standby`),
    );
    expect((await run('backup', 'x.db')).stderr).toContain('pg_dump');
    expect((await run('migrate', '--plan')).stderr).toContain('up to date');
    outputs.push(service.stdout(), service.stderr());
    expect(await service.end('SIGTERM')).toBe(0);
    // The server is away: who looks is told so, within a deadline.
    const away = text.replace(`:${port}/`, `:${await freePort()}/`);
    writeFileSync(file, away, { mode: 0o600 });
    const seen = (await run('doctor')).stdout;
    expect(seen.split('The database does not answer.')).toHaveLength(2);
    expect(seen).toContain('Start the server, or promote a standby');
    expect(seen).not.toContain('svc-service doctor');
    expect((await run('start')).code).toBe(1);
    writeFileSync(file, 'mysql://u:CANARY@x/y');
    const wrong = await run('status');
    expect(wrong.stderr).toContain(
      'database.from in service.json is not an address of PostgreSQL.',
    );
    chmodSync(file, 0o644);
    expect((await run('status')).stderr).toContain('is not a private file that you own');
    // In the settings themselves it works too, and stays there.
    const settings = join(home, '.local/share/svc/service/service.json');
    const own = JSON.parse(readFileSync(settings, 'utf8')) as object;
    writeFileSync(settings, JSON.stringify({ ...own, database: { url: text.trim() } }));
    expect((await run('status')).stdout).toContain('1 record');
    const both = { url: text.trim(), from: 'env:CANARY' };
    writeFileSync(settings, JSON.stringify({ ...own, database: both }));
    expect((await run('status')).stderr).toContain(
      'database must have either url or from, not both',
    );
    expect(outputs.join('\n')).not.toContain('CANARY');
  }, 240_000);
});

test('R29: an address that is none of PostgreSQL is refused without repeating it', async () => {
  const env = { SVC_DATABASE_URL: 'mysql://user:CANARY@host/x' };
  const { code, stderr } = await runServiceHere(['migrate'], { home: tempFolder(), env });
  expect(code).toBe(1);
  expect(stderr).toContain('SVC_DATABASE_URL is not an address of PostgreSQL.');
  expect(stderr).not.toContain('CANARY');
}, 60_000);
