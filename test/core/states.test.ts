import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stateText, STATE_TEXTS, type StateKind } from '../../src/core/plan/states.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/states.md'), 'utf8');

/** Where a person has met the name. */
const KIND_TITLES: Readonly<Record<StateKind, string>> = {
  memory: 'Memory (header x-svc-memory-state)',
  continuity: 'Shortening (header x-svc-continuity-state)',
  end: 'How an answer ended (svc requests)',
  error: 'Errors of svc itself (field code)',
};

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

test('docs/states.md says of every state and error what svc requests says', () => {
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

test('a state is found by its name', () => {
  expect(stateText('recalled')).toMatchObject({ kind: 'memory' });
  expect(stateText('UPSTREAM_TIMEOUT')).toMatchObject({ kind: 'error' });
  expect(stateText('zebra')).toBeUndefined();
});
