import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DIALECTS } from '../../../src/core/dialects/apis.ts';
import { readItem } from '../../../src/core/dialects/dialects.ts';

describe('Messages', () => {
  const read = (value: unknown) => readItem('anthropic_messages', value);

  test('a user message that answers calls names them', () => {
    const content = [
      { type: 'tool_result', tool_use_id: 'a' },
      { type: 'tool_result', tool_use_id: 'b', content: 'x' },
    ];
    expect(read({ role: 'user', content })).toMatchObject({
      role: 'user',
      humanText: '',
      toolResultIds: ['a', 'b'],
    });
  });

  test('an assistant message: text, calls, thinking', () => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 'a', name: 'Bash', input: {} },
      { type: 'mcp_tool_use', id: 'm', name: 'find' },
    ];
    expect(read({ role: 'assistant', content })).toMatchObject({
      role: 'assistant',
      assistantText: 'I look.',
      toolCalls: [
        { id: 'a', name: 'Bash' },
        { id: 'm', name: 'find' },
      ],
      toolResultIds: [],
      hasReasoning: true,
    });
  });

  test('a tool of the provider answers itself in the same message', () => {
    const content = [
      { type: 'server_tool_use', id: 's', name: 'web_search' },
      { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
      { type: 'text', text: 'Found ' },
      { type: 'text', text: 'it.' },
    ];
    expect(read({ role: 'assistant', content })).toMatchObject({
      assistantText: 'Found it.',
      toolCalls: [{ id: 's', name: 'web_search' }],
      toolResultIds: ['s'],
    });
  });

  test.each(['redacted_thinking', 'thinking', 'connector_text', 'compaction'])(
    '%s must stay as it is',
    (type) => {
      expect(read({ role: 'assistant', content: [{ type }] }).hasReasoning).toBe(true);
    },
  );

  test('the client states folder and branch in its environment, nowhere else', () => {
    const environment =
      '<system-reminder>\n# Environment\n - Primary working directory: /home/user/a b\n - Is a git repository: true\n</system-reminder>';
    const status =
      "<system-reminder>\nAs you answer the user's questions, you can use the following context:\n# gitStatus\nThis is the git status.\n\nCurrent branch: feat/x\n\nMain branch: main\n</system-reminder>";
    const file =
      '<system-reminder>\nResult of calling the Read tool:\nPrimary working directory: /other\n</system-reminder>';
    const user = (...texts: string[]) => ({
      role: 'user',
      content: texts.map((text) => ({ type: 'text', text })),
    });
    expect(read(user(file, environment, status))).toMatchObject({
      workingFolder: '/home/user/a b',
      branch: 'feat/x',
    });
    expect(read(user(file))).not.toHaveProperty('workingFolder');
    expect(read(user('Primary working directory: /typed'))).not.toHaveProperty('workingFolder');
    expect(
      read({
        role: 'system',
        content: '# Environment\n - Primary working directory: /home/user/project\n',
      }).workingFolder,
    ).toBe('/home/user/project');
  });

  test('of two folders in a text the first one counts', () => {
    const text = 'Working directory: /a\nWorking directory: /b';
    expect(read({ role: 'system', content: text }).workingFolder).toBe('/a');
    expect(
      read({ role: 'system', content: 'the working directory: it matters' }),
    ).not.toHaveProperty('workingFolder');
  });
});

describe('Responses', () => {
  const read = (value: unknown) => readItem('openai_responses', value);

  test('an input of one string is what a person typed', () => {
    expect(read('hello')).toMatchObject({ role: 'user', humanText: 'hello' });
  });

  test.each([
    [
      { type: 'function_call', call_id: 'c', name: 'ls' },
      { role: 'assistant', toolCalls: [{ id: 'c', name: 'ls' }], toolResultIds: [] },
    ],
    [
      { type: 'custom_tool_call', call_id: 'c', name: 'patch' },
      { toolCalls: [{ id: 'c', name: 'patch' }] },
    ],
    [
      { type: 'local_shell_call', call_id: 'c', id: 'i' },
      { toolCalls: [{ id: 'c', name: 'local_shell_call' }] },
    ],
    [
      { type: 'web_search_call', id: 'w' },
      { toolCalls: [{ id: 'w', name: 'web_search_call' }], toolResultIds: ['w'] },
    ],
    [
      { type: 'mcp_call', id: 'm', name: 'find' },
      { toolCalls: [{ id: 'm', name: 'find' }], toolResultIds: ['m'] },
    ],
    [
      { type: 'mcp_approval_request', id: 'a' },
      { toolCalls: [{ id: 'a' }], toolResultIds: [] },
    ],
    [
      { type: 'mcp_approval_response', approval_request_id: 'a' },
      { role: 'tool', toolResultIds: ['a'] },
    ],
    [
      { type: 'function_call_output', call_id: 'c', output: 'x' },
      { role: 'tool', toolResultIds: ['c'] },
    ],
    [
      { type: 'custom_tool_call_output', call_id: 'c' },
      { role: 'tool', toolResultIds: ['c'] },
    ],
    [
      { type: 'reasoning', summary: [], encrypted_content: 'x' },
      { role: 'other', hasReasoning: true },
    ],
    [
      { type: 'compaction', encrypted_content: 'x' },
      { role: 'other', hasReasoning: true },
    ],
    [{ type: 'compaction_trigger' }, { clientOrder: 'compaction' }],
    [{ type: 'item_reference', id: 'msg_1' }, { isReference: true }],
    [{ role: 'developer', content: 'x' }, { role: 'system' }],
    [
      {
        type: 'message',
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'Hi.' },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
      { role: 'assistant', assistantText: 'Hi.' },
    ],
    [
      { role: 'user', content: [{ type: 'input_image', image_url: 'x' }] },
      { role: 'user', humanText: '' },
    ],
  ])('%j', (item, want) => {
    expect(read(item)).toMatchObject(want);
  });

  test('Codex states its folder', () => {
    const text =
      '<environment_context>\n  <cwd>/home/user/project</cwd>\n  <shell>bash</shell>\n</environment_context>';
    expect(read({ role: 'user', content: [{ type: 'input_text', text }] }).workingFolder).toBe(
      '/home/user/project',
    );
  });
});

describe('Chat Completions', () => {
  const read = (value: unknown) => readItem('openai_chat_completions', value);

  test.each([
    [
      { role: 'assistant', content: 'a', tool_calls: [{ id: 'c', function: { name: 'ls' } }] },
      { assistantText: 'a', toolCalls: [{ id: 'c', name: 'ls' }] },
    ],
    [
      { role: 'assistant', content: null, function_call: { name: 'ls' } },
      { toolCalls: [{ id: 'ls', name: 'ls' }] },
    ],
    [
      { role: 'function', name: 'ls', content: 'x' },
      { role: 'tool', toolResultIds: ['ls'] },
    ],
    [
      { role: 'tool', tool_call_id: 'c', content: 'x' },
      { role: 'tool', toolResultIds: ['c'] },
    ],
    [
      { role: 'assistant', content: 'a', reasoning_content: 'hm' },
      { hasReasoning: true, assistantText: 'a' },
    ],
    [
      { role: 'assistant', content: 'a', reasoning_content: '', reasoning: null },
      { hasReasoning: false },
    ],
    [{ role: 'assistant', content: null, refusal: 'No.' }, { assistantText: '' }],
    [
      { role: 'developer', content: 'Current working directory: /home/user/p' },
      { role: 'system', workingFolder: '/home/user/p' },
    ],
    [
      { role: 'user', content: [{ type: 'image_url' }, { type: 'text', text: 'what is it?' }] },
      { humanText: 'what is it?' },
    ],
    [
      { role: 'system', content: 'You are a title generator. You output ONLY a title.' },
      { clientOrder: 'side' },
    ],
  ])('%j', (item, want) => {
    expect(read(item)).toMatchObject(want);
  });
});

describe.each(DIALECTS)('%s', (dialect) => {
  const known = fc.constantFrom(
    'user',
    'assistant',
    'system',
    'tool',
    'message',
    'text',
    'tool_use',
    'tool_result',
    'function_call',
    'reasoning',
    'thinking',
    'x_output',
    'x_call',
  );
  const names = fc.constantFrom(
    'role',
    'type',
    'content',
    'text',
    'tool_calls',
    'id',
    'call_id',
    'name',
    'tool_use_id',
    'function',
    'summary',
    'internal_chat_message_metadata_passthrough',
    'content_item_kinds',
  );
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      known,
      fc.string(),
      fc.constant(null),
      fc.double(),
      fc.boolean(),
      fc.array(tie('any'), { maxLength: 4 }),
      fc.dictionary(names, tie('any'), { maxKeys: 5 }),
    ),
  })).any;

  test('any item reads as something, whatever its types', () => {
    fc.assert(
      fc.property(value, (item) => {
        const traits = readItem(dialect, item);
        expect(typeof traits.humanText).toBe('string');
        expect(typeof traits.assistantText).toBe('string');
        expect(
          traits.toolCalls.every(
            ({ id, name }) => typeof id === 'string' && typeof name === 'string',
          ),
        ).toBe(true);
        expect(traits.toolResultIds.every((id) => typeof id === 'string')).toBe(true);
      }),
      { numRuns: 700 },
    );
  });
});
