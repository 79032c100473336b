import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { golden } from '../support/recordings.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ROOT = join(import.meta.dirname, '..', '..');

interface Line {
  readonly file: string;
  readonly client: string;
  readonly kind: string;
  readonly session: string;
  readonly project: string | null;
  readonly typed: readonly string[];
  readonly error?: string;
}

function classify(...files: readonly string[]) {
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(ROOT, 'scripts', 'classify.mjs'), ...files],
    { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  );
  const lines = stdout.split('\n').filter((line) => line !== '');
  return { status, lines: lines.map((line) => JSON.parse(line) as Line) };
}

test('every recorded request is classified as the golden file has it', () => {
  const names = Object.keys(golden()).filter((name) => golden()[name]?.kind !== 'count');
  const { status, lines } = classify(...names.map((name) => join('test', 'recordings', name)));
  expect(status).toBe(0);
  expect(lines).toHaveLength(names.length);
  for (const [index, { client, kind, session, typed }] of lines.entries()) {
    const name = names[index] ?? '';
    expect({ name, client, kind, session, human: typed }).toEqual({ name, ...golden()[name] });
  }
  const codex = lines.find(({ file }) => file.includes('codex-0.169.0/first-run'));
  expect(codex?.project).toBe('/home/user/project');
}, 60_000);

test('what is no recording is an error of its own line, and without files the usage is shown', () => {
  const broken = join(tempFolder(), 'broken.json');
  writeFileSync(broken, '{');
  const fine = join('test', 'recordings', 'codex-0.169.0', 'first-run', '0001.json');
  const { status, lines } = classify(broken, fine);
  expect(status).toBe(1);
  expect(lines.map(({ error }) => error !== undefined)).toEqual([true, false]);
  expect(classify().status).toBe(2);
}, 60_000);
