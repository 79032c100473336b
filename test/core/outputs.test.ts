import { expect, test } from 'vitest';
import type { Dialect, RequestView } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { outputsOf, type ToolOutput, seenOutputsOf } from '../../src/core/shortening/outputs.ts';
import { viewRequest } from '../support/view-of.ts';
import { type Round, sessionBody } from '../support/tool-session.ts';

function viewOfRounds(dialect: Dialect, rounds: readonly Round[]): RequestView {
  return viewOfBody(dialect, sessionBody(dialect, rounds));
}

function viewOfBody(dialect: Dialect, body: unknown): RequestView {
  const view = viewRequest(Buffer.from(JSON.stringify(body)), dialect);
  if (view === undefined) throw new Error('The test body cannot be read.');
  return view;
}

function outputsIn(view: RequestView): readonly ToolOutput[] {
  return outputsOf(view);
}

function round(id: string, output: string, other: Partial<Round> = {}): Round {
  return { id, tool: 'Bash', args: { command: 'ls' }, output, ...other };
}

test.each(DIALECTS)(
  '%s: an output knows its call, its tool, its text and where it stands',
  (dialect) => {
    const text = 'first "line"\n\tsecond Ω \u0001 line';
    const view = viewOfRounds(dialect, [round('call_1', text), round('call_2', 'other')]);
    const [first, second] = outputsIn(view);
    expect(first).toMatchObject({ callId: 'call_1', tool: 'Bash', text, timesRead: 0 });
    expect(second?.callId).toBe('call_2');
    const { start = 0, end = 0 } = first?.content ?? {};
    expect(JSON.parse(`"${view.bytes.toString('utf8', start, end)}"`)).toBe(text);
  },
);

test('an output in the only text part of a list is that part’s string', () => {
  const content = [{ type: 'text', text: 'said' }];
  const view = viewOfBody('anthropic_messages', {
    messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content }] }],
  });
  const [output] = outputsIn(view);
  expect(view.bytes.toString('utf8', output?.content.start, output?.content.end)).toBe('said');
});

test.each([
  ['a picture', [{ type: 'image', source: {} }]],
  [
    'a picture beside a text',
    [
      { type: 'text', text: 'a' },
      { type: 'image', source: {} },
    ],
  ],
  [
    'two texts',
    [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ],
  ],
  ['a part with a mark of its own', [{ type: 'text', text: 'a', cache_control: {} }]],
  ['no text', []],
  ['null', null],
])('an output that is %s is left alone', (_, content) => {
  const view = viewOfBody('anthropic_messages', {
    messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content }] }],
  });
  expect(outputsIn(view)).toEqual([]);
});

test('what a provider ran by itself is left alone', () => {
  const block = { type: 'web_search_tool_result', tool_use_id: 'a', content: 'found' };
  const messages = [{ role: 'assistant', content: [block] }];
  expect(outputsIn(viewOfBody('anthropic_messages', { messages }))).toEqual([]);
});

test('reminders at the end are the client’s, those further up are in what the tool read', () => {
  const reminder = '<system-reminder>\n41 % left\n</system-reminder>';
  const file = `before\n${reminder}\nafter`;
  const glued = round('a', `${file}\n\n${reminder}\n${reminder}\n`);
  const [first, second] = outputsIn(viewOfRounds('anthropic_messages', [glued, round('b', file)]));
  expect(first?.text).toBe(file);
  expect(first?.digest).toBe(second?.digest);
});

const TYPED = [
  'The user sent the following message:\nnever touch the file prod.env',
  'The user sent a new message while you were working:\nnever touch the file prod.env',
];
const NOTES = [
  ...TYPED.map((typed) => `<system-reminder>\n${typed}\n</system-reminder>`),
  `<system-reminder>\n${TYPED[0]}: see <system-reminder>\n</system-reminder>`,
  `<system-reminder>\n${TYPED[1]}</system-reminder> and <system-reminder> too\n</system-reminder>`,
  '<system-reminder>\nPostToolUse hook: 😀 a "quoted" \\ file\n</system-reminder>\n',
  '<system-reminder>\nThe hook names the tag\n<system-reminder>\n</system-reminder>',
];

test.each(DIALECTS)(
  '%s: the bytes of an output are those that its tool said, and nothing that a client added',
  (dialect) => {
    const said = 'Ω 😀 "line"\n\t\\ \u0001 end';
    for (const [at, note] of NOTES.entries()) {
      for (const isList of [false, true]) {
        const all = `${said}\n\n${note}${at % 2 === 0 ? '' : `\n${NOTES[0]}`}`;
        const bytes = bodyWithOutput(dialect, all, isList);
        const view = viewRequest(bytes, dialect);
        const [output] = view === undefined ? [] : outputsIn(view);
        expect(output?.text).toBe(said);
        const { start = 0, end = 0 } = output?.content ?? {};
        expect(JSON.parse(`"${bytes.toString('utf8', start, end)}"`)).toBe(said);
        const rest = bytes.toString('utf8', end, end + JSON.stringify(all).length);
        expect(rest.startsWith(JSON.stringify(all.slice(said.length)).slice(1))).toBe(true);
      }
    }
  },
);

/** The string is written with escapes that JSON.stringify does not use. */
function bodyWithOutput(dialect: Dialect, text: string, isList: boolean): Buffer {
  const [type, output] = [dialect === 'openai_responses' ? 'input_text' : 'text', '@@'];
  const body = JSON.stringify(sessionBody(dialect, [round('a', output)]));
  const content = JSON.stringify(text).replaceAll('Ω', String.raw`\u03a9`);
  return Buffer.from(
    body.replace('"@@"', () => (isList ? `[{"type":"${type}","text":${content}}]` : content)),
  );
}

test('bytes that are no UTF-8 in front of a reminder leave the output alone', () => {
  const body = bodyWithOutput('anthropic_messages', `x\n${NOTES[0]}`, false);
  const at = body.indexOf('"x\\n');
  const broken = Buffer.concat([
    body.subarray(0, at + 1),
    Buffer.from([0xf0, 0xff, 0xf1]),
    body.subarray(at + 1),
  ]);
  const view = viewRequest(broken, 'anthropic_messages');
  expect(view === undefined ? [] : outputsIn(view)).toEqual([]);
});

test('the answer of reading an elided output again is known by the reference in its call', () => {
  const again = round('a', 'text', { args: { command: 'svc memory get m_abcdefghijklmnop' } });
  const view = viewOfRounds('openai_responses', [again, round('b', 'other')]);
  expect(outputsIn(view).map(({ timesRead }) => timesRead)).toEqual([1, 0]);
});

test('a client’s own stub marks itself and every earlier output of the same file', () => {
  const read = (id: string, file: string, output: string): Round =>
    round(id, output, { tool: 'Read', args: { file_path: file } });
  const unchanged = 'File unchanged since last read. The content is still current.';
  const rounds = [
    read('a', '/src/a.ts', 'A'),
    read('b', '/src/b.ts', 'B'),
    read('c', '/src/a.ts', unchanged),
    read('d', '/src/a.ts', 'A again'),
    round('e', '[Old tool result content cleared]'),
  ];
  const outputs = outputsIn(viewOfRounds('anthropic_messages', rounds));
  const marked = outputs.filter(({ isClients }) => isClients).map(({ callId }) => callId);
  expect(marked).toEqual(['a', 'c', 'e']);
});

test('calls and results that no client sends today are passed over', () => {
  for (const messages of [
    [{ role: 'user', content: [{ type: 'tool_result' }, { tool_use_id: 'a' }, 3, null] }],
    [{ role: 'assistant', content: [{ type: 'tool_use', id: 7, input: 'x' }] }],
    [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 1, content: 'x' }] }],
  ]) {
    expect(outputsIn(viewOfBody('anthropic_messages', { messages }))).toEqual([]);
  }
});

test.each(DIALECTS)('%s: what the newest item holds was not seen yet, but may refer', (dialect) => {
  const seenIn = (view: RequestView) => seenOutputsOf(view);
  const read = { tool: 'Read', args: { file_path: '/a.ts' } };
  const rounds = [
    round('call_1', 'the file', read),
    round('call_2', 'other'),
    round('call_3', 'new'),
  ];
  const view = viewOfRounds(dialect, rounds);
  expect(seenIn(view)).toEqual(outputsIn(view).slice(0, 2));
  const unchanged = round('call_3', 'File unchanged since last read. See above.', read);
  const referring = viewOfRounds(dialect, [...rounds.slice(0, 2), unchanged]);
  expect(seenIn(referring).map(({ isClients }) => isClients)).toEqual([true, false]);
  expect(seenIn(referring)).toEqual(outputsIn(referring).slice(0, 2));
});
