import { expect, test } from 'vitest';
import { recallUse } from '../../src/core/recall/recall-use.ts';
import { viewRequest } from '../support/view-of.ts';
import type { RequestView } from '../../src/core/conversation/view.ts';

const REF = 'm_abcdefghijklmnop';
const BLOCK =
  `<svc-memory>2026-11-02 ${REF}: deploys run from tools/ship-it.sh on port 6432, ` +
  'and the parser module is slow.</svc-memory>';

function viewOf(messages: readonly object[]): RequestView {
  const view = viewRequest(Buffer.from(JSON.stringify({ messages })), 'anthropic_messages');
  if (view === undefined) throw new Error('The test body cannot be read.');
  return view;
}

function use(messages: readonly object[], answer: string, item = 0) {
  const view = viewOf(messages);
  const placed = view.items[item];
  if (placed === undefined) throw new Error('No such item.');
  return recallUse(
    view,
    [{ item: placed, block: BLOCK, form: 'text', space: 'default', tokens: 30 }],
    answer,
  );
}

const asked = { role: 'user', content: 'How do we deploy?' };

test('an answer that names what only the block names has used it', () => {
  const recall = { exchange: 0, refs: [REF] };
  expect(use([asked], 'Run tools/ship-it.sh.')).toEqual({ ...recall, isUsed: true });
  expect(use([asked], 'It listens on 6432 there.')).toMatchObject({ isUsed: false });
  expect(use([asked], 'The parser module is slow.')).toEqual({ ...recall, isUsed: false });
  // The request has the name itself.
  const knows = { role: 'user', content: 'Is it tools/ship-it.sh that deploys?' };
  expect(use([knows], 'Yes, tools/ship-it.sh.')).toMatchObject({ isUsed: false });
});

test('a model that reads a recalled memory in full has used it', () => {
  const input = { command: `svc memory get ${REF}` };
  const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'Bash', input }] };
  const result = {
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: 'a', content: 'text' }],
  };
  expect(use([asked, call, result], 'ok')).toMatchObject({ isUsed: true });
  const other = JSON.parse(JSON.stringify(call).replace(REF, 'm_zzzzzzzzzzzzzzzz')) as object;
  expect(use([asked, other, result], 'ok')).toMatchObject({ isUsed: false });
});

test('a block for an agent names its memories in short', () => {
  const view = viewOf([asked]);
  const [item] = view.items;
  if (item === undefined) throw new Error('No such item.');
  const block = '<svc-memory>\n2026-11-02 m_abcdefgh:\n- deploys run at night\n</svc-memory>';
  const found = recallUse(
    view,
    [{ item, block, form: 'text', space: 'default', tokens: 30 }],
    'So.',
  );
  expect(found?.refs).toEqual(['m_abcdefgh']);
});

test('a block of an earlier prompt is not counted with the newest one', () => {
  const answered = { role: 'assistant', content: 'So.' };
  const next = { role: 'user', content: 'And then?' };
  expect(use([asked, answered, next], 'tools/ship-it.sh')).toBeUndefined();
  expect(use([asked, answered, next], 'tools/ship-it.sh', 2)).toMatchObject({ exchange: 1 });
});
