import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runProgram, tempFolder } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { startScriptedProvider } from '../support/scripted-provider/provider.ts';

/** The package as a stranger gets it: packed, installed into an empty folder, and used. */

const root = join(import.meta.dirname, '..', '..');
const KEY = 'provider-key-of-the-story';
const PLANTED = 'heron-fourteen';

// Most of it is the store's engine, which brings a binary for each platform.
const INSTALLED_MB_MAX = 40;
// The page and its server are a third of a megabyte of it, read from disk only when asked for.
// Hooks bring their own bundle of the store, because a hook has to answer fast. Measured 2026-11-24: 5.39, packed 1.74.
const OWN_MB_MAX = 5.8;
const PACKAGES_MAX = 5;

/** What npm says where there is no registry to ask. */
const OFFLINE =
  /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT|ENETUNREACH)\b/;

test(
  'npm pack, an install without scripts, and the whole story from there',
  { timeout: 300_000 },
  async (context) => {
    const folder = tempFolder();
    onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
    const missing = install(folder);
    if (missing !== undefined) {
      process.stderr.write(`SKIPPED ALOUD: ${missing}\n`);
      context.skip(missing);
    }
    const modules = join(folder, 'node_modules');
    const packages = packagesIn(modules);
    const [all, own] = [megabytesOf(modules), megabytesOf(join(modules, 'svc-local-proxy'))];
    process.stderr.write(
      `installed: ${all.toFixed(1)} MB, ${packages.length} packages (${packages.join(', ')}); svc itself ${own.toFixed(2)} MB\n`,
    );
    expect(all).toBeLessThan(INSTALLED_MB_MAX);
    expect(own).toBeLessThan(OWN_MB_MAX);
    expect(packages.length).toBeLessThanOrEqual(PACKAGES_MAX);
    await tellStory(join(modules, '.bin', 'svc'), folder);
  },
);

/** Why it could not be installed for want of a registry; any other failure fails the test. */
function install(folder: string): string | undefined {
  const pack = npm(['pack', '--ignore-scripts', '--pack-destination', folder], root);
  expect(pack.status, pack.stderr).toBe(0);
  const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1'];
  const installed = npm(['install', ...flags, '--prefix', folder, join(folder, tarball)], folder);
  if (installed.status === 0) return undefined;
  const [code] = OFFLINE.exec(installed.stderr) ?? [];
  expect(code, installed.stderr).toBeDefined();
  return `the packages that svc needs cannot be had here (${code})`;
}

function npm(args: readonly string[], cwd: string) {
  return spawnSync('npm', args, { cwd, encoding: 'utf8', timeout: 200_000 });
}

async function tellStory(svc: string, folder: string): Promise<void> {
  const home = join(folder, 'home');
  mkdirSync(home);
  const provider = await startScriptedProvider();
  onTestFinished(() => provider.stop());
  const port = await freePort();
  const env = { STORY_KEY: KEY };
  const run = async (...args: string[]) => {
    const result = await runProgram([svc, ...args], { home, env });
    expect([args, result.code, result.stderr]).toEqual([args, 0, expect.any(String)]);
    // Node says such things on stderr of its own accord, and people report them as errors of svc.
    expect(result.stderr).not.toMatch(/Warning:|\bat .*:\d+:\d+/);
    return result.stdout;
  };
  onTestFinished(async () => void (await runProgram([svc, 'stop'], { home, env })));

  expect(await run('demo')).toContain('x-svc-memory-state: recalled');
  const upstream = ['--upstream', 'story', '--base-url', provider.url, '--key-env', 'STORY_KEY'];
  const style = ['--api-style', 'anthropic_messages', '--auth', 'x-api-key', '--allow-private'];
  await run('setup', '--yes', ...upstream, ...style, '--port', String(port));
  await run('start', '--detach');
  const token = (await run('config', 'token')).trim();

  await ask(port, token, `The test server of this project is called ${PLANTED}.`);
  // A capture reaches the store a moment after the answer, later on a busy machine.
  await expect.poll(() => run('memory', 'list'), { timeout: 60_000 }).toContain(PLANTED);
  const stateOfAnswer = async () => {
    const answer = await ask(port, token, 'How is the test server of this project called?');
    return answer.headers.get('x-svc-memory-state');
  };
  await expect.poll(stateOfAnswer, { timeout: 60_000, interval: 500 }).toBe('recalled');
  const forwarded = provider.records.at(-1);
  expect(forwarded?.body.toString()).toContain(PLANTED);
  expect(forwarded?.headers).toContain(KEY);

  const report = JSON.parse(await run('doctor', '--offline', '--json')) as unknown;
  expect(JSON.stringify(report)).not.toContain('"problem"');
  expect(await run('requests')).toContain('recalled');
  await run('stop');
  expect((await runProgram([svc, 'status'], { home, env })).code).toBe(1);
}

async function ask(port: number, token: string, text: string): Promise<Response> {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': token },
    body: JSON.stringify({
      model: 'claude-sonnet-4-5',
      max_tokens: 100,
      messages: [{ role: 'user', content: text }],
    }),
  });
  expect(await answer.text()).toContain('"type":"message"');
  expect(answer.status).toBe(200);
  return answer;
}

function packagesIn(modules: string): readonly string[] {
  return readdirSync(modules)
    .filter((name) => !name.startsWith('.'))
    .flatMap((name) =>
      name.startsWith('@')
        ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`)
        : [name],
    );
}

function megabytesOf(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => lstatSync(join(folder, name)))
    .filter((stat) => stat.isFile())
    .reduce((sum, { size }) => sum + size / 1e6, 0);
}
