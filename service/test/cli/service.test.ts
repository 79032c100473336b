import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { makeCertificate } from '../../../test/support/certificate.ts';
import { runServiceCli, runServiceHere, tempFolder } from '../../../test/support/cli.ts';
import { serviceFlags } from '../../src/cli/commands/service-init.ts';
import { callService, itemOf, keyIdOf } from '../support/memory-service.ts';
import {
  initService,
  makeServiceKey,
  runService,
  tempHomeWithService,
} from '../support/service-process.ts';

const FOLDER = '.local/share/svc/service';

test(
  'from nothing to a key that works, and to a revoked one that does not',
  { timeout: 60_000 },
  async () => {
    const home = await tempHomeWithService();
    const key = await makeServiceKey(home);
    const service = await runService(home);
    const ask = () => callService(service.url, '/v1/svc/whoami', { key });
    expect((await ask()).status).toBe(200);
    const status = await runServiceHere(['status', '--json'], { home });
    expect([status.code, JSON.parse(status.stdout)]).toMatchObject([
      0,
      { running: { port: service.port, isReady: true }, store: { keys: 1 } },
    ]);
    const revoked = await runServiceHere(['keys', 'revoke', keyIdOf(key)], { home });
    expect([revoked.code, revoked.stderr]).toEqual([0, expect.stringContaining('revoked')]);
    expect((await ask()).json.error.code).toBe('AUTH_REVOKED');
    expect(await service.end('SIGTERM')).toBe(0);
    expect(existsSync(join(home, FOLDER, 'running.json'))).toBe(false);
    const after = await runServiceHere(['status'], { home });
    expect([after.code, after.stderr]).toEqual([1, expect.stringContaining('not running')]);
  },
);

test(
  'the service of a folder is stopped by a command, and no other process is',
  { timeout: 60_000 },
  async () => {
    const home = await tempHomeWithService();
    const stop = () => runServiceCli(['stop'], { home });
    const idle = await stop();
    expect([idle.code, idle.stderr]).toEqual([0, expect.stringContaining('No service runs on')]);
    // A killed service leaves its hint behind, and its number may be another process by now.
    const hint = { pid: process.pid, host: '127.0.0.1', port: 1, startedAt: Date.now() };
    const file = join(home, FOLDER, 'running.json');
    writeFileSync(file, JSON.stringify(hint), { mode: 0o600 });
    expect((await stop()).code).toBe(0);
    const service = await runService(home);
    const whole = readFileSync(file, 'utf8');
    writeFileSync(file, JSON.stringify(hint));
    const unknown = await stop();
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      expect.stringContaining('no service answers there yet'),
    ]);
    writeFileSync(file, whole);
    const stopped = await stop();
    expect([stopped.code, stopped.stderr]).toEqual([0, expect.stringContaining('Stopped')]);
    expect(await service.end('SIGTERM')).toBe(0);
    expect(existsSync(file)).toBe(false);
  },
);

test(
  'R29: a key is shown once, and is in no file, list, log or error',
  { timeout: 60_000 },
  async () => {
    const home = await tempHomeWithService();
    const key = await makeServiceKey(
      home,
      '--scopes',
      'read,write',
      '--space',
      'a/*',
      '--expires',
      '90d',
    );
    const secret = key.split('_')[3] ?? '';
    const service = await runService(home, '--log', 'json');
    const text = 'CANARY-5d1f is what was said';
    const body = { space: 'a/b', if_generation: 'new', items: [itemOf(text)] };
    expect((await callService(service.url, '/v1/svc/memory/capture', { key, body })).status).toBe(
      200,
    );
    const list = await runServiceHere(['keys', 'list', '--json'], { home });
    expect(JSON.parse(list.stdout)).toMatchObject([
      { key_id: keyIdOf(key), scopes: ['read', 'write'], spaces: ['a/*'], status: 'active' },
    ]);
    expect(list.stdout).not.toContain('hash');
    const wrong = await runServiceHere(['keys', 'revoke', key], { home });
    expect(wrong.code).toBe(2);
    await service.end('SIGTERM');
    const files = readdirSync(join(home, FOLDER)).map((name) =>
      readFileSync(join(home, FOLDER, name), 'latin1'),
    );
    const said = [...files, list.stdout, wrong.stderr, service.stdout(), service.stderr()].join(
      '\n',
    );
    expect(said).not.toContain(secret);
    expect([service.stdout(), service.stderr()].join()).not.toContain('CANARY');
    const rows = service
      .stdout()
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => JSON.parse(line) as object);
    expect(rows).toMatchObject([{ operation: 'capture', status: 200, keyId: keyIdOf(key) }]);
  },
);

test(
  'a start says what the service holds, which limit there is, and what is missing',
  { timeout: 60_000 },
  async () => {
    const home = await tempHomeWithService('--rate', '600');
    const empty = await runService(home);
    await expect.poll(() => empty.stderr()).toContain('Next: svc-service keys create');
    expect(empty.stderr()).toMatch(
      /The service listens on http:\S+: 0 spaces, 0 records, 0 keys\./,
    );
    expect(empty.stderr()).toContain('Each key may make 600 calls a minute.');
    await empty.end('SIGTERM');
    await makeServiceKey(home);
    const service = await runService(home);
    await expect.poll(() => service.stderr()).toContain('1 key.');
    expect(service.stderr()).not.toContain('Next:');
  },
);

test(
  'a second service on the same folder is refused, and the first goes on',
  { timeout: 60_000 },
  async () => {
    const home = await tempHomeWithService();
    const key = await makeServiceKey(home);
    const service = await runService(home);
    await expect(runService(home)).rejects.toThrow('Another svc service runs on this folder.');
    expect((await callService(service.url, '/v1/svc/whoami', { key })).status).toBe(200);
  },
);

test(
  'it serves TLS, reads a renewed certificate on SIGHUP, and keeps the old one when the new is none',
  { timeout: 60_000 },
  async () => {
    const folder = tempFolder();
    const [first, second] = [makeCertificate('localhost'), makeCertificate('localhost')];
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    const put = (one: { cert: string; key: string }): void => {
      writeFileSync(cert, one.cert);
      writeFileSync(key, one.key, { mode: 0o600 });
    };
    put(first);
    const home = await tempHomeWithService(
      '--host',
      '0.0.0.0',
      '--tls-cert',
      cert,
      '--tls-key',
      key,
    );
    const service = await runService(home);
    const url = `https://127.0.0.1:${service.port}`;
    expect((await callService(url, '/livez', { ca: first.cert })).status).toBe(200);
    put(second);
    service.child.kill('SIGHUP');
    await expect.poll(() => service.stderr()).toContain('in use');
    expect((await callService(url, '/livez', { ca: second.cert })).status).toBe(200);
    writeFileSync(cert, 'not a certificate');
    service.child.kill('SIGHUP');
    await expect.poll(() => service.stderr()).toContain('the old one stays');
    expect((await callService(url, '/livez', { ca: second.cert })).status).toBe(200);
    put(first);
    chmodSync(key, 0o644);
    const doctor = await runServiceHere(['doctor', '--json'], { home });
    const { checks } = JSON.parse(doctor.stdout) as {
      checks: { subject: string; level: string; fix?: string }[];
    };
    expect(doctor.code).toBe(1);
    expect(checks.find(({ subject }) => subject === 'Modes')).toMatchObject({
      level: 'problem',
      fix: expect.stringContaining('chmod 600'),
    });
    // The certificate of a test is good for two days.
    expect(checks.find(({ subject }) => subject === 'Certificate')?.level).toBe('warning');
  },
);

test('the certificate of a flag is an absolute path, because stop and status run in other folders', () => {
  const { tls } = serviceFlags({ tlsCert: 'cert.pem', tlsKey: 'key.pem' });
  expect(tls).toEqual({ cert: resolve('cert.pem'), key: resolve('key.pem') });
});

test(
  'plain HTTP beyond loopback is refused before anything is made',
  { timeout: 60_000 },
  async () => {
    const home = tempFolder();
    const refused = await runServiceHere(['init', '--host', '0.0.0.0'], { home });
    expect([refused.code, existsSync(join(home, FOLDER))]).toEqual([2, false]);
    expect((await runServiceHere(['init', '--tls-cert', 'x.pem'], { home })).code).toBe(2);
    await initService(home);
    const start = await runServiceCli(['start', '--host', '0.0.0.0'], { home });
    expect([start.code, start.stderr]).toEqual([1, expect.stringContaining('loopback')]);
    expect((await runServiceHere(['init'], { home })).stderr).toContain('already');
  },
);

test(
  'a backup and a restore, by command, bring the records and the keys back',
  { timeout: 60_000 },
  async () => {
    const home = await tempHomeWithService();
    const key = await makeServiceKey(home);
    const body = { space: 'a', if_generation: 'new', items: [itemOf('kept')] };
    let service = await runService(home);
    const before = await callService(service.url, '/v1/svc/memory/capture', { key, body });
    const file = join(home, 'backup.db');
    expect((await runServiceHere(['backup', file], { home })).code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const running = await runServiceHere(['restore', file, '--yes'], { home });
    expect([running.code, running.stderr]).toEqual([1, expect.stringContaining('Stop it first')]);
    await service.end('SIGTERM');
    expect((await runServiceHere(['restore', file], { home })).code).toBe(2);
    expect((await runServiceHere(['restore', file, '--yes'], { home })).code).toBe(0);
    service = await runService(home);
    const { json } = await callService(service.url, '/v1/svc/whoami?space=a', { key });
    expect(json.space_state.records).toBe(1);
    expect(json.space_state.generation).not.toBe(before.json.generation);
  },
);

test(
  'doctor finds nothing wrong with a new service, and names what is broken in another',
  { timeout: 60_000 },
  async () => {
    const home = await tempHomeWithService();
    expect((await runServiceHere(['doctor'], { home })).code).toBe(0);
    const folder = join(home, FOLDER);
    chmodSync(join(folder, 'pepper'), 0o640);
    const loose = await runServiceHere(['doctor'], { home });
    expect([loose.code, loose.stdout]).toEqual([1, expect.stringContaining('pepper')]);
    writeFileSync(join(folder, 'service.json'), '{"version":1,"host":"0.0.0.0","port":1}');
    const wrong = await runServiceHere(['doctor'], { home });
    expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringContaining('loopback')]);
    const nowhere = { home: tempFolder() };
    const none = await runServiceHere(['doctor'], nowhere);
    expect([none.code, none.stdout]).toEqual([1, expect.stringContaining('svc-service init')]);
    for (const command of [['keys', 'list'], ['receipts', 'recover'], ['audit']]) {
      // oxlint-disable-next-line no-await-in-loop
      const { code, stderr } = await runServiceHere(command, nowhere);
      expect([code, stderr]).toEqual([1, expect.stringContaining('There is no service in')]);
    }
  },
);

test(
  'without its pepper a service names a command that works, and old keys stay invalid',
  { timeout: 60_000 },
  async () => {
    const home = await tempHomeWithService();
    const old = await makeServiceKey(home);
    const pepper = join(home, FOLDER, 'pepper');
    rmSync(pepper);
    const lost = await runServiceHere(['keys', 'create', '--name', 'test'], { home });
    expect([lost.code, lost.stderr]).toEqual([1, expect.stringContaining('is missing')]);
    expect((await runServiceHere(['init'], { home })).code).toBe(1);
    expect(lost.stderr).not.toContain('service init');
    const command = /void: (.*); then svc-service keys create/.exec(lost.stderr)?.[1] ?? '';
    execFileSync('sh', ['-c', command]);
    expect(statSync(pepper).mode & 0o777).toBe(0o600);
    const key = await makeServiceKey(home);
    const service = await runService(home);
    const statusOf = async (one: string) =>
      (await callService(service.url, '/v1/svc/whoami', { key: one })).status;
    expect([await statusOf(key), await statusOf(old)]).toEqual([200, 401]);
  },
);

test(
  'a word that is neither on nor off switches no setting, and a day that no month has purges nothing',
  { timeout: 60_000 },
  async () => {
    const home = await tempHomeWithService();
    for (const command of [
      ['settings', 'set', '--elision', 'maybe'],
      ['purge', '--space', 'a', '--before', '2026-02-30', '--yes'],
    ]) {
      // oxlint-disable-next-line no-await-in-loop
      const { code, stderr } = await runServiceHere(command, { home });
      expect([code, stderr]).toEqual([2, expect.stringContaining('expected')]);
    }
    const { stdout } = await runServiceHere(['settings', 'show', '--json'], { home });
    expect(JSON.parse(stdout)).toMatchObject({ elision_enabled: true, version: 0 });
    expect((await runServiceHere(['purges', '--json'], { home })).stdout).toBe('[]\n');
  },
);

test.each([
  [['--scopes', 'read,admin'], '--scopes'],
  [['--expires', 'yesterday'], '--expires'],
  [['--expires', '2099-02-30'], '--expires'],
  [['--space', 'A b'], '--space'],
])('a key with %j is not made', { timeout: 60_000 }, async (flags, told) => {
  const home = await tempHomeWithService();
  const { code, stdout, stderr } = await runServiceHere(['keys', 'create', ...flags], { home });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(told);
});

test(
  'tenants, plans, admins and keys are managed from the folder and over HTTP alike',
  { timeout: 120_000 },
  async () => {
    const home = await tempHomeWithService();
    const run = async (args: readonly string[], env: Record<string, string> = {}) => {
      const { code, stdout, stderr } = await runServiceHere(args, { home, env });
      return { code, stdout: stdout.trim(), stderr };
    };
    expect((await run(['plans', 'create', 'small', '--limit', 'keys=1'])).code).toBe(0);
    expect((await run(['tenants', 'create', 'acme', '--plan', 'small'])).code).toBe(0);
    expect((await run(['plans', 'list'])).stdout).toContain('small  keys=1');
    expect((await run(['tenants', 'list'])).stdout).toMatch(/^acme +acme +active +small$/m);
    const token = (await run(['admins', 'create', '--role', 'admin', '--tenant', 'acme'])).stdout;
    const service = await runService(home);
    const far = ['--url', service.url];
    const withToken = { SVC_ADMIN_TOKEN: token };
    const key = (await run(['keys', 'create', '--name', 'ci', ...far], withToken)).stdout;
    const ask = async () => (await callService(service.url, '/v1/svc/whoami', { key })).json;
    expect(await ask()).toMatchObject({ tenant_id: 'acme', key: { name: 'ci' } });
    const over = await run(['keys', 'create', ...far], withToken);
    expect([over.code, over.stderr]).toEqual([1, expect.stringContaining('PLAN_LIMIT_REACHED')]);
    const id = keyIdOf(key);
    const rotated = await run(['keys', 'rotate', id, '--grace', '0', '--tenant', 'acme']);
    expect(rotated.stdout).toMatch(new RegExp(`^svc_live_${id}_`));
    expect((await ask()).error.code).toBe('AUTH_STALE');
    const listed = JSON.parse((await run(['keys', 'list', '--json', ...far], withToken)).stdout);
    expect(listed).toMatchObject([{ key_id: id, status: 'active' }]);
    const foreign = await run(['tenants', 'list', ...far], withToken);
    expect([foreign.code, foreign.stderr]).toEqual([1, expect.stringContaining('SCOPE_DENIED')]);
    const audit = (await run(['audit', '--tenant', 'acme'])).stdout;
    expect(audit).toMatch(/key\.rotated +key \w{12} +by cli cli$/m);
    expect(audit).toMatch(new RegExp(`key\\.created +key ${id} +by admin ${keyIdOf(token)}$`, 'm'));
    expect((await run(['tenants', 'suspend', 'acme'])).code).toBe(0);
    const again = await callService(service.url, '/v1/svc/whoami', { key: rotated.stdout });
    expect(again.json.error.code).toBe('TENANT_SUSPENDED');
    expect((await run(['admins', 'revoke', keyIdOf(token)])).code).toBe(0);
    const gone = await run(['keys', 'list', ...far], withToken);
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining('AUTH_REVOKED')]);
    expect([audit, over.stderr, gone.stderr].join()).not.toContain(token.split('_')[3]);
  },
);

test('a token goes to no plain address but this machine, and is never on a command line', async () => {
  const home = await tempHomeWithService();
  const run = (args: string[], env: Record<string, string> = {}) =>
    runServiceHere(['keys', ...args], { home, env });
  const plain = await run(['list', '--url', 'http://svc.example.com'], { SVC_ADMIN_TOKEN: 'x' });
  expect([plain.code, plain.stderr]).toEqual([
    2,
    expect.stringContaining('svc cannot send a token'),
  ]);
  const none = await run(['list', '--url', 'https://localhost:1']);
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('SVC_ADMIN_TOKEN')]);
  const away = await run(['list', '--url', 'https://localhost:1'], { SVC_ADMIN_TOKEN: 'CANARY-9' });
  expect([away.code, away.stderr]).toEqual([1, expect.stringContaining('did not answer')]);
  expect(away.stderr).not.toContain('CANARY-9');
  for (const wrong of [
    ['rotate', 'x'],
    ['rotate', 'abcdefghijkl', '--grace', '8d'],
  ]) {
    // oxlint-disable-next-line no-await-in-loop
    expect((await run(wrong)).code).toBe(2);
  }
});

test('init makes the token of an operator, which manages the service over HTTP', async () => {
  const home = tempFolder();
  const made = await runServiceHere(['init', '--port', '0', '--json'], { home });
  const { operatorToken } = JSON.parse(made.stdout);
  const service = await runService(home);
  const session = await callService(service.url, '/v1/svc/console/session', { key: operatorToken });
  expect(session.json).toMatchObject({ actor: { role: 'operator', tenant_id: null } });
});
