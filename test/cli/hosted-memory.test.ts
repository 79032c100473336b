import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runHere } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { promptOf } from '../support/dialect-wire.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';
import {
  type KeyOptions,
  keyIdOf,
  startMemoryService,
} from '../../service/test/support/memory-service.ts';
import { revokeKeyOf } from '../../service/test/support/service-control.ts';
import { type ServerProcess, startProxyProcess } from '../support/proxy-process.ts';
import { type RecordingProvider, startRecordingProvider } from '../support/story.ts';

// The real program on two homes, and a real service between them.

const FACT = 'The staging database of the walrus shop listens on port 6431.';
const QUESTION = 'On which port does the staging database of the walrus shop listen?';

async function openService() {
  const service = await startMemoryService();
  return {
    service,
    home: async (options: KeyOptions = {}) => homeFor(service.url, await service.makeKey(options)),
  };
}

function homeFor(baseUrl: string, serviceKey: string, provider?: RecordingProvider): string {
  const upstreams = [
    {
      name: 'anthropic',
      apiStyle: 'anthropic_messages',
      baseUrl: provider?.url ?? 'https://api.anthropic.com',
      providerKey: PROVIDER_KEY,
      allowPrivate: provider !== undefined,
    },
  ];
  const proxy = { port: 8765, recallMs: 10_000 };
  return homeWith({
    ...validConfig(),
    proxy,
    upstreams,
    memory: { kind: 'hosted', baseUrl, serviceKey },
  });
}

let asked = 0;

/** Another prompt each time: what was decided for one is replayed, an empty recall too. */
function freshQuestion(): string {
  asked += 1;
  return `${QUESTION} (${asked})`;
}

async function ask({ url }: ServerProcess, text: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': LOCAL_TOKEN, ...headers },
    body: JSON.stringify(promptOf('anthropic_messages', text)),
  });
  await response.text();
  return {
    status: response.status,
    mode: response.headers.get('x-svc-memory-mode'),
    state: response.headers.get('x-svc-memory-state'),
  };
}

// spec: 1.6-hosted-memory, 2.4-memory-base
test('what one home said is recalled in the other; what the key may not, nobody does', async () => {
  const provider = await startRecordingProvider();
  const service = await startMemoryService();
  const [full, reader] = [await service.makeKey(), await service.makeKey({ scopes: ['read'] })];
  const one = await startProxyProcess(homeFor(service.url, full, provider));
  const other = await startProxyProcess(homeFor(service.url, reader, provider));
  expect(await ask(one, FACT)).toEqual({ status: 200, mode: 'read-write', state: 'empty' });
  await vi.waitFor(async () => expect((await ask(other, freshQuestion())).state).toBe('recalled'), {
    timeout: 40_000,
    interval: 200,
  });
  expect(provider.seen.at(-1)?.body.toString()).toContain(FACT);
  // A key that only reads: the mode says so, and a header cannot raise it.
  const raised = await ask(other, 'The vault code is tangerine sunrise.', {
    'x-svc-memory-mode': 'read-write',
  });
  expect(raised.mode).toBe('read');
  const tangerine = await ask(one, 'What is the vault code, tangerine or not?');
  expect(tangerine.state).toBe('empty');
  // Revoked: at once, and the proxy goes on without memory.
  await revokeKeyOf(service.store.of('default'), keyIdOf(full), Date.now());
  await vi.waitFor(
    async () => {
      const answer = await ask(one, QUESTION);
      expect(answer).toEqual({ status: 200, mode: 'read-write', state: 'degraded_denied' });
    },
    { timeout: 40_000, interval: 200 },
  );
  expect(one.stderr()).toContain('The memory service refuses the service key');
  expect((await ask(other, QUESTION)).state).toBe('recalled');
}, 120_000);

test('svc memory works over a service as it does over the store', async () => {
  const { home: homeOf } = await openService();
  const [home, second] = [await homeOf(), await homeOf()];
  const svc = (words: string[], where = home) => runHere(['memory', ...words], { home: where });
  const added = await svc(['add', FACT, '--space', 'project/walrus-1']);
  expect([added.code, added.stderr]).toEqual([0, 'Stored in project/walrus-1.\n']);
  const ref = added.stdout.trim();
  expect((await svc(['list'], second)).stdout).toContain(ref);
  expect((await svc(['search', 'walrus', 'port'], second)).stdout).toContain('6431');
  expect((await svc(['get', ref], second)).stdout.trim()).toBe(FACT);
  expect((await svc(['move', ref, '--to', 'global'], second)).code).toBe(0);
  const [listed] = JSON.parse((await svc(['list', '--json'])).stdout) as Record<string, unknown>[];
  expect(listed).toMatchObject({ space: 'global', text: FACT });
  expect((await svc(['forget', ref, '--yes'])).code).toBe(0);
  expect((await svc(['list', '--json'], second)).stdout.trim()).toBe('[]');
  const again = await svc(['add', FACT, '--space', 'global']);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('forgotten')]);
}, 60_000);

test('svc doctor says that a service has no room, and not that the network is to blame', async () => {
  const service = await startMemoryService({ spaceBytesMax: 1 });
  const { stdout } = await runHere(['doctor', '--json'], {
    home: homeFor(service.url, await service.makeKey()),
  });
  const { checks } = JSON.parse(stdout) as { checks: readonly Record<string, string>[] };
  expect(checks.filter(({ subject }) => subject === 'Memory service').at(-1)).toMatchObject({
    level: 'problem',
    found: expect.stringContaining('has no room for another record'),
    fix: expect.stringContaining('Ask the operator'),
  });
});

test('svc doctor: key, scopes, generation, round trip, and a record written, proven and forgotten', async () => {
  const { home: homeOf, service } = await openService();
  const doctor = async (home: string) => {
    const { stdout } = await runHere(['doctor', '--json'], { home });
    const { checks } = JSON.parse(stdout) as { checks: Record<string, string>[] };
    return checks.filter(({ subject }) => subject === 'Memory service');
  };
  const full = await doctor(await homeOf());
  expect(full).toEqual([
    {
      level: 'ok',
      subject: 'Memory service',
      found: expect.stringMatching(
        /^127\.0\.0\.1:\d+ accepts the key \w{12}, which may: read, write, receipt:read, generation g\w+\.\d+; a round trip takes \d+ ms$/,
      ),
    },
    {
      level: 'ok',
      subject: 'Memory service',
      found: 'a record was written, read, proven and forgotten',
    },
  ]);
  const reader = await doctor(await homeOf({ scopes: ['read'] }));
  expect(reader.map(({ level }) => level)).toEqual(['ok', 'warning']);
  expect(reader[1]?.['found']).toContain('may not write');
  const home = await homeOf();
  await service.stop();
  const away = await doctor(home);
  expect(away).toMatchObject([
    { level: 'problem', found: expect.stringContaining('ECONNREFUSED') },
  ]);
}, 60_000);

test('a service that is away: svc start serves, and what is said waits for it on disk', async () => {
  const provider = await startRecordingProvider();
  // It comes back there, so nobody else may take it meanwhile.
  const port = await freePort();
  const service = await startMemoryService({ port });
  const { folder, pepper } = service;
  const home = homeFor(service.url, await service.makeKey(), provider);
  await service.stop();
  const proxy = await startProxyProcess(home);
  expect(await ask(proxy, FACT)).toMatchObject({ status: 200, state: 'degraded_unavailable' });
  await proxy.kill('SIGTERM');
  const back = await startMemoryService({ folder, port, pepper });
  onTestFinished(() => back.stop());
  const next = await startProxyProcess(home);
  await vi.waitFor(async () => expect((await ask(next, freshQuestion())).state).toBe('recalled'), {
    timeout: 40_000,
    interval: 200,
  });
}, 60_000);

test('a wrong place for memories is told before anything is sent', async () => {
  const home = homeFor('http://memory.example.com', 'some-service-key');
  const { code, stderr, stdout } = await runHere(['memory', 'list'], { home });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain('memory.baseUrl');
  expect(stderr).toContain('http:// on this machine');
});

test('svc setup keeps what was said of an address, and asks it anew for another one', async () => {
  const home = homeFor('https://10.0.0.7', 'some-service-key');
  const setup = async (...words: string[]): Promise<unknown> => {
    const { code, stderr } = await runHere(['setup', '--yes', ...words], { home });
    expect([code, stderr]).toEqual([0, stderr]);
    const file = readFileSync(join(home, '.config/svc/config.json'), 'utf8');
    return (JSON.parse(file) as { memory: unknown }).memory;
  };
  const place = { kind: 'hosted', baseUrl: 'https://10.0.0.7', allowPrivate: true };
  expect(await setup('--memory-allow-private')).toMatchObject(place);
  const key = ['--service-key-env', 'SVC_SERVICE_KEY'];
  expect(await setup(...key)).toEqual({ ...place, serviceKey: { env: 'SVC_SERVICE_KEY' } });
  const other = { kind: 'hosted', baseUrl: 'https://memory.example.com' };
  expect(await setup('--memory-url', other.baseUrl)).toEqual({
    ...other,
    serviceKey: { env: 'SVC_SERVICE_KEY' },
  });
});
