import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';

const program = join(import.meta.dirname, '..', '..', 'bin', 'svc.js');

test('svc demo recalls a fact in all three dialects with no key, and leaves nothing behind', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-demo-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const temporary = join(folder, 'tmp');
  const home = join(folder, 'home');
  for (const it of [temporary, home]) mkdirSync(it);
  const run = spawnSync(process.execPath, [program, 'demo'], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: home, TMPDIR: temporary },
  });
  expect(run.status, run.stderr).toBe(0);
  expect(run.stderr).toBe('');
  for (const title of ['Anthropic Messages', 'OpenAI Responses', 'OpenAI Chat Completions']) {
    expect(run.stdout).toMatch(new RegExp(`a new conversation, ${title}$`, 'm'));
  }
  expect(run.stdout.match(/no memory I do not know/g)).toHaveLength(3);
  expect(run.stdout.match(/svc added <svc-memory/g)).toHaveLength(3);
  expect(run.stdout.match(/model {5}This request says: .*walrus-seven/g)).toHaveLength(3);
  expect(run.stdout.match(/x-svc-memory-state: recalled/g)).toHaveLength(3);
  expect(readdirSync(temporary)).toEqual([]);
  expect(readdirSync(home)).toEqual([]);
});
