import { describe, expect, test } from 'vitest';
import { type Item, accepted, outcome } from './conversation.ts';
import type { Judgement } from './judgement.ts';
import { type Readings, strictSettings } from './settings.ts';
import { StrictProvider } from './strict-provider.ts';

// Reasoning of OpenAI: https://developers.openai.com/api/docs/guides/keep-prefix-unchanged, copies of
// 2026-11, excerpts. Where they leave a thing open there is a reading for each answer.

interface Request {
  readonly model: string;
  readonly instructions?: string;
  readonly tools?: unknown;
  readonly text?: unknown;
  readonly reasoning?: unknown;
  readonly input: readonly Item[];
}

const said = (role: string, words: string): Item => ({
  type: 'message',
  role,
  content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text: words }],
});

const BEGUN: Request = {
  model: 'gpt-6.2',
  instructions: 'Be kind.',
  tools: [{ type: 'function', name: 'shell' }],
  input: [said('developer', 'You are an agent.'), said('user', 'one')],
};

function judge(provider: StrictProvider, json: object): Judgement {
  return provider.judge({ dialect: 'openai_responses', isCount: false, betas: [], json });
}

function goOn(provider: StrictProvider, request: Request, id: string): Request {
  const reasoning = { type: 'reasoning', id, summary: [], encrypted_content: '' };
  const output = accepted(judge(provider, request)).seal<Item>([reasoning, said('assistant', id)]);
  return { ...request, input: [...request.input, ...output, said('user', 'next')] };
}

function talk(provider: StrictProvider, model = BEGUN.model): Request {
  return goOn(provider, goOn(provider, { ...BEGUN, model }, 'rs_1'), 'rs_2');
}

function at(request: Request, index: number, item: Item): Request {
  return { ...request, input: request.input.map((it, place) => (place === index ? item : it)) };
}

const BOTH = [
  { id: 'rs_1', reason: 'prefix_mismatch' },
  { id: 'rs_2', reason: 'prefix_mismatch' },
];

describe('reasoning behind a changed prefix', () => {
  test.each<[string, (request: Request) => Request, readonly object[]]>([
    ['nothing changed', (it) => it, []],
    ['a developer message', (it) => at(it, 0, said('developer', 'Other.')), BOTH],
    ['a prompt between', (it) => at(it, 4, said('user', 'edited')), BOTH.slice(1)],
    ['tools', (it) => ({ ...it, tools: [] }), BOTH],
    ['text.format', (it) => ({ ...it, text: { format: { type: 'json_object' } } }), BOTH],
    ['verbosity', (it) => ({ ...it, text: { verbosity: 'low' } }), []],
    ['instructions from GPT-6.2 on', (it) => ({ ...it, instructions: 'x' }), []],
    [
      'a moved breakpoint',
      (it) =>
        at(it, 1, {
          ...said('user', 'one'),
          content: [
            { type: 'input_text', text: 'one', prompt_cache_breakpoint: { mode: 'explicit' } },
          ],
        }),
      [],
    ],
  ])('%s', (_, change, dropped) => {
    const provider = new StrictProvider();
    const judgement = accepted(judge(provider, change(talk(provider))));
    expect(judgement.transformations).toEqual(dropped);
    expect(provider.lost).toHaveLength(dropped.length);
  });

  test('instructions count before GPT-6.2', () => {
    const provider = new StrictProvider();
    const request = { ...talk(provider, 'gpt-6.1'), instructions: 'x' };
    expect(accepted(judge(provider, request)).transformations).toEqual(BOTH);
  });

  test('a compaction item of OpenAI keeps the reasoning behind it', () => {
    const provider = new StrictProvider();
    const { input, ...rest } = talk(provider);
    const compaction = { type: 'compaction', id: 'cmp_1', encrypted_content: 'opaque' };
    const compacted = { ...rest, input: [compaction, ...input.slice(2)] };
    expect(accepted(judge(provider, compacted)).transformations).toEqual([]);
    const later = goOn(provider, compacted, 'rs_3');
    expect(accepted(judge(provider, later)).transformations).toEqual([]);
    const edited = at(later, 4, said('user', 'edited'));
    expect(accepted(judge(provider, edited)).transformations).toEqual(
      [BOTH[1], { ...BOTH[0], id: 'rs_3' }].slice(1),
    );
  });

  test('older models and other makers drop nothing', () => {
    for (const model of ['gpt-5.2', 'gpt-4.1', 'o4-mini', 'qwen3']) {
      const provider = new StrictProvider();
      const request = at(talk(provider, model), 0, said('developer', 'Other.'));
      expect(accepted(judge(provider, request)).transformations).toEqual([]);
    }
  });

  test.each<[Partial<Readings>, (request: Request) => Request, number]>([
    [{ reasoningBoundFrom: [6, 0] }, (it) => ({ ...it, tools: [] }), 0],
    [{ reasoningBoundFrom: [5, 6] }, (it) => ({ ...it, tools: [] }), 2],
    [{ effortCounts: false }, (it) => ({ ...it, reasoning: { effort: 'low' } }), 0],
    [{ effortCounts: true }, (it) => ({ ...it, reasoning: { effort: 'low' } }), 2],
    [{ earlierReasoningCounts: false }, withoutFirst, 0],
    [{ earlierReasoningCounts: true }, withoutFirst, 1],
  ])('under the reading %o', (readings, change, dropped) => {
    const provider = new StrictProvider(strictSettings({ readings }));
    accepted(judge(provider, change(talk(provider, 'gpt-5.6'))));
    expect(provider.lost).toHaveLength(dropped);
  });
});

function withoutFirst(request: Request): Request {
  return { ...request, input: request.input.filter(({ id }) => id !== 'rs_1') };
}

describe('what OpenAI refuses', () => {
  const call = { type: 'function_call', call_id: 'c1', name: 'shell', arguments: '{}' };
  const output = { type: 'function_call_output', call_id: 'c1', output: 'r' };
  const alone = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: '' };

  test.each<[string, object, RegExp]>([
    ['a call without output', { input: [call] }, /^No tool output found for function call c1/],
    ['an output without call', { input: [output] }, /^No tool call found for function call output/],
    [
      'reasoning alone',
      { input: [alone, said('user', 'x')] },
      /without its required following item/,
    ],
    [
      'foreign reasoning',
      { input: [{ ...alone, encrypted_content: 'gAAAAforeign' }, said('assistant', 'x')] },
      /could not be verified/,
    ],
    [
      'prompt_cache_retention',
      { model: 'gpt-6', prompt_cache_retention: '24h', input: 'x' },
      /Unsupp/,
    ],
  ])('%s', (_, json, expected) => {
    expect(outcome(judge(new StrictProvider(), json))).toMatch(expected);
  });
});

describe('Chat Completions', () => {
  const chat = (messages: readonly Item[]): Judgement =>
    new StrictProvider().judge({
      dialect: 'openai_chat_completions',
      isCount: false,
      betas: [],
      json: { model: 'gpt-5', messages },
    });
  const prompt = { role: 'user', content: 'x' };
  const calls = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'shell', arguments: '{}' } }],
  };
  const result = { role: 'tool', tool_call_id: 'c1', content: 'r' };

  test('calls go with their results', () => {
    expect(outcome(chat([prompt, calls, result, prompt]))).toEqual([]);
    expect(outcome(chat([prompt, calls, prompt]))).toMatch(/did not have response messages: c1$/);
    expect(outcome(chat([prompt, calls]))).toMatch(/did not have response messages/);
    expect(outcome(chat([prompt, result]))).toMatch(/must be a response to a preceeding message/);
  });
});
