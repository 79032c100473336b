import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { BROKEN_NETWORKS } from '../support/broken-networks.ts';
import { BROKEN_SETUPS } from '../support/broken-setups.ts';
import {
  checkStore,
  type RecallTime,
  type StoreInspection,
} from '../../src/cli/doctor/doctor-store.ts';
import { runCli, runHere, tempFolder } from '../support/cli.ts';
import {
  config,
  configFile,
  type Place,
  provider,
  SERVICE_KEY,
  type Setup,
  UPSTREAM,
  wellBehaved,
} from '../support/doctor-stage.ts';
import { homeWith } from '../support/home.ts';

/**
 * Broken set-ups, each as it happens to people, against the real program: what is wrong is named,
 * with what mends it, and --fix mends what it may and nothing else.
 */

// Several processes for each, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

const SETUPS = [...BROKEN_SETUPS, ...BROKEN_NETWORKS];

interface Check {
  level: string;
  subject: string;
  found: string;
  fix?: string;
}

async function checksOf(
  { home, env = {} }: Place,
  flags: readonly string[],
  run: typeof runHere = runHere,
): Promise<{ checks: Check[]; code: number | null }> {
  const { stdout, stderr, code } = await run(['doctor', '--json', ...flags], { home, env });
  expect(stdout + stderr).not.toMatch(/CANARY|SECRET-ECHO|svc_local_/);
  expect(stdout + stderr).not.toContain(SERVICE_KEY);
  return { checks: (JSON.parse(stdout) as { checks: Check[] }).checks, code };
}

function findFault({ checks }: { checks: Check[] }, { subject, found }: Setup): Check | undefined {
  return checks.find((check) => check.subject === subject && found.test(check.found));
}

describe('broken set-ups', () => {
  test.each(SETUPS.map((setup) => [setup.name, setup] as const))('%s', async (_, setup) => {
    const place = await setup.make();
    const network = setup.isOnline === true ? [] : ['--offline'];
    const seen = await checksOf(place, network);
    const fault = findFault(seen, setup);
    expect(fault, JSON.stringify(seen.checks, undefined, 1)).toBeDefined();
    expect(fault?.level).toBe(setup.level ?? 'problem');
    expect(fault?.fix).toMatch(setup.fix);
    if (setup.level === undefined) expect(seen.code).toBe(1);
    // Every problem says what to do about it.
    for (const { level, fix } of seen.checks) if (level !== 'ok') expect(fix).toBeTruthy();
    if (setup.isMended !== true) return;
    const before = readFileSync(configFile(place.home), 'utf8');
    const fixed = await checksOf(place, ['--fix', ...network]);
    expect(findFault(fixed, setup)).toBeUndefined();
    expect(fixed.code).toBe(0);
    const after = JSON.parse(readFileSync(configFile(place.home), 'utf8')) as object;
    expect(after).toMatchObject(JSON.parse(before) as object);
  });

  test('there are at least fifteen, and --fix mends seven of them', () => {
    expect(SETUPS.length).toBeGreaterThanOrEqual(15);
    expect(SETUPS.filter(({ isMended }) => isMended).map(({ name }) => name)).toEqual([
      'a configuration file that others may read',
      'a configuration folder that others may list',
      'what a write that was cut off has left behind',
      'no local token',
      'a data folder that others may list',
      'memories that others may read',
      'left-out outputs that others may read',
    ]);
  });
});

// spec: 4.5-doctor
test('a set-up that is right: every line ok, to the network and back', async () => {
  const { home } = await provider(wellBehaved());
  const env = { SVC_DATA_HOME: join(home, 'data') };
  await runHere(['memory', 'add', 'Tests need Docker.'], { home, env });
  const { checks, code } = await checksOf({ home, env }, []);
  expect(checks.filter(({ level }) => level !== 'ok')).toEqual([]);
  expect(code).toBe(0);
  const told = (subject: string) => checks.find((check) => check.subject === subject)?.found;
  expect(told('Network')).toMatch(/1 address \(this machine\), no TLS$/);
  expect(told('Provider')).toBe(
    'anthropic (anthropic_messages): the key is accepted, it lists 1 model',
  );
  expect(told('Dialect')).toBe('anthropic: it serves anthropic_messages');
  expect(told('Clock')).toMatch(/^agrees with anthropic, to [0-9]{1,2} s$/);
  expect(told('Store')).toMatch(/memory\.db, whole, 1 memory, 0\.\d MB, SQLite 3\./);
  expect(told('Memory')).toMatch(/^written, read back, recalled and forgotten in \d+ ms; a recall/);
  // The test sentence is gone again.
  const { stdout } = await runHere(['memory', 'list', '--json'], { home, env });
  expect(stdout).toContain('Docker');
  expect(stdout).not.toContain('doctor');
});

test('a wrong variable for one setting hides neither the providers nor the memory service', async () => {
  const { home } = await provider(wellBehaved());
  const { checks } = await checksOf({ home, env: { SVC_PORT: 'eighty' } }, []);
  const told = (subject: string) => checks.find((check) => check.subject === subject)?.level;
  expect([told('Setting'), told('Provider'), told('Dialect')]).toEqual(['problem', 'ok', 'ok']);
});

test('a host that nobody listens on is told once, whatever asks it', async () => {
  const dead = { baseUrl: 'http://127.0.0.1:9', allowPrivate: true };
  const other = { ...dead, name: 'openai', apiStyle: 'openai_responses' };
  const home = homeWith(
    config({
      upstreams: [
        { ...UPSTREAM, ...dead },
        { ...UPSTREAM, ...other },
      ],
    }),
  );
  const env = { SVC_DATA_HOME: join(home, 'data') };
  await runCli(['start', '--detach'], { home, env });
  // The proxy and the command are one build.
  const { checks } = await checksOf({ home, env }, ['--live', '--yes'], runCli);
  await runHere(['stop'], { home, env });
  expect(checks.filter(({ level }) => level !== 'ok')).toEqual([
    expect.objectContaining({ subject: 'Network', level: 'problem' }),
  ]);
});

test('a host that takes connections and never answers is told once too', async () => {
  const { home } = await provider((request) => request.socket.destroy());
  const file = JSON.parse(readFileSync(configFile(home), 'utf8')) as { upstreams: object[] };
  const other = { ...file.upstreams[0], name: 'openai', apiStyle: 'openai_responses' };
  const upstreams = [...file.upstreams, other];
  const { checks } = await checksOf({ home: homeWith({ ...file, upstreams }) }, []);
  const bad = checks.filter(({ level }) => level !== 'ok');
  expect(bad.map(({ subject }) => subject)).toEqual(['Provider']);
});

test.each([
  [
    'comments and a trailing comma',
    '{ // mine\n "model": "opus", }',
    'has comments or trailing commas',
  ],
  ['a brace too few', '{ "model": "opus"', 'is not valid JSON'],
])('Claude Code’s settings with %s, which it refuses, are named', async (_, text, has) => {
  const home = homeWith(config());
  mkdirSync(join(home, '.claude'));
  const path = join(home, '.claude/settings.json');
  writeFileSync(path, text);
  const { checks } = await checksOf({ home }, ['--offline']);
  const told = checks.find(({ subject }) => subject === 'Claude Code');
  expect(told).toMatchObject({ level: 'warning', found: expect.stringContaining(has) as string });
  expect(told?.fix).toMatch(/ ~\/\.claude\/settings\.json$/);
  const written = await runHere(['connect', 'claude', '--yes'], { home });
  expect([written.code, readFileSync(path, 'utf8')]).toEqual([1, text]);
});

test('a recall is slow for the size of the store, or for a busy machine: each has its own advice', async () => {
  const store = {
    file: '/m.db',
    isWhole: true,
    records: 9,
    bytes: 9,
    sqliteVersion: '3',
    driver: 'node:sqlite',
  };
  const probe = { state: 'ok', ms: 9 } as const;
  const told = async (recall: RecallTime) => {
    const folder = { SVC_DATA_HOME: tempFolder() };
    const inspect = async () => ({ ...store, probe, recall }) as StoreInspection;
    return (await checkStore(folder, inspect)).find(({ subject }) => subject === 'Memory');
  };
  const large = await told({ ms: 420, cpuMs: 390 });
  expect(large).toMatchObject({
    level: 'warning',
    fix: expect.stringContaining('svc memory forget') as string,
  });
  const busy = await told({ ms: 420, cpuMs: 20 });
  expect(busy?.found).toContain('svc waited 400 ms of it for the processor');
  expect(busy?.fix).not.toContain('orget');
  expect(await told({ ms: 20, cpuMs: 20 })).toMatchObject({ level: 'ok' });
});

test('a provider without a list of models: its key is tried on an empty request', async () => {
  const key = { right: true };
  const { home } = await provider((request, answer) => {
    const isCall = request.url === '/v1/messages' && request.method === 'POST';
    answer.writeHead(isCall ? (key.right ? 400 : 401) : 404).end('{"error":"SECRET-ECHO"}');
  });
  const told = async (subject: string): Promise<string | undefined> =>
    (await checksOf({ home }, [])).checks.find((check) => check.subject === subject)?.found;
  expect(await told('Provider')).toMatch(
    /: the key is accepted, but the provider lists no models$/,
  );
  key.right = false;
  expect(await told('Provider')).toMatch(/: the provider refuses the key \(401\)$/);
});

test('--fix changes nothing that is not broken, and makes no store', async () => {
  const home = homeWith(config());
  const data = join(home, 'data');
  const before = readFileSync(configFile(home), 'utf8');
  await checksOf({ home, env: { SVC_DATA_HOME: data } }, ['--fix', '--offline']);
  expect(readFileSync(configFile(home), 'utf8')).toBe(before);
  expect(existsSync(data)).toBe(false);
});

test('--live sends a small request twice through the proxy, and tells of the provider’s cache', async () => {
  const bodies: string[] = [];
  const place = await provider((request, answer) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString('utf8')));
    request.on('end', () => {
      const isCall = request.method === 'POST' && body !== '{}';
      if (isCall) bodies.push(body);
      answer.writeHead(request.method === 'GET' || isCall ? 200 : 400, {
        'content-type': 'application/json',
      });
      const usage = { input_tokens: 9, cache_read_input_tokens: bodies.length === 2 ? 4711 : 0 };
      const models = [{ id: 'claude-opus-4-8' }, { id: 'claude-haiku-4-5' }];
      const message = { type: 'message', role: 'assistant', content: [], usage };
      answer.end(JSON.stringify(isCall ? message : { data: models }));
    });
  });
  const { home } = place;
  const silent = await runHere(['doctor', '--live', '--yes'], { home });
  expect(silent.stdout).toMatch(/problem {2}Live: no proxy runs.*\n {9}svc start --detach/);
  expect(bodies).toEqual([]);
  await runCli(['start', '--detach'], { home });
  const unasked = await runHere(['doctor', '--live'], { home });
  expect(unasked.stdout).toMatch(
    /warning {2}Live: Two requests of 5000 tokens to claude-haiku-4-5 at anthropic, for about \$0\.0127, were not sent, because without a terminal nobody can agree.*\n {9}svc doctor --live --yes/,
  );
  expect(bodies).toEqual([]);
  const live = await runHere(['doctor', '--live', '--yes'], { home });
  expect(live.stderr).toContain(
    'Two requests of 5000 tokens to claude-haiku-4-5 at anthropic, for about $0.0127.',
  );
  expect(live.stdout).toMatch(
    /ok {7}Live: anthropic \(claude-haiku-4-5\): answered twice, memory \w+, \w+ \w+, \d+ → \d+ tokens; the second request read 4711 tokens from the provider’s cache/,
  );
  expect(live.code).toBe(0);
  expect(bodies).toHaveLength(2);
  expect(bodies[1]).toBe(bodies[0]);
  const { stdout } = await runHere(['memory', 'list', '--json'], { home });
  await runHere(['stop'], { home });
  expect(stdout).not.toContain('never changes');
});
