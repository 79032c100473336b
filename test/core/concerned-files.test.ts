import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { exchangeBefore } from '../../src/core/conversation/exchanges.ts';
import { concernedFiles } from '../../src/core/memory/concerned-files.ts';
import { type Round, sessionBody } from '../support/tool-session.ts';
import { viewOf } from '../support/view-of.ts';

const DIALECTS: readonly Dialect[] = [
  'anthropic_messages',
  'openai_responses',
  'openai_chat_completions',
];

type Step = readonly [tool: string, args: Readonly<Record<string, unknown>>];

function filesOf(dialect: Dialect, steps: readonly Step[], said = ''): readonly string[] {
  const rounds = steps.map(([tool, args], at): Round => ({
    id: `c${at}`,
    tool,
    args,
    output: 'x',
  }));
  const view = viewOf(dialect, sessionBody(dialect, rounds));
  const exchange = exchangeBefore(view.items);
  if (exchange === undefined) throw new Error('The session has no exchange.');
  return concernedFiles(view, exchange, said);
}

const PATCH = `*** Begin Patch
*** Update File: src/pool.ts
@@
-5432
+6543
*** Add File: docs/pool.md
+text
*** End Patch`;

test.each(DIALECTS)(
  '%s: an exchange concerns the files that it edits, the newest first',
  (dialect) => {
    const files = filesOf(dialect, [
      ['Read', { file_path: '/p/README.md' }],
      ['Edit', { file_path: '/p/src/a.ts', old_string: '1', new_string: '2' }],
      ['Write', { file_path: '/p/src/b.ts', content: 'x' }],
      ['Edit', { file_path: '/p/src/a.ts', old_string: '2', new_string: '3' }],
    ]);
    expect(files).toEqual(['/p/src/a.ts', '/p/src/b.ts']);
  },
);

test.each(DIALECTS)('%s: and the files that it read and names in its texts', (dialect) => {
  const files = filesOf(
    dialect,
    [
      ['Read', { file_path: '/p/src/settings.ts' }],
      ['Read', { file_path: '/p/README.md' }],
      ['Edit', { file_path: '/p/src/a.ts' }],
    ],
    'The port stands in `settings.ts`, and a.ts reads it.',
  );
  expect(files).toEqual(['/p/src/a.ts', '/p/src/settings.ts']);
});

test.each(DIALECTS)('%s: where nothing was edited or named, all that was read', (dialect) => {
  const files = filesOf(dialect, [
    ['Read', { file_path: '/p/src/settings.ts' }],
    ['Bash', { command: 'cat src/a.ts | head -5; sed -n 1,9p src/b.ts' }],
    ['exec_command', { cmd: 'tail log.txt', workdir: '/p/sub' }],
    ['shell', { command: ['bash', '-lc', 'head -3 c.ts'] }],
  ]);
  expect(files).toEqual(['c.ts', '/p/sub/log.txt', 'src/a.ts', 'src/b.ts', '/p/src/settings.ts']);
});

test.each(DIALECTS)(
  '%s: a patch edits the files that it names, in whatever form it comes',
  (dialect) => {
    const forms: readonly Step[] = [
      ['apply_patch', { input: PATCH }],
      ['shell', { command: ['apply_patch', PATCH] }],
      ['exec_command', { cmd: `apply_patch <<'EOF'\n${PATCH}\nEOF` }],
    ];
    for (const form of forms) {
      expect(filesOf(dialect, [['Read', { path: 'x.ts' }], form])).toEqual([
        'src/pool.ts',
        'docs/pool.md',
      ]);
    }
  },
);

test('a patch that is the whole argument names its files', () => {
  const view = viewOf('openai_responses', {
    model: 'm',
    input: [
      { type: 'message', role: 'user', content: 'fix it' },
      { type: 'custom_tool_call', call_id: 'c', name: 'apply_patch', input: PATCH },
      { type: 'custom_tool_call_output', call_id: 'c', output: 'Done' },
    ],
  });
  const exchange = exchangeBefore(view.items);
  expect(exchange && concernedFiles(view, exchange, '')).toEqual(['src/pool.ts', 'docs/pool.md']);
});

test('one tool that views and edits says which in its arguments', () => {
  const tool = 'str_replace_based_edit_tool';
  const view: Step = [tool, { command: 'view', path: 'a.ts' }];
  const edit: Step = [tool, { command: 'insert', path: 'b.ts' }];
  expect(filesOf('anthropic_messages', [view, edit])).toEqual(['b.ts']);
  expect(filesOf('anthropic_messages', [view])).toEqual(['a.ts']);
});

test('arguments of any form, thousands of calls and 10,000 files in one call are bounded and never fail', () => {
  const odd: readonly Step[] = [
    ['Edit', { file_path: 7 }],
    ['Edit', { file_path: ['a'] }],
    ['Bash', { command: null }],
    ['Read', { path: '', workdir: {} }],
  ];
  expect(filesOf('anthropic_messages', odd)).toEqual([]);
  const calls = Array.from({ length: 4_000 }, (_, at): Step => ['Edit', { path: `${at}.ts` }]);
  const files = filesOf('anthropic_messages', calls);
  expect(files.length).toBeLessThanOrEqual(256);
  expect(files[0]).toBe('3999.ts');
  const lines = Array.from({ length: 10_000 }, (_, at) => `*** Update File: ${at}.ts`);
  const many = `*** Begin Patch\n${lines.join('\n')}\n*** End Patch`;
  expect(filesOf('anthropic_messages', [['apply_patch', { input: many }]]).length).toBe(64);
  const wide = `cat ${lines.map((_, at) => `${at}.ts`).join(' ')}`;
  expect(filesOf('anthropic_messages', [['Bash', { command: wide }]]).length).toBe(64);
});

test('a call too large to be read in time is passed over, and those beside it are not', () => {
  const large: Step = ['Write', { file_path: 'big.ts', content: 'x'.repeat(2_000_000) }];
  const files = filesOf('anthropic_messages', [['Edit', { file_path: 'a.ts' }], large]);
  expect(files).toEqual(['a.ts']);
});
