import { expect, test } from 'vitest';
import { itemNotes } from '../../src/core/plan/item-notes.ts';
import type { Shortening } from '../../src/core/plan/plan.ts';
import type { Replacement } from '../../src/core/shortening/outputs.ts';
import type { RequestView } from '../../src/core/conversation/view.ts';

/** The notes of a request: each item is in them once, and no text is. */

interface Given {
  readonly roles: readonly string[];
  /** Items whose output left, with its digest. */
  readonly elided?: readonly number[];
  readonly block?: number;
  readonly omitted?: readonly [from: number, to: number];
}

const ITEM_TOKENS = 100;
const OUTPUT_TOKENS = 90;

function notesOf({ roles, elided = [], block, omitted }: Given) {
  const items = roles.map((role, at) => ({
    role,
    tokens: ITEM_TOKENS,
    start: at * 10,
    end: at * 10 + 9,
    fingerprint: `fingerprint-${at}`,
    humanText: 'a secret text',
    soFar: { humans: { index: roles.lastIndexOf('user') } },
  }));
  const view = { shell: { tokens: 500 }, items } as unknown as RequestView;
  const shortening = {
    elided: elided.map((item) => ({
      output: { item, tokens: OUTPUT_TOKENS, digest: `${item}`.padEnd(43, 'x'), tool: 'Bash' },
      saved: 60,
      text: 'a stub',
    })) as unknown as Replacement[],
    omitted:
      omitted === undefined
        ? []
        : [
            {
              span: { start: omitted[0] * 10, end: omitted[1] * 10 },
              texts: [],
              fingerprint: '',
              items: omitted[1] - omitted[0],
              tokens: ITEM_TOKENS * (omitted[1] - omitted[0]),
            },
          ],
    outcome: 'nothing',
  } as unknown as Shortening;
  const placed = block === undefined ? undefined : view.items[block];
  const placements =
    placed === undefined
      ? []
      : [
          {
            item: placed,
            block: 'a secret block',
            form: 'text' as const,
            space: 'default',
            tokens: 40,
          },
        ];
  return itemNotes({ view, placements, shortening });
}

test('unchanged items are one run, and edits stand between them in the order of the request', () => {
  const roles = ['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant', 'user'];
  const notes = notesOf({ roles, elided: [2], block: 6 });
  expect(notes).toEqual([
    { edit: 'same', count: 2, tokens: 700 },
    {
      edit: 'stub',
      count: 1,
      tokens: 90,
      after: 30,
      kind: 'tool',
      tool: 'Bash',
      refs: [expect.stringMatching(/^m_/)],
    },
    { edit: 'same', count: 3, tokens: 300 },
    { edit: 'same', count: 1, tokens: 100, kind: 'prompt' },
    { edit: 'block', count: 1, tokens: 0, after: 40, refs: ['fingerprint-6'] },
  ]);
  expect(JSON.stringify(notes)).not.toContain('secret');
});

test('a left-out exchange is one note, and its items are in no other', () => {
  const roles = ['user', 'assistant', 'user', 'assistant', 'user'];
  expect(notesOf({ roles, omitted: [0, 2] })).toEqual([
    { edit: 'same', count: 0, tokens: 500 },
    { edit: 'left_out', count: 2, tokens: 200, after: 0, refs: [] },
    { edit: 'same', count: 2, tokens: 200 },
    { edit: 'same', count: 1, tokens: 100, kind: 'prompt' },
  ]);
});

test('a request with very many edits has a bounded row, and its newest edits are told singly', () => {
  const roles = Array.from({ length: 4000 }, (_, at) => (at % 2 === 0 ? 'assistant' : 'tool'));
  const elided = roles.flatMap((role, at) => (role === 'tool' ? [at] : []));
  const notes = notesOf({ roles: [...roles, 'user'], elided });
  expect(JSON.stringify(notes).length).toBeLessThan(12_000);
  const stubs = notes.filter(({ edit }) => edit === 'stub');
  expect(stubs.reduce((sum, { count }) => sum + count, 0)).toBe(2000);
  expect(stubs.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(2000 * OUTPUT_TOKENS);
  expect(stubs.at(-1)?.count).toBe(1);
});
