import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { BIN, runCli, runProgram, runServiceCli, SERVICE_BIN } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { requestRow } from '../support/request-row.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

type Shell = 'bash' | 'zsh' | 'fish';

/** What a person's shell has at hand: svc itself, a configuration, and a project. */
async function place() {
  const home = homeWith(validConfig());
  const data = join(home, 'data');
  const store = openEmbeddedStore({ folder: data, report: () => undefined });
  store.requestLog.add(requestRow({ at: Date.now(), space: 'project/shop-1' }));
  // Bash would run this as a command.
  store.requestLog.add(requestRow({ at: Date.now(), space: 'project/$(pwd)' }));
  await store.close();
  const bin = join(home, 'bin');
  mkdirSync(bin);
  for (const [name, file] of Object.entries({ svc: BIN, 'svc-service': SERVICE_BIN })) {
    const shim = `#!/bin/sh\nexec '${process.execPath}' '${file}' "$@"\n`;
    writeFileSync(join(bin, name), shim, { mode: 0o755 });
  }
  const env = { SVC_DATA_HOME: data, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  return { home, env };
}

/** How each shell is asked what it proposes after these words, of which the last is not complete. */
const ASK: Readonly<Record<Shell, (words: readonly string[]) => string>> = {
  bash: (words) =>
    `COMP_WORDS=(svc ${quoted(words)}); COMP_CWORD=${words.length}; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`,
  // Without a terminal there is no completion to start: the words are given as zsh gives them.
  zsh: (words) =>
    `compadd() { shift; print -l -- "$@"; }; _files() { :; }; words=(svc ${quoted(words)}); ` +
    `CURRENT=${words.length + 1}; _svc | grep -- "^${words.at(-1) ?? ''}"`,
  fish: (words) => `complete -C 'svc ${words.join(' ')}' | cut -f1`,
};

function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(' ');
}

const PLAIN: Readonly<Record<Shell, readonly string[]>> = {
  bash: ['--norc', '--noprofile', '-c'],
  zsh: ['-f', '-c'],
  fish: ['--no-config', '-c'],
};

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  const isHere = spawnSync(shell, ['--version']).status === 0;
  const name = `${shell} completes commands, options, and values${isHere ? '' : ` (SKIPPED: ${shell} is not installed)`}`;
  test.skipIf(!isHere)(name, async () => {
    const where = await place();
    const { stdout: script } = await runCli(['completion', shell], where);
    const proposed = async (...words: string[]): Promise<readonly string[]> => {
      const argv = [shell, ...PLAIN[shell], `${script}\n${ASK[shell](words)}`];
      const { stdout, stderr } = await runProgram(argv, where);
      expect(stderr).toBe('');
      return stdout
        .split('\n')
        .filter((line) => line !== '')
        .toSorted();
    };
    expect(await proposed('stat')).toEqual(['stats', 'status', 'statusline']);
    expect(await proposed('run', 'c')).toEqual(['claude', 'cline', 'codex', 'continue', 'copilot']);
    expect(await proposed('memory', 'get', '--ar')).toEqual(['--around']);
    expect(await proposed('memory', 'sha')).toEqual(['share']);
    expect(await proposed('memory', 'list', '--sta')).toEqual(['--stale']);
    // Behind an argument, and behind an option with its value, the command is still known.
    expect(await proposed('memory', 'get', 'm_x', '--gr')).toEqual(['--grep']);
    expect(await proposed('memory', 'list', '--limit', '5', '--js')).toEqual(['--json']);
    expect(await proposed('start', '--memory-mode', 'read')).toEqual(['read', 'read-write']);
    expect(await proposed('memory', 'list', '--space', 'project/')).toEqual(['project/shop-1']);
    expect(await proposed('setup', '--remove', 'anth')).toEqual(['anthropic']);
    expect(await proposed('connect', 'cla')).toEqual(['claude']);
  });
}

test('the words that may follow are listed one a line, and a shell that is none is wrong usage', async () => {
  const where = await place();
  const spaces = await runCli(['completion', '--after', '--', 'memory', 'list', '--space'], where);
  expect(spaces.stdout).toBe('global\nproject/shop-1\n');
  expect((await runCli(['completion', 'keys'], where)).code).toBe(2);
  expect((await runCli(['completion'], where)).code).toBe(2);
});

test('svc-service completes its own commands in bash', async () => {
  const { home, env } = await place();
  const { stdout: script } = await runServiceCli(['completion', 'bash'], { home });
  const ask =
    'COMP_WORDS=(svc-service keys cr); COMP_CWORD=2; _svc_service; echo "${COMPREPLY[@]}"';
  const argv = ['bash', ...PLAIN.bash, `${script}\n${ask}`];
  expect(await runProgram(argv, { home, env })).toMatchObject({ stdout: 'create\n', stderr: '' });
  expect(script).toContain('complete -o default -F _svc_service svc-service');
});
