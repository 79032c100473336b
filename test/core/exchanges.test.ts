import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Dialect, Item } from '../../src/core/conversation/view.ts';
import { answeredRounds, groupExchanges } from '../../src/core/conversation/exchanges.ts';
import { recordings } from '../support/recordings.ts';
import { viewOf } from '../support/view-of.ts';

function group(dialect: Dialect, list: readonly unknown[]) {
  const key = dialect === 'openai_responses' ? 'input' : 'messages';
  return groupExchanges(viewOf(dialect, { [key]: list }).items);
}

const user = (...texts: string[]) => ({
  role: 'user',
  content: texts.map((text) => ({ type: 'text', text })),
});
const said = (text: string) => ({ role: 'assistant', content: [{ type: 'text', text }] });
const calls = (...ids: string[]) => ({
  role: 'assistant',
  content: ids.map((id) => ({ type: 'tool_use', id, name: 'Bash' })),
});
const answers = (...ids: string[]) => ({
  role: 'user',
  content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id })),
});

describe('Messages', () => {
  const groupOf = (...list: readonly unknown[]) => group('anthropic_messages', list);

  const answered = (...list: readonly unknown[]) =>
    answeredRounds(viewOf('anthropic_messages', { messages: list }).items);

  test('an exchange is a person’s message and everything up to the next one', () => {
    const list = [
      user('a'),
      calls('1'),
      answers('1'),
      calls('2', '3'),
      answers('3', '2'),
      said('A.'),
      user('b'),
      said('B.'),
    ];
    expect(answered(...list)).toEqual([2, 4]);
    expect(groupOf(...list)).toMatchObject([
      {
        start: 0,
        end: 6,
        human: 0,
        humanText: 'a',
        assistantText: 'A.',
        isOpen: false,
        hasToolState: true,
      },
      {
        start: 6,
        end: 8,
        human: 6,
        humanText: 'b',
        assistantText: 'B.',
        isOpen: false,
        hasToolState: false,
      },
    ]);
  });

  test('the last text is what the model said after its last call', () => {
    const wordsAndCall = {
      role: 'assistant',
      content: [...said('Let me look.').content, ...calls('1').content],
    };
    const lastOf = (...list: readonly unknown[]) => groupOf(user('a'), ...list)[0]?.lastText;
    expect(lastOf(wordsAndCall, answers('1'), said('The tail is lost.'), said('Fixed.'))).toBe(
      'The tail is lost.\n\nFixed.',
    );
    expect(lastOf(said('A.'))).toBe('A.');
    expect(lastOf(wordsAndCall, answers('1'))).toBe('');
  });

  test('what precedes the first person’s message is a group of its own', () => {
    const reminder = user('<system-reminder>\nx\n</system-reminder>');
    expect(groupOf(reminder, user('a'))).toMatchObject([
      { start: 0, end: 1, human: undefined, humanText: '', isOpen: false },
      { start: 1, end: 2, human: 1, isOpen: true },
    ]);
  });

  test('messages in a row are one exchange, until the model has done something', () => {
    expect(groupOf(user('a'), user('b'), said('B.'), user('c'))).toMatchObject([
      { start: 0, end: 3, human: 1, humanText: 'a\n\nb' },
      { start: 3, end: 4, humanText: 'c' },
    ]);
  });

  test('text typed inside a tool loop begins an exchange; the result still belongs to its call', () => {
    const queued = {
      type: 'text',
      text: 'The user sent a new message while you were working:\nno\n\nThis is how Claude Code surfaces it.',
    };
    const both = { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1' }, queued] };
    const list = [user('a'), calls('1'), both, said('Ok.')];
    expect(groupOf(...list)).toMatchObject([
      { start: 0, end: 2, isOpen: true },
      { start: 2, end: 4, humanText: 'no', isOpen: false, hasToolState: true },
    ]);
    expect(answered(...list)).toEqual([2]);
  });

  test('an answer is due while a call waits or a result was not spoken about', () => {
    const open = (...list: readonly unknown[]) => groupOf(user('a'), ...list).at(-1)?.isOpen;
    expect(open()).toBe(true);
    expect(open(said('A.'))).toBe(false);
    expect(
      open({
        role: 'assistant',
        content: [
          { type: 'text', text: 'x' },
          { type: 'tool_use', id: '1' },
        ],
      }),
    ).toBe(true);
    expect(open(calls('1'), answers('1'))).toBe(true);
    expect(open(calls('1'), answers('1'), said('A.'))).toBe(false);
  });

  test('a search that the provider ran leaves the answer whole', () => {
    const content = [
      { type: 'server_tool_use', id: 's' },
      { type: 'web_search_tool_result', tool_use_id: 's' },
      { type: 'text', text: 'A.' },
    ];
    expect(groupOf(user('a'), { role: 'assistant', content })).toMatchObject([
      { isOpen: false, hasToolState: true },
    ]);
  });

  test('an interruption marks the exchange that was interrupted, not the one after it', () => {
    const exchanges = groupOf(
      user('a'),
      said('half'),
      user('[Request interrupted by user]\n', 'b'),
      said('B.'),
    );
    expect(exchanges).toMatchObject([
      { humanText: 'a', assistantText: 'half', wasInterrupted: true },
      { humanText: 'b', assistantText: 'B.', wasInterrupted: false },
    ]);
  });

  test('results that nobody asked for are kept apart from every round', () => {
    expect(answered(user('a'), answers('9', ''), calls(''), said('A.'))).toEqual([]);
  });
});

describe('Responses', () => {
  test('calls side by side are one round; reasoning counts as something done', () => {
    const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'ls' });
    const result = (id: string) => ({ type: 'function_call_output', call_id: id });
    const list = [
      { role: 'user', content: 'a' },
      { type: 'reasoning', encrypted_content: 'x' },
      call('1'),
      call('2'),
      result('2'),
      result('1'),
      call('3'),
      result('3'),
      { role: 'user', content: '<turn_aborted>\nx\n</turn_aborted>' },
      { role: 'user', content: 'b' },
    ];
    expect(answeredRounds(viewOf('openai_responses', { input: list }).items)).toEqual([4, 7]);
    expect(group('openai_responses', list)).toMatchObject([
      { start: 0, end: 9, hasReasoning: true, wasInterrupted: true, isOpen: true },
      { start: 9, end: 10, humanText: 'b', wasInterrupted: false },
    ]);
  });
});

test('exchanges cover the items without a gap, and only the first may lack a person', () => {
  const item = fc.constantFrom(
    user('a'),
    user('<x_y>b</x_y>'),
    said('A.'),
    calls('1'),
    answers('1'),
    { role: 'system', content: 'x' },
    { role: 'new' },
    user('[Request interrupted by user]', 'c'),
  );
  fc.assert(
    fc.property(fc.array(item, { maxLength: 20 }), (list) => {
      const exchanges = group('anthropic_messages', list);
      let at = 0;
      for (const [index, exchange] of exchanges.entries()) {
        expect(exchange.start).toBe(at);
        expect(exchange.end).toBeGreaterThan(at);
        expect(exchange.human === undefined).toBe(index === 0 && exchange.humanText === '');
        at = exchange.end;
      }
      expect(at).toBe(list.length);
    }),
  );
});

test('the answered rounds are those of all exchanges, also where ids repeat and answers are late', () => {
  const id = fc.constantFrom('', '1', '2', '3');
  const ids = fc.array(id, { minLength: 1, maxLength: 3 });
  const item = fc.oneof(
    fc.constantFrom(user('a'), said('A.')),
    ids.map((some) => calls(...some)),
    ids.map((some) => answers(...some)),
    id.map((one) => ({ role: 'user', content: [...answers(one).content, ...user('b').content] })),
  );
  fc.assert(
    fc.property(fc.array(item, { maxLength: 20 }), (list) => {
      const { items } = viewOf('anthropic_messages', { messages: list });
      const starts = roundsOf(items).flatMap(({ results }) => results.slice(0, 1));
      expect(answeredRounds(items)).toEqual(starts.toSorted((a, b) => a - b));
    }),
  );
});

test('every recorded call that was answered is in a round with its answer', () => {
  for (const { dialect, body, name } of recordings()) {
    if (dialect === undefined) continue;
    const { items } = viewOf(dialect, body);
    const results = new Set(roundsOf(items).flatMap((round) => round.results));
    const answering = items.flatMap((item, index) =>
      item.toolResultIds.length > 0 ? [index] : [],
    );
    expect(
      [...results].toSorted((a, b) => a - b),
      name,
    ).toEqual(answering);
  }
});

/** The rounds of each exchange with the items that answer their calls, wherever those are. */
function roundsOf(items: readonly Item[]): { readonly results: number[] }[] {
  const byId = new Map<string, { readonly results: number[] }>();
  return groupExchanges(items).flatMap(({ start, end }) => {
    const rounds: { readonly results: number[] }[] = [];
    for (const [at, { toolCalls, toolResultIds }] of items.slice(start, end).entries()) {
      if (toolCalls.length > 0 && rounds.at(-1)?.results.length !== 0) rounds.push({ results: [] });
      for (const { id } of toolCalls) byId.set(id, rounds.at(-1) ?? { results: [] });
      for (const id of new Set(toolResultIds)) {
        if (id === '') continue;
        const results = byId.get(id)?.results;
        if (results?.at(-1) !== start + at) results?.push(start + at);
      }
    }
    return rounds;
  });
}
