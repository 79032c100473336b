import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findStates, STATE_TEXTS, type StateKind } from '../../src/core/plan/states.ts';
import { KIND_TITLES } from '../../src/cli/requests/explain.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/states.md'), 'utf8');

/** The table as the page has it. */
function section(kind: StateKind): string {
  const rows = STATE_TEXTS.filter((state) => state.kind === kind).map(
    ({ name, meaning, advice }) => `| \`${name}\` | ${meaning} | ${advice} |`,
  );
  return [
    `## ${KIND_TITLES[kind]}`,
    '',
    '| name | what it means | what to do |',
    '|---|---|---|',
    ...rows,
  ].join('\n');
}

test('docs/states.md says of every state and error what svc explain says', () => {
  for (const kind of ['memory', 'continuity', 'end', 'error'] as const) {
    expect(PAGE).toContain(section(kind));
  }
});

test('every name is there once, and each sentence ends as one', () => {
  const names = STATE_TEXTS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const { name, meaning } of STATE_TEXTS) {
    expect([name, meaning]).toEqual([name, expect.stringMatching(/^[A-Zs].*\.$/)]);
    expect(meaning).not.toContain('|');
  }
});

test('a state is found by its name, whatever the case, and by how it begins', () => {
  expect(findStates('RECALLED').map(({ name }) => name)).toEqual(['recalled']);
  expect(findStates('bypassed').length).toBeGreaterThan(8);
  expect(findStates('upstream_t').map(({ name }) => name)).toEqual(['UPSTREAM_TIMEOUT']);
  expect(findStates('')).toEqual([]);
  expect(findStates('zebra')).toEqual([]);
});
