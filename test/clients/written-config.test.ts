import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import { clientEnvironment } from './support/claude-code.ts';
import { type InstalledClient, binaryOf, installedClient } from './support/installed-client.ts';
import { expectKeysInPlace } from './support/laws.ts';
import { type ProgramEnd, runProgram } from './support/program.ts';
import { type Stage, openStage } from './support/stage.ts';
import { svcCommand } from './support/svc-command.ts';

const clients = { claude: await installedClient('claude'), codex: await installedClient('codex') };

interface Case {
  readonly file: string;
  /** What a person has there. */
  readonly text: string;
  readonly args: (prompt: string) => readonly string[];
  /** A plain shell, in which nothing points at svc. */
  readonly env: Readonly<Record<string, string>>;
}

const CASES: Readonly<Record<keyof typeof clients, Case>> = {
  claude: {
    file: '.claude/settings.json',
    text: '{ "permissions": { "allow": ["Bash(echo:*)"] }, "env": { "OF_THE_USER": "1" } }',
    args: (prompt) => ['-p', prompt],
    env: {
      DISABLE_AUTOUPDATER: '1',
      // The provider's key, and a network proxy that answers nobody: neither may matter.
      ANTHROPIC_API_KEY: 'sk-ant-of-the-shell',
      HTTP_PROXY: 'http://127.0.0.1:9',
      NO_PROXY: '',
      no_proxy: '',
    },
  },
  codex: {
    file: '.codex/config.toml',
    text: '# mine\nmodel = "gpt-5"\nmodel_provider = "openai"\n\n[tui]\nnotifications = false\n',
    args: (prompt) => ['exec', '--skip-git-repo-check', prompt],
    env: {},
  },
};

describe.each(['claude', 'codex'] as const)('svc connect %s', (name) => {
  const client = clients[name];
  const { file, text, args: argsOf, env } = CASES[name];

  beforeEach((context: TestContext) => {
    if (client.missing !== undefined) context.skip(client.missing);
  });

  test('the client in a plain shell goes through svc, and after disconnect it does not', async () => {
    const stage = await openStage();
    const path = join(stage.home, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    const start = (prompt: string, msMax?: number) =>
      runPlain(stage, client, { name, args: argsOf(prompt), env, msMax });

    const written = await svcCommand(stage, client, ['connect', name, '--yes']).ended;
    expect(written, written.stderr).toMatchObject({ status: 0, stdout: '' });
    const said = await start('Say this. [[final=through the proxy]]');
    expect(said, said.stderr).toMatchObject({ status: 0 });
    expect(said.stdout).toContain('through the proxy');
    expectKeysInPlace(stage);
    expect(JSON.stringify(stage.provider.records.map((it) => it.headers))).not.toContain('shell');

    const undone = await svcCommand(stage, client, ['disconnect', name, '--yes']).ended;
    expect(undone, undone.stderr).toMatchObject({ status: 0 });
    expect(readFileSync(path, 'utf8')).toBe(text);
    const calls = stage.provider.records.length;
    const alone = await start('Say this. [[final=through the proxy]]', PLAIN_MS);
    expect(alone.stdout).not.toContain('through the proxy');
    expect(stage.provider.records.length).toBe(calls);
  });

  test('with the proxy killed, the client starts it and answers within 10 seconds', async () => {
    const stage = await openStage();
    const path = join(stage.home, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    const svc = (args: readonly string[]) => svcCommand(stage, client, args).ended;
    const written = await svc(['connect', name, '--yes']);
    expect(written, written.stderr).toMatchObject({ status: 0 });
    await stage.svc.kill();
    const from = performance.now();
    const args = argsOf('Say this. [[final=through a new proxy]]');
    const said = await runPlain(stage, client, { name, args, env, msMax: 60_000 });
    const seconds = (performance.now() - from) / 1000;
    process.stderr.write(`${name}: answered ${seconds.toFixed(1)} s after the proxy was killed\n`);
    expect(said, said.stderr).toMatchObject({ status: 0 });
    expect(said.stdout).toContain('through a new proxy');
    expect(await svc(['stop'])).toMatchObject({ status: 0 });
  });

  test('what the client writes into its own file meanwhile stays', async () => {
    const stage = await openStage();
    const path = join(stage.home, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    await svcCommand(stage, client, ['connect', name, '--yes']).ended;
    const args = ['mcp', 'add', 'found', '--', 'true'];
    // Claude Code has no command for its settings: it writes the file anew, as here.
    if (name === 'claude') writeAnew(path);
    else await runPlain(stage, client, { name, args, env });
    expect(readFileSync(path, 'utf8')).toContain('found');
    const undone = await svcCommand(stage, client, ['disconnect', name, '--yes']).ended;
    expect(undone, undone.stderr).toMatchObject({ status: 0 });
    const after = readFileSync(path, 'utf8');
    expect(after).toContain('found');
    expect(after).not.toContain('svc');
    expect(after).not.toContain('127.0.0.1');
  });
});

interface Start {
  readonly name: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Then it is told to end. */
  readonly msMax?: number | undefined;
}

/** A client that finds nobody tries for minutes: what it did in the first seconds is enough. */
const PLAIN_MS = 15_000;

async function runPlain(
  stage: Stage,
  client: InstalledClient,
  { name, args, env, msMax }: Start,
): Promise<ProgramEnd> {
  const program = runProgram({
    file: binaryOf(client, name),
    args,
    folder: stage.project,
    env: { ...clientEnvironment(stage), ...env },
  });
  const timer =
    msMax === undefined ? undefined : setTimeout(() => program.child.kill('SIGTERM'), msMax);
  const end = await program.ended;
  clearTimeout(timer);
  return end;
}

function writeAnew(path: string): void {
  const settings = JSON.parse(readFileSync(path, 'utf8')) as object;
  writeFileSync(path, JSON.stringify({ ...settings, model: 'found' }, undefined, 2));
}
