import { expect, test } from 'vitest';
import { countReadings, seenOutputsOf } from '../../src/core/shortening/outputs.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { longOutput } from '../support/tool-session.ts';
import { viewOf } from '../support/view-of.ts';

const call = (id: string, command: string) => ({
  role: 'assistant',
  content: [{ type: 'tool_use', id, name: 'Bash', input: { command } }],
});
const result = (id: string, content: string) => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: id, content }],
});
const note = { role: 'system', content: 'A reminder of the client.' };

test.each([
  ['at the end', []],
  ['in front of a note of the client', [note]],
])('a reading whose answer is %s counts once', (_name, behind) => {
  const output = longOutput('first', 600);
  const before = [{ role: 'user', content: 'Read it.' }, call('c1', 'cat a'), result('c1', output)];
  const first = viewOf('anthropic_messages', { messages: [...before, call('c2', 'ls')] });
  const elided = seenOutputsOf(first);
  const reference = referenceOf(elided[0]?.digest ?? '');
  const read = [call('c2', `svc memory get ${reference}`), result('c2', 'again'), ...behind];
  const again = viewOf('anthropic_messages', { messages: [...before, ...read] });
  expect(countReadings(again, elided)).toBe(1);
  const more = [...before, ...read, call('c3', 'ls'), result('c3', 'a')];
  const later = viewOf('anthropic_messages', { messages: more });
  expect(countReadings(later, elided)).toBe(0);
});
