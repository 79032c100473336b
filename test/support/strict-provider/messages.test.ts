import { describe, expect, test } from 'vitest';
import {
  BETA,
  type Item,
  type Request,
  accepted,
  edited,
  goOn,
  judgeMessages,
  outcome,
  text,
  thinking,
  user,
  withMessages,
  withoutThinking,
} from './conversation.ts';
import { CONTEXT_BETA } from './messages-shape.ts';
import { type StrictSettings, strictSettings } from './settings.ts';
import { StrictProvider, causedBetween, sealBoth } from './strict-provider.ts';

// The prefix check of Anthropic, rule by rule: https://platform.claude.com/docs/en/build-with-claude/
// preserved-thinking, copy of 2026-09-26, where a rule names no other source.

const MODEL = 'claude-opus-5-5';
const TOOLS = [{ name: 'Bash', input_schema: { type: 'object' } }];

function begun(model = MODEL): Request {
  const system = [text('Be kind.')];
  return { model, system, tools: TOOLS, messages: [user([text('one'), text('two')])] };
}

/** Three prompts, two answers with thinking. */
function talk(provider: StrictProvider, model = MODEL): Request {
  return goOn(provider, goOn(provider, begun(model)));
}

const BOUND =
  'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".';
const NEEDS_HEADER =
  'That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.';

type Change = (request: Request) => Request;

const content = (message: Item): Item[] => message['content'] as Item[];

const VALID: Readonly<Record<string, Change>> = {
  'nothing changed': (request) => request,
  'a cache mark moved': (request) =>
    edited(request, 0, (it) => ({
      ...it,
      content: content(it).map((block) => ({ ...block, cache_control: { type: 'ephemeral' } })),
    })),
  'keys in another order': (request) => ({
    messages: request.messages.map((it) => Object.fromEntries(Object.entries(it).toReversed())),
    tools: request.tools,
    system: request.system,
    model: request.model,
  }),
  'a parameter outside the prefix': (request) => ({
    ...request,
    thinking: { type: 'adaptive', display: 'omitted' },
    metadata: { user_id: 'x' },
    tool_choice: { type: 'none' },
    max_tokens: 1,
  }),
  'a deferred tool': (request) => ({
    ...request,
    tools: [...TOOLS, { name: 'Late', defer_loading: true, input_schema: {} }],
  }),
  'thinking gone from the start': (request) => edited(request, 1, withoutThinking),
  'thinking gone from the end': (request) => edited(request, 3, withoutThinking),
  'all thinking gone': (request) => edited(edited(request, 1, withoutThinking), 3, withoutThinking),
  'a history that begins again': (request) => ({ ...request, messages: [user('summary')] }),
};

const INVALID: Readonly<Record<string, readonly [Change, RegExp]>> = {
  'the system prompt': [(it) => ({ ...it, system: [text('Be rude.')] }), /`system` prompt/],
  'a tool added': [(it) => ({ ...it, tools: [...TOOLS, { name: 'B' }] }), /`tools` list/],
  'a tool removed': [(it) => ({ ...it, tools: [] }), /`tools` list/],
  'a text block added to an earlier prompt': [
    (it) => edited(it, 0, (message) => user([...content(message), text('memory')])),
    /messages\.1/,
  ],
  'a text block gone from an earlier prompt': [
    (it) => edited(it, 0, (message) => user(content(message).slice(0, 1))),
    /messages\.0\.content\.1/,
  ],
  'white space in a text': [
    (it) => edited(it, 0, () => user([text('one '), text('two')])),
    /messages\.0\.content\.0/,
  ],
};

describe('the prefix check', () => {
  test("binds a connector's signed text like thinking", () => {
    const provider = new StrictProvider();
    const signed = { type: 'connector_text', text: 'I ask.', signature: '' };
    const request = goOn(provider, begun(), [signed, text('answer')]);
    expect(outcome(judgeMessages(provider, request))).toEqual([]);
    const changed = edited(request, 0, () => user('another'));
    expect(outcome(judgeMessages(provider, changed))).toMatch(
      /^messages\.1\.content\.0: Invalid `signature` in `connector_text` block\. The block is bound/,
    );
  });

  test.each(Object.entries(VALID))('accepts %s', (_, change) => {
    const provider = new StrictProvider();
    expect(outcome(judgeMessages(provider, change(talk(provider))))).toEqual([]);
    expect(provider.refusals).toEqual([]);
    expect(provider.lost).toEqual([]);
  });

  test.each(Object.entries(INVALID))('refuses %s', (_, [change, named]) => {
    const provider = new StrictProvider();
    const message = outcome(judgeMessages(provider, change(talk(provider))));
    expect(message).toMatch(named);
    expect(String(message).startsWith(`${BOUND} ${NEEDS_HEADER} `)).toBe(true);
    expect(provider.refusals).toEqual([
      { status: 400, path: 'messages.1.content.0', reason: 'prefix', message },
    ]);
  });

  test('refuses the first block behind the edit, and no earlier one', () => {
    const provider = new StrictProvider();
    const request = edited(talk(provider), 2, () => user('edited'));
    const judgement = judgeMessages(provider, request, { betas: [BETA] });
    expect(outcome(judgement)).toMatch(/^messages\.3\.content\.0: (?!.*requires)/);
  });

  test('a tool result that is shortened makes the thinking behind it invalid', () => {
    const provider = new StrictProvider();
    const call = { type: 'tool_use', id: 't1', name: 'Bash', input: {} };
    const first = goOn(provider, begun(), [thinking(), call]);
    const result = (words: string): Item =>
      user([{ type: 'tool_result', tool_use_id: 't1', content: words }]);
    const request = goOn(
      provider,
      edited(first, 2, () => result('a long output')),
    );
    expect(outcome(judgeMessages(provider, request))).toEqual([]);
    const short = edited(request, 2, () => result('[left out]'));
    expect(outcome(judgeMessages(provider, short))).toMatch(/^messages\.3\.content\.0: /);
  });

  test('a block that is missing in the middle makes the later ones invalid', () => {
    const provider = new StrictProvider();
    const request = goOn(provider, talk(provider));
    const judgement = judgeMessages(provider, edited(request, 3, withoutThinking));
    expect(outcome(judgement)).toMatch(/^messages\.5\.content\.0: .*different conversation/);
  });

  test('a block that comes back makes those invalid that were made while it was gone', () => {
    const provider = new StrictProvider();
    const whole = talk(provider);
    const stripped = edited(whole, 3, withoutThinking);
    const later = goOn(provider, stripped);
    expect(outcome(judgeMessages(provider, later))).toEqual([]);
    const back = edited(later, 3, () => whole.messages[3] ?? {});
    expect(outcome(judgeMessages(provider, back))).toMatch(/^messages\.5\.content\.0: /);
  });

  test('count_tokens runs the same check', () => {
    const provider = new StrictProvider();
    const request = { ...talk(provider), system: 'Be rude.' };
    expect(outcome(judgeMessages(provider, request, { isCount: true }))).toMatch(/different conv/);
  });

  test('thinking behind a compaction block of its own answer is bound to the block alone', () => {
    const provider = new StrictProvider();
    const compaction = { type: 'compaction', content: 'sum' };
    const request = goOn(provider, begun(), [compaction, thinking(), text('done')]);
    const messages = request.messages.slice(-2);
    expect(outcome(judgeMessages(provider, { ...request, messages }))).toEqual([]);
  });

  test('a compaction block restarts the prefix', () => {
    const provider = new StrictProvider();
    const compaction = { role: 'assistant', content: [{ type: 'compaction', content: 'sum' }] };
    const first = begun();
    const compacted = { ...first, messages: [...first.messages, compaction, user('next')] };
    const request = goOn(provider, compacted);
    expect(
      outcome(
        judgeMessages(
          provider,
          edited(request, 0, () => user('x')),
        ),
      ),
    ).toEqual([]);
    expect(
      outcome(
        judgeMessages(
          provider,
          edited(request, 2, () => user('x')),
        ),
      ),
    ).toMatch(/bound/);
  });

  test('drop_block drops the failing block and the later ones, and keeps those made afterwards', () => {
    const provider = new StrictProvider();
    const drops = {
      thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } },
    };
    const request = {
      ...edited(goOn(provider, talk(provider)), 2, () => user('edited')),
      ...drops,
    };
    const judgement = accepted(judgeMessages(provider, request, { betas: [BETA] }));
    const dropped = ['messages.3.content.0', 'messages.5.content.0'].map((path) => ({
      type: 'thinking_dropped',
      path,
      reason: 'prefix_binding_mismatch',
    }));
    expect(judgement.transformations).toEqual(dropped);
    const answer = { role: 'assistant', content: judgement.seal([thinking(), text('ok')]) };
    const next = withMessages(request, answer, user('next'));
    const later = accepted(judgeMessages(provider, next, { betas: [BETA] }));
    expect(later.transformations).toEqual(dropped);
    expect(provider.lost).toHaveLength(4);
  });

  test('the field without its header is refused', () => {
    const binding = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } };
    const judgement = judgeMessages(new StrictProvider(), { ...begun(), thinking: binding });
    expect(outcome(judgement)).toMatch(/block_binding: Extra inputs are not permitted$/);
  });

  test.each([
    ['claude-opus-5-5', { thinking: { type: 'disabled' } }, /"thinking.type.disabled" is not supp/],
    [
      'claude-fable-5-1',
      { thinking: { type: 'enabled', budget_tokens: 9 } },
      /type.enabled" is not/,
    ],
    ['claude-opus-5-5', { tool_choice: { type: 'any' } }, /Forced tool use is not supported/],
    ['claude-opus-5-5', { tool_choice: { type: 'auto' } }, /^$/],
    ['claude-opus-5', { thinking: { type: 'disabled' } }, /^$/],
  ])('%s with %j', (model, fields, said) => {
    const judgement = judgeMessages(new StrictProvider(), { ...begun(model), ...fields });
    expect(outcome(judgement).toString()).toMatch(said);
  });

  test('a damaged or foreign signature is another error, which no setting changes', () => {
    const provider = new StrictProvider();
    for (const signature of ['Zm9yZWlnbg==', '']) {
      const answer = { role: 'assistant', content: [{ ...thinking(), signature }, text('ok')] };
      const request = {
        ...withMessages(begun('claude-opus-5'), answer, user('next')),
        thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } },
      };
      expect(outcome(judgeMessages(provider, request, { betas: [BETA] }))).toBe(
        'messages.1.content.0: Invalid `signature` in `thinking` block',
      );
    }
  });

  test('an older account lets the block through, and tells with the header', () => {
    const provider = new StrictProvider(strictSettings({ account: 'old' }));
    const request = { ...talk(provider), system: 'Be rude.' };
    expect(accepted(judgeMessages(provider, request)).transformations).toBeUndefined();
    const told = accepted(judgeMessages(provider, request, { betas: [BETA] })).transformations;
    const allowed = { type: 'thinking_mismatch_allowed', reason: 'prefix_binding_mismatch' };
    expect(told).toEqual([
      { ...allowed, path: 'messages.1.content.0' },
      { ...allowed, path: 'messages.3.content.0' },
    ]);
    const asked = {
      ...request,
      thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'error' } },
    };
    expect(outcome(judgeMessages(provider, asked, { betas: [BETA] }))).toMatch(/different conv/);
  });

  test('Fable 5.2 enforces the check on an older account too', () => {
    const provider = new StrictProvider(strictSettings({ account: 'old' }));
    const request = { ...talk(provider, 'claude-fable-5-2'), system: 'Be rude.' };
    expect(outcome(judgeMessages(provider, request))).toMatch(/different conversation/);
  });

  test.each([
    'claude-opus-5',
    'claude-sonnet-5',
    'claude-fable-5',
    'claude-haiku-4-5-20251001',
    'claude-opus-4-5@20251101',
    'claude-3-7-sonnet-latest',
  ])('%s checks no prefix', (model) => {
    const provider = new StrictProvider();
    const request = { ...talk(provider, model), system: 'Be rude.' };
    expect(outcome(judgeMessages(provider, request))).toEqual([]);
  });

  test.each([
    'claude-fable-5-1',
    'claude-mythos-5-2',
    'claude-opus-5-5[1m]',
    'claude-sonnet-5-5',
    'claude-haiku-5-5-20261007',
    'claude-opus-6',
    'claude-chorus-7',
  ])('%s checks the prefix', (model) => {
    const provider = new StrictProvider();
    const request = { ...talk(provider, model), system: 'Be rude.' };
    expect(outcome(judgeMessages(provider, request))).toMatch(/different conversation/);
  });
});

describe('the model check', () => {
  test('a block that the model cannot read is dropped, and is read again when the model comes back', () => {
    const provider = new StrictProvider();
    const request = talk(provider, 'claude-fable-5-1');
    const moved = { ...request, model: MODEL };
    const judgement = accepted(judgeMessages(provider, moved, { betas: [BETA] }));
    expect(judgement.transformations).toEqual([
      { type: 'thinking_dropped', path: 'messages.1.content.0', reason: 'model_binding_mismatch' },
      { type: 'thinking_dropped', path: 'messages.3.content.0', reason: 'model_binding_mismatch' },
    ]);
    const back = { ...goOn(provider, moved), model: 'claude-fable-5-1' };
    expect(outcome(judgeMessages(provider, back))).toEqual([]);
  });

  test('every model reads the blocks of Haiku 5.5, which reads no others', () => {
    const provider = new StrictProvider();
    const request = talk(provider, 'claude-haiku-5-5');
    expect(outcome(judgeMessages(provider, { ...request, model: MODEL }))).toEqual([]);
    const edit = edited({ ...request, model: MODEL }, 0, () => user('x'));
    expect(outcome(judgeMessages(provider, edit))).toMatch(/different conversation/);
    const other = { ...talk(provider, 'claude-sonnet-5'), model: 'claude-haiku-5-5' };
    expect(outcome(judgeMessages(provider, other))).toContain('dropped model messages.1.content.0');
  });

  test('what is dropped is not billed', () => {
    const provider = new StrictProvider();
    const request = goOn(provider, begun('claude-fable-5-1'), [
      thinking('x'.repeat(8_000)),
      text('a'),
    ]);
    const read = accepted(judgeMessages(provider, request)).usage.input;
    const dropped = accepted(judgeMessages(provider, { ...request, model: MODEL })).usage.input;
    expect(read - dropped).toBeGreaterThan(2_000);
  });
});

describe('readings of what the documents leave open', () => {
  const asString = (request: Request): Request =>
    edited(request, 2, () => user([text('and now?')]));
  const turned = (request: Request): Request => ({
    ...request,
    tools: [...(request.tools as Item[])].toReversed(),
  });
  const withTwoTools = (provider: StrictProvider): Request =>
    goOn(provider, { ...begun(), tools: [...TOOLS, { name: 'Read' }] });

  test.each([
    [true, []],
    [false, /messages\.2/],
  ])('a string is one text block: %s', (stringIsOneBlock, expected) => {
    const provider = strictWith({ stringIsOneBlock });
    expectOutcome(outcome(judgeMessages(provider, asString(talk(provider)))), expected);
  });

  test.each([
    [false, []],
    [true, /`tools` list/],
  ])('the order of tools counts: %s', (toolOrderCounts, expected) => {
    const provider = strictWith({ toolOrderCounts });
    expectOutcome(outcome(judgeMessages(provider, turned(withTwoTools(provider)))), expected);
  });

  test.each([
    [false, []],
    [true, /different conversation/],
  ])('Mythos 5.1 checks: %s', (mythos51IsChecked, expected) => {
    const provider = strictWith({ mythos51IsChecked });
    const request = { ...talk(provider, 'claude-mythos-5-1'), system: 'Be rude.' };
    expectOutcome(outcome(judgeMessages(provider, request)), expected);
  });

  test.each([
    [false, []],
    [true, /different conversation/],
  ])('blocks of older models are bound: %s', (olderBlocksAreBound, expected) => {
    const provider = strictWith({ olderBlocksAreBound });
    const request = { ...talk(provider, 'claude-opus-5'), model: MODEL, system: 'Be rude.' };
    expectOutcome(outcome(judgeMessages(provider, request)), expected);
  });

  test('the error may name no change', () => {
    const provider = strictWith({ errorNamesChange: false });
    const request = { ...talk(provider), system: 'Be rude.' };
    expect(outcome(judgeMessages(provider, request))).toBe(`${BOUND} ${NEEDS_HEADER}`);
  });

  test.each([
    [true, []],
    [false, /Unexpected role "system"/],
  ])('Sonnet 5 takes system messages: %s', (sonnet5TakesSystem, expected) => {
    const request = withMessages(begun('claude-sonnet-5'), { role: 'system', content: 'x' });
    expectOutcome(outcome(judgeMessages(strictWith({ sonnet5TakesSystem }), request)), expected);
  });
});

function strictWith(readings: Partial<StrictSettings['readings']>): StrictProvider {
  return new StrictProvider(strictSettings({ readings }));
}

function expectOutcome(
  found: string | readonly string[],
  expected: readonly string[] | RegExp,
): void {
  if (expected instanceof RegExp) expect(found).toMatch(expected);
  else expect(found).toEqual(expected);
}

describe('what Anthropic refuses', () => {
  const assistant = (...blocks: Item[]): Item => ({ role: 'assistant', content: blocks });
  const system = (words: string): Item => ({ role: 'system', content: words });
  const call = { type: 'tool_use', id: 't1', name: 'Bash', input: {} };
  const result = { type: 'tool_result', tool_use_id: 't1', content: 'r' };
  const ok = assistant(text('ok'));

  test.each([
    ['no message', [], /^messages: at least one/],
    ['an answer first', [ok], /^messages: first message must use the "user" role/],
    ['an empty text', [user([text('')])], /^messages: text content blocks must be non-empty/],
    [
      'an empty message',
      [user([]), ok, user('x')],
      /^messages\.0: all messages must have non-empty/,
    ],
    [
      'a call without its result',
      [user('x'), assistant(call), user('y')],
      /^messages\.1: `tool_use`/,
    ],
    [
      'a text before the result',
      [user('x'), assistant(call), user([text('y'), result])],
      /^messages\.1: `tool_use` ids were found without/,
    ],
    ['a result without its call', [user([result])], /^messages\.0\.content\.0: unexpected/],
    ['system first', [system('x'), user('y')], /^messages\.0: use the top-level 'system'/],
    [
      'system after an answer',
      [user('x'), ok, system('y')],
      /^messages\.2: role 'system' must follow/,
    ],
    [
      'system before a prompt',
      [user('x'), system('y'), user('z')],
      /^messages\.1: role 'system' must pre/,
    ],
    [
      'system between call and result',
      [user('x'), assistant(call), system('y'), user([result])],
      /^messages\.2: role 'system' must follow/,
    ],
    [
      'an empty system message',
      [user('x'), system('')],
      /^messages\.1: system content must contain/,
    ],
    [
      'five cache marks',
      [
        user(
          Array.from({ length: 5 }, () => ({ ...text('x'), cache_control: { type: 'ephemeral' } })),
        ),
      ],
      /^A maximum of 4 blocks with cache_control may be provided\. Found 5\./,
    ],
  ])('%s', (_, messages, expected) => {
    expect(outcome(judgeMessages(new StrictProvider(), { model: MODEL, messages }))).toMatch(
      expected,
    );
  });

  test.each([
    [
      'two system messages between prompt and answer',
      [user('x'), system('a'), system('b'), ok, user('y')],
    ],
    ['a system message at the end', [user('x'), ok, user('y'), system('a')]],
    ['texts behind the results', [user('x'), assistant(call), user([result, text('y')])]],
    ['results in two messages', [user('x'), assistant(call), user([result]), user('y')]],
    ['an empty result', [user('x'), assistant(call), user([{ ...result, content: '' }])]],
  ])('but not %s', (_, messages) => {
    expect(outcome(judgeMessages(new StrictProvider(), { model: MODEL, messages }))).toEqual([]);
  });

  test('Haiku 4.5 takes no system message', () => {
    const request = { model: 'claude-haiku-4-5', messages: [user('x'), system('y')] };
    expect(outcome(judgeMessages(new StrictProvider(), request))).toMatch(
      /Unexpected role "system"/,
    );
  });
});

describe('context_management', () => {
  const clearing = { type: 'clear_tool_uses_20250919', keep: { type: 'tool_uses', value: 4 } };
  const thinkingEdit = { type: 'clear_thinking_20251015', keep: 'all' };
  const judged = (edits: readonly object[], betas = [CONTEXT_BETA]) => {
    const provider = new StrictProvider();
    const request = { ...talk(provider), context_management: { edits } };
    return outcome(judgeMessages(provider, request, { betas }));
  };

  test('is a parameter outside the prefix, and needs its header', () => {
    expect(judged([clearing])).toEqual([]);
    expect(judged([thinkingEdit, clearing])).toEqual([]);
    expect(judged([clearing], [])).toMatch(/^context_management: Extra inputs/);
  });

  test.each([
    [[clearing, thinkingEdit], /must be the first/],
    [[clearing, clearing], /once/],
    [[{ ...clearing, keep: 4 }], /edits\.0: Input/],
    [[{ ...clearing, trigger: { type: 'tokens', value: 4 } }], /edits\.0: Input/],
    [[{ ...clearing, more: true }], /edits\.0: Input/],
    [[{ type: 'clear_all' }], /edits\.0: Input/],
  ])('refuses %j', (edits, words) => {
    expect(judged(edits)).toMatch(words);
  });
});

describe('a proxy in between', () => {
  const memory = (request: Request): Request =>
    edited(request, 0, (it) => user([...content(it), text('memory')]));

  /** One request, directly and with svc's change. */
  function both(change: Change): {
    ask: (request: Request) => { next: Request; caused: readonly string[] };
  } {
    const [direct, through] = [new StrictProvider(), new StrictProvider()];
    return {
      ask: (request) => {
        const own = judgeMessages(direct, request);
        const forwarded = judgeMessages(through, change(request));
        const caused = causedBetween(own, forwarded);
        if (forwarded.kind === 'refused') return { next: request, caused };
        const answer = sealBoth(own, forwarded)([thinking(), text('ok')]);
        const next = withMessages(request, { role: 'assistant', content: answer }, user('next'));
        return { next, caused };
      },
    };
  }

  test('causes nothing while it adds the same text each time', () => {
    const { ask } = both(memory);
    const first = ask(begun());
    const second = ask(first.next);
    expect([first.caused, second.caused, ask(second.next).caused]).toEqual([[], [], []]);
  });

  test('causes a refusal when it leaves its text out', () => {
    let isOn = true;
    const { ask } = both((request) => (isOn ? memory(request) : request));
    const { next } = ask(begun());
    isOn = false;
    expect(ask(next).caused).toEqual([expect.stringMatching(/^refused: messages\.1\.content\.0/)]);
  });

  test('is not blamed for what the client edits', () => {
    const { ask } = both((request) => request);
    const { next } = ask(begun());
    expect(ask({ ...next, system: 'Be rude.' }).caused).toEqual([]);
  });
});
