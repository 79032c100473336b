import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { clientEnvironment, runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import {
  CLAUDE_MODEL,
  CODEX_MODEL,
  type HookedStage,
  openHookedStage,
  SVC,
} from './support/hooked-client.ts';
import { binaryOf, installedClient } from './support/installed-client.ts';
import { type ProgramEnd, runProgram } from './support/program.ts';
import { FACT, QUESTION, SECRET_OF_FACT } from './support/story.ts';

/**
 * The plugins of the package, installed into the real clients with the clients' own commands from the marketplace files
 * of this repository (Claude Code 2.1.329, Codex 0.169.0).
 */

const root = join(import.meta.dirname, '..', '..');

const CLIENTS = {
  claude: {
    installed: await installedClient('claude'),
    install: [
      ['plugin', 'marketplace', 'add', root],
      ['plugin', 'install', 'svc-memory@svc'],
    ],
    ask: (stage: HookedStage, prompt: string, PATH: string) =>
      runClaude(CLIENTS.claude.installed, stage, {
        prompt,
        args: ['--model', CLAUDE_MODEL, '--output-format', 'stream-json', '--verbose'],
        env: { PATH },
      }),
  },
  codex: {
    installed: await installedClient('codex'),
    install: [
      ['plugin', 'marketplace', 'add', root],
      ['plugin', 'add', 'svc-memory@svc'],
    ],
    ask: (stage: HookedStage, prompt: string, PATH: string) => {
      // What the two commands wrote comes behind the provider of this test.
      const config = join(stage.home, 'plugins.toml');
      return runCodex(CLIENTS.codex.installed, stage, {
        prompt,
        model: CODEX_MODEL,
        args: ['--dangerously-bypass-hook-trust'],
        config: [readFileSync(config, 'utf8')],
        env: { PATH },
      });
    },
  },
} as const;

describe.each(['claude', 'codex'] as const)('the plugin for %s', (name) => {
  const { installed, install, ask } = CLIENTS[name];

  const stageWithPlugin = async (): Promise<HookedStage> => {
    const stage = await openHookedStage();
    for (const args of install) {
      // oxlint-disable-next-line no-await-in-loop -- The marketplace first.
      const { status, stderr, stdout } = await runProgram({
        file: binaryOf(installed, name),
        args,
        folder: stage.project,
        env: clientEnvironment(stage),
      }).ended;
      expect(status, `${stdout}\n${stderr}`).toBe(0);
    }
    if (name === 'codex') {
      const text = readFileSync(join(stage.home, '.codex', 'config.toml'), 'utf8');
      writeFileSync(join(stage.home, 'plugins.toml'), text);
    }
    return stage;
  };

  test('installs, and brings a fact of one session into the next', async (context) => {
    if (installed.missing !== undefined) return context.skip(installed.missing);
    const stage = await stageWithPlugin();
    const path = pathWithSvc(stage);
    await ask(stage, `${FACT} [[final=Noted.]]`, path);
    const [record] = JSON.parse((await stage.type('memory', 'list', '--json')).stdout) as {
      client: string;
    }[];
    expect(record?.client).toBe(name === 'claude' ? 'claude-code' : 'codex');
    const end = await ask(stage, `${QUESTION} [[plan=bash:ls]]`, path);
    expect(stage.provider.records.at(-1)?.body.toString(), said(end)).toContain('<svc-memory ');
    expect(stage.provider.records.at(-1)?.body.toString()).toContain(SECRET_OF_FACT);
    await stage.type('connect', name, '--hooks', '--yes');
    const twice = await stage.type('doctor', '--offline');
    expect(twice.stdout + twice.stderr).toContain('each event starts svc twice');
  });

  test('says in one sentence that svc is not installed, and the session goes on', async (context) => {
    if (installed.missing !== undefined) return context.skip(installed.missing);
    const stage = await stageWithPlugin();
    const end = await ask(stage, 'Go. [[plan=bash:ls*3]]', process.env['PATH'] ?? '');
    expect(end, said(end)).toMatchObject({ status: 0 });
    // The stream of Claude Code holds what a hook printed and what a person is shown.
    expect(said(end).split('svc is not installed').length - 1).toBeLessThanOrEqual(3);
    expect(said(end)).not.toMatch(/hook[^\n"]{0,80}(?:failed|error)|"outcome":"(?!success)/i);
    expect(stage.provider.records.at(-1)?.body.toString()).not.toContain('svc is not installed');
  });
});

function pathWithSvc({ home }: HookedStage): string {
  const folder = join(home, 'bin');
  mkdirSync(folder);
  const script = `#!/bin/sh\nexec '${process.execPath}' '${SVC}' "$@"\n`;
  writeFileSync(join(folder, 'svc'), script, { mode: 0o755 });
  return [folder, process.env['PATH'] ?? ''].join(delimiter);
}

function said({ stdout, stderr }: ProgramEnd): string {
  return `${stdout}\n${stderr}`;
}
