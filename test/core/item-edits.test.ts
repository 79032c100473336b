import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import {
  applyEdits,
  contentForm,
  type ContentForm,
  insertBlock,
} from '../../src/core/plan/item-edits.ts';
import { viewRequest } from '../support/view-of.ts';

function inserted(dialect: Dialect, text: string, form: ContentForm): string {
  const view = viewRequest(Buffer.from(text), dialect);
  const item = view?.items.at(-1);
  if (view === undefined || item === undefined) throw new Error('The body has no items.');
  const edits = insertBlock(view, item, { block: 'B "q"', form });
  return Buffer.concat(applyEdits(view.bytes, edits)).toString();
}

test('a block goes inside a string after a blank line', () => {
  expect(
    inserted('openai_chat_completions', '{"messages":[{"content":"a \\u00e9"}]}', 'text'),
  ).toBe(String.raw`{"messages":[{"content":"a \u00e9\n\nB \"q\""}]}`);
});

test('a block goes after the last part, a tool result too, and the space after it stays', () => {
  const body = '{"messages":[{"content":[ {"type":"tool_result","content":"r"} \n]}]}';
  const expected = String.raw`{"messages":[{"content":[ {"type":"tool_result","content":"r"},{"type":"text","text":"B \"q\""} ${'\n'}]}]}`;
  expect(inserted('anthropic_messages', body, 'part')).toBe(expected);
});

// A text part behind a tool result makes the model end its answer early.
test('a new block behind a tool result goes to the end of its text', () => {
  const body = (result: string) =>
    `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":${result}}]}]}`;
  expect(newForm(body('"r"'))).toBe('text');
  expect(newForm(body('"{}"'))).toBeUndefined();
  expect(inserted('anthropic_messages', body('"r"'), 'text')).toBe(
    body(String.raw`"r\n\nB \"q\""`),
  );
});

function newForm(text: string): ContentForm | undefined {
  const view = viewRequest(Buffer.from(text), 'anthropic_messages');
  const item = view?.items.at(-1);
  return view === undefined || item === undefined ? undefined : contentForm(view, item);
}

test('a new block leaves a string a string, and a list gets one part', () => {
  expect(newForm('{"messages":[{"role":"user","content":"a"}]}')).toBe('text');
  expect(newForm('{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}')).toBe(
    'part',
  );
});

// The provider caches the parts of a message. A string is one part to it, and a block inside would be none.
test('a block that was a part stays one when the client turns the list back into a string', () => {
  const list = '{"messages":[{"role":"user","content":[{"type":"text","text":"a\\t"}]}]}';
  const string = '{"messages":[{"role":"user","content":"a\\t"}]}';
  expect(inserted('anthropic_messages', string, 'part')).toBe(
    inserted('anthropic_messages', list, 'part'),
  );
});

test('a block that was text stays in the text when the client turns the string into a list', () => {
  const list =
    '{"messages":[{"content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}';
  expect(inserted('anthropic_messages', list, 'text')).toBe(
    String.raw`{"messages":[{"content":[{"type":"text","text":"a\n\nB \"q\"","cache_control":{"type":"ephemeral"}}]}]}`,
  );
});

test('a Responses part is an input_text, and an input string takes the block inside', () => {
  expect(inserted('openai_responses', '{"input":[{"content":[]}]}', 'part')).toBe(
    String.raw`{"input":[{"content":[{"type":"input_text","text":"B \"q\""}]}]}`,
  );
  expect(inserted('openai_responses', '{"input":"a"}', 'text')).toBe(
    String.raw`{"input":"a\n\nB \"q\""}`,
  );
});

test.each([
  ['no content', '{"input":[{"type":"function_call","call_id":"c"}]}'],
  ['an output that is no text', '{"input":[{"type":"function_call_output","output":{"a":1}}]}'],
  ['content that is null', '{"input":[{"content":null}]}'],
  ['content that is an object', '{"input":[{"content":{"text":"a"}}]}'],
  ['no members', '{"input":["a"]}'],
])('an item with %s takes no block', (_name, body) => {
  const view = viewRequest(Buffer.from(body), 'openai_responses');
  const item = view?.items[0];
  if (view === undefined || item === undefined) throw new Error('The body has no items.');
  expect(contentForm(view, item)).toBeUndefined();
  expect(insertBlock(view, item, { block: 'b', form: 'text' })).toEqual([]);
  expect(insertBlock(view, item, { block: 'b', form: 'part' })).toEqual([]);
});
