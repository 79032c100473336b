import { describe, expect, test } from 'vitest';
import type { RequestView } from '../../src/core/conversation/view.ts';
import { applyEdits } from '../../src/core/plan/item-edits.ts';
import { viewRequest } from '../support/view-of.ts';
import { seenOutputsOf } from '../../src/core/shortening/outputs.ts';
import {
  type Clearable,
  clearableOutputs,
  clearingEdit,
} from '../../src/core/shortening/provider-clearing.ts';
import { type Round, sessionBody } from '../support/tool-session.ts';

// The form of the edit: https://platform.claude.com/docs/en/build-with-claude/context-editing, 2026-08-22.

const EDIT = {
  type: 'clear_tool_uses_20250919',
  trigger: { type: 'input_tokens', value: 60_000 },
  keep: { type: 'tool_uses', value: 4 },
  clear_at_least: { type: 'input_tokens', value: 20_000 },
};

function viewOf(body: string): RequestView {
  const view = viewRequest(Buffer.from(body), 'anthropic_messages');
  if (view === undefined) throw new Error('The body of this test is no request.');
  return view;
}

const round = (id: string, other: Partial<Round> = {}): Round => ({
  id,
  tool: 'Bash',
  args: { command: id },
  output: `output of ${id}`,
  ...other,
});
const rounds = (count: number): Round[] =>
  Array.from({ length: count }, (_, at) => round(`call_${at}`));

function clearable(body: object, keepRounds = 4): Clearable | undefined {
  const view = viewOf(JSON.stringify(body));
  const outputs = seenOutputsOf(view);
  return clearableOutputs(view, outputs, keepRounds);
}

const session = (list: readonly Round[]) => sessionBody('anthropic_messages', list);
const textsOf = (found: Clearable | undefined) => found?.outputs.map(({ text }) => text);

describe('the outputs that may be cleared', () => {
  test('are those older than the newest rounds', () => {
    const found = clearable(session(rounds(6)));
    expect(textsOf(found)).toEqual(['output of call_0', 'output of call_1']);
    expect(found).toMatchObject({ keptCalls: 4, keptTools: [] });
    expect(clearable(session(rounds(4)))).toBeUndefined();
  });

  test('a round of several calls stays whole, and so does what the model has not answered', () => {
    const call = (id: string) => ({ type: 'tool_use', id, name: 'Bash', input: {} });
    const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: id });
    const ids = ['a', 'b', 'c'];
    const body = session(rounds(2));
    const messages = [
      ...(body['messages'] as object[]),
      { role: 'assistant', content: ids.map(call) },
      { role: 'user', content: ids.map(result) },
    ];
    expect(clearable({ ...body, messages }, 0)).toMatchObject({ keptCalls: 3 });
    expect(clearable({ ...body, messages }, 2)).toMatchObject({ keptCalls: 4 });
  });

  test('what sub-agents and file lists answered stays by its tool’s name', () => {
    const list = [round('x', { tool: 'Glob' }), ...rounds(6)];
    const found = clearable(session(list));
    expect(textsOf(found)).toEqual(['output of call_0', 'output of call_1']);
    expect(found).toMatchObject({ keptTools: ['Glob'] });
  });

  const REMINDER = 'said\n<system-reminder>\nBe careful.\n</system-reminder>';
  test.each([
    ['has a secret in it', `<private>word</private> ${'x'.repeat(40)}`],
    ['ends with a reminder of the client', REMINDER],
    ['was cleared by the client', '[Old tool result content cleared]'],
  ])('are none where one of them %s', (_, output) => {
    expect(clearable(session([round('x', { output }), ...rounds(6)]))).toBeUndefined();
    // A new one is not cleared yet.
    expect(clearable(session([...rounds(6), round('x', { output })]))).toBeDefined();
  });

  test('are none where one of them is a picture, or a provider’s own tool answered', () => {
    const picture = [{ type: 'image', source: { type: 'base64', data: 'aaaa' } }];
    const body = session(rounds(6));
    const messages = body['messages'] as { content: object[] }[];
    const drawn = messages.map((it, at) => {
      return at === 2 ? { ...it, content: [{ ...it.content[0], content: picture }] } : it;
    });
    expect(clearable({ ...body, messages: drawn })).toBeUndefined();
    const search = [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
    ];
    const searched = [...messages, { role: 'assistant', content: search }];
    expect(clearable({ ...body, messages: searched })).toBeUndefined();
  });
});

describe('the edit of the body', () => {
  const asked: Clearable = { outputs: [], keptCalls: 4, keptTools: [] };
  const edited = (body: string, terms = asked): unknown => {
    const view = viewOf(body);
    const edit = clearingEdit(view, terms);
    if (edit === undefined) return undefined;
    const bytes = Buffer.concat(applyEdits(view.bytes, [edit])).toString();
    // All that the client wrote is still there, byte for byte.
    const { start, end } = edit;
    const length = bytes.length - (body.length - end);
    expect(bytes.slice(0, start) + bytes.slice(length)).toBe(
      body.slice(0, start) + body.slice(end),
    );
    return JSON.parse(bytes);
  };
  const body = (more: string): string =>
    `  { "model" : "m",${more} "messages":[{"role":"user","content":"hi"}] }`;
  const parsed = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
  const thinking = { type: 'clear_thinking_20251015', keep: 'all' };

  test.each([
    ['no field', '', { edits: [EDIT] }],
    ['null', '"context_management":null,', { edits: [EDIT] }],
    ['an empty object', '"context_management" : { } ,', { edits: [EDIT] }],
    ['another field', '"context_management":{"a":1},', { a: 1, edits: [EDIT] }],
    ['an empty list', '"context_management":{"edits":[ ]},', { edits: [EDIT] }],
    [
      'an edit of another kind, which stays the first',
      `"context_management":{"edits":[ ${JSON.stringify(thinking)} ], "a":1},`,
      { edits: [thinking, EDIT], a: 1 },
    ],
    [
      'two fields, of which the last one counts',
      '"context_management":{"edits":[1]},"context_management":{"edits":[]},',
      { edits: [EDIT] },
    ],
  ])('is added to %s', (_, more, context_management) => {
    expect(edited(body(more))).toEqual({ ...parsed, context_management });
  });

  test.each([
    '"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},',
    '"context_management":{"edits":[{"type":"clear_tool_uses_20270101"}]},',
    '"context_management":{"edits":{}},',
    '"context_management":"all",',
  ])('is none where the client decides itself, or in a form that svc does not know: %s', (more) => {
    expect(edited(body(more))).toBeUndefined();
  });

  test('names the tools whose outputs stay', () => {
    expect(edited(body(''), { ...asked, keptTools: ['Glob', 'Task'] })).toMatchObject({
      context_management: { edits: [{ ...EDIT, exclude_tools: ['Glob', 'Task'] }] },
    });
  });
});
