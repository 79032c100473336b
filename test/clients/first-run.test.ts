import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BIN } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';
import { startScriptedProvider } from '../support/scripted-provider/provider.ts';
import { binaryOf, installedClient } from './support/installed-client.ts';
import { runProgram } from './support/program.ts';
import { FACT, QUESTION, SECRET_OF_FACT } from './support/story.ts';

/** What a new user meets: setup, two sessions of Claude Code, and the commands that say how svc is. */

const claude = await installedClient('claude');

const LOGIN = {
  claudeAiOauth: {
    accessToken: 'sk-ant-oat01-CANARY',
    refreshToken: 'r',
    expiresAt: 4_102_444_800_000,
    scopes: ['user:inference'],
    subscriptionType: 'max',
  },
};

test.skipIf(claude.missing !== undefined).each(['key', 'login'] as const)(
  'with a %s no check finds a problem, and the person’s own words are theirs',
  async (kind) => {
    const provider = await startScriptedProvider();
    const upstream = {
      name: 'work',
      apiStyle: 'anthropic_messages',
      baseUrl: provider.url,
      allowPrivate: true,
      ...(kind === 'key' ? { auth: 'x-api-key', providerKey: 'sk-x' } : { auth: 'client' }),
    };
    // A busy machine must not make svc silent here.
    const home = homeWith({ version: 1, proxy: { recallMs: 10_000 }, upstreams: [upstream] });
    if (kind === 'login') {
      mkdirSync(join(home, '.claude'));
      const file = join(home, '.claude/.credentials.json');
      writeFileSync(file, JSON.stringify(LOGIN), { mode: 0o600 });
    }
    const project = join(home, 'code', 'quay');
    mkdirSync(project, { recursive: true });
    execFileSync('git', ['init', '-q'], { cwd: project });
    const env = {
      HOME: home,
      PATH: `${dirname(binaryOf(claude, 'claude'))}${delimiter}${process.env['PATH'] ?? ''}`,
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    };
    const svc = async (...args: readonly string[]): Promise<string> => {
      const start = { file: process.execPath, args: [BIN, ...args], folder: project, env };
      const { status, stdout, stderr } = await runProgram(start).ended;
      expect([args, status, stdout + stderr]).toEqual([args, 0, expect.any(String)]);
      return stdout + stderr;
    };
    onTestFinished(async () => void (await svc('stop')));
    await svc('setup', '--yes', '--port', String(await freePort()));
    expect(await svc('doctor')).toContain('\n0 problems, 0 warnings.');
    await svc('run', 'claude', '--', '-p', FACT);
    const from = provider.records.length;
    await svc('run', 'claude', '--', '-p', QUESTION);
    const bodies = provider.records.slice(from).map(({ body }) => body.toString());
    expect(bodies.some((body) => body.includes(SECRET_OF_FACT))).toBe(true);
    expect(await svc('status')).toMatch(/^svc runs on \S+ \(.*\)\n$/);
    expect(await svc('doctor')).toContain('\n0 problems, 0 warnings.');
    const memories = JSON.parse(await svc('memory', 'list', '--json')) as readonly object[];
    expect(memories.length).toBeGreaterThan(1);
    for (const memory of memories) {
      expect(memory).toMatchObject({ client: 'claude-code' });
      expect(memory).not.toHaveProperty('source');
    }
    const requests = await svc('requests');
    for (const word of ['unknown', 'bypassed']) expect(requests).not.toContain(word);
  },
);
