import { expect, test } from 'vitest';
import { DIALECTS, type Dialect } from '../../src/core/conversation/dialect.ts';
import { outputsOf } from '../../src/core/shortening/output-list.ts';
import { readItemTools } from '../../src/core/shortening/outputs.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { countRereads } from '../../src/core/shortening/rereads.ts';
import type { RequestView } from '../../src/core/conversation/view.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';
import { viewOf } from '../support/view-of.ts';

const READ: Round = {
  id: 'c1',
  tool: 'Read',
  args: { file_path: '/a/parser.ts' },
  output: longOutput('parser', 300),
};
const SHELL: Round = {
  id: 'c2',
  tool: 'Bash',
  args: { command: 'make' },
  output: longOutput('make', 300),
};

function viewAfter(dialect: Dialect, rounds: readonly Round[], more: readonly unknown[] = []) {
  const body = sessionBody(dialect, rounds);
  const key = dialect === 'openai_responses' ? 'input' : 'messages';
  return viewOf(dialect, { ...body, [key]: [...(body[key] as unknown[]), ...more] });
}

function outputs(view: RequestView) {
  return outputsOf(view, (item) => readItemTools(view, item));
}

test.each(DIALECTS)('%s: an output that is read again by its reference counts once', (dialect) => {
  const [made] = outputs(viewAfter(dialect, [SHELL]));
  const ref = referenceOf(made?.digest ?? '');
  const again = { ...SHELL, id: 'c3', args: { command: `svc memory get ${ref}` } };
  const view = viewAfter(dialect, [SHELL, READ, again]);
  const elided = outputs(view).slice(0, 1);
  expect(countRereads(view, elided)).toEqual({ outputs: 1, files: 0 });
  // Nothing of it is left out: then it is no reading again.
  expect(countRereads(view, [])).toEqual({ outputs: 0, files: 0 });
  // Another tool of the same server, with the reference alone.
  const tool = { ...again, tool: 'mcp__svc__memory_get', args: { ref } };
  expect(countRereads(viewAfter(dialect, [SHELL, READ, tool]), elided).outputs).toBe(1);
  // One round later it was counted already.
  const later = viewAfter(dialect, [SHELL, READ, again, { ...READ, id: 'c4' }]);
  expect(countRereads(later, elided).outputs).toBe(0);
});

test.each(DIALECTS)('%s: a file that is read again after its output is gone counts', (dialect) => {
  const again = { ...READ, id: 'c3' };
  const view = viewAfter(dialect, [READ, SHELL, again]);
  const [read, made] = outputs(view);
  expect(countRereads(view, read === undefined ? [] : [read]).files).toBe(1);
  expect(countRereads(view, made === undefined ? [] : [made]).files).toBe(0);
  const edited = { ...again, tool: 'Edit' };
  const view2 = viewAfter(dialect, [READ, SHELL, edited]);
  expect(countRereads(view2, outputs(view2).slice(0, 1)).files).toBe(0);
});

test.each(DIALECTS)('%s: a file that a shell prints again counts, whoever read it', (dialect) => {
  const printed = (id: string, command: unknown): Round => ({ ...SHELL, id, args: { command } });
  const filesAfter = (first: Round, again: Round): number => {
    const view = viewAfter(dialect, [first, { ...SHELL, id: 'between' }, again]);
    return countRereads(view, outputs(view).slice(0, 1)).files;
  };
  expect(filesAfter(READ, printed('c3', 'cd /a && cat parser.ts | head -40'))).toBe(1);
  expect(filesAfter(printed('c1', "sed -n '1,80p' a/parser.ts"), { ...READ, id: 'c3' })).toBe(1);
  const words = ['bash', '-lc', 'nl -ba ./a/parser.ts'];
  expect(filesAfter(printed('c1', 'cat a/parser.ts'), printed('c3', words))).toBe(1);
  const cmd = { ...SHELL, id: 'c3', tool: 'exec_command', args: { cmd: 'tail -n 20 a/parser.ts' } };
  expect(filesAfter(READ, cmd)).toBe(1);
  // Another file, a change of it, and one that is written.
  expect(filesAfter(READ, printed('c3', 'cat /b/parser.ts xparser.ts'))).toBe(0);
  expect(filesAfter(READ, printed('c3', "sed -i 's/a/b/' /a/parser.ts"))).toBe(0);
  expect(filesAfter(READ, printed('c3', 'cat > /a/parser.ts <<E\ncat /a/parser.ts\nE'))).toBe(0);
  expect(filesAfter({ ...READ, tool: 'Edit' }, printed('c3', 'cat /a/parser.ts'))).toBe(0);
});

test('a request that ends with what a person said counts nothing', () => {
  const again = { ...READ, id: 'c3' };
  const human = [{ role: 'user', content: 'And now the tests.' }];
  const view = viewAfter('anthropic_messages', [READ, SHELL, again], human);
  expect(countRereads(view, outputs(view).slice(0, 1))).toEqual({ outputs: 0, files: 0 });
});
