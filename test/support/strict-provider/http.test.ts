import { expect, onTestFinished, test } from 'vitest';
import { type ScriptedProvider, startScriptedProvider } from '../scripted-provider/provider.ts';
import { BETA, type Item, text, user } from './conversation.ts';
import { StrictProvider } from './strict-provider.ts';

// The scripted provider of the tests with real clients, with the rules switched on.

async function started(): Promise<{ provider: ScriptedProvider; strict: StrictProvider }> {
  const strict = new StrictProvider();
  const provider = await startScriptedProvider({ strict });
  onTestFinished(() => provider.stop());
  return { provider, strict };
}

async function post(
  { url }: ScriptedProvider,
  path: string,
  body: object,
): Promise<{ status: number; text: string }> {
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-beta': `other, ${BETA}` },
    body: JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
}

const MESSAGES = '/v1/messages';
const REQUEST = {
  model: 'claude-opus-5-5',
  max_tokens: 100,
  thinking: { type: 'adaptive' },
  messages: [user('one [[final=ok]]')],
};

function nextOf(content: unknown, first: Item = REQUEST.messages[0] ?? {}): object {
  return { ...REQUEST, messages: [first, { role: 'assistant', content }, user('two')] };
}

test('an answer has signed thinking, which the next request may bring back', async () => {
  const { provider, strict } = await started();
  const { content } = JSON.parse((await post(provider, MESSAGES, REQUEST)).text) as {
    content: Item[];
  };
  expect(content.map(({ type }) => type)).toEqual(['thinking', 'text']);
  expect((await post(provider, MESSAGES, nextOf(content))).status).toBe(200);
  const refused = await post(provider, MESSAGES, nextOf(content, user('edited')));
  expect(refused.status).toBe(400);
  expect(JSON.parse(refused.text)).toMatchObject({
    type: 'error',
    error: {
      type: 'invalid_request_error',
      message: expect.stringMatching(/^messages\.1\.content\.0: .*different conversation/),
    },
  });
  const count = await post(provider, `${MESSAGES}/count_tokens`, nextOf(content, user('edited')));
  expect(count.status).toBe(400);
  expect(strict.refusals.map(({ path }) => path)).toEqual(
    Array.from({ length: 2 }, () => 'messages.1.content.0'),
  );
});

test('a streamed answer says in message_start what was dropped', async () => {
  const { provider } = await started();
  const streamed = await post(provider, MESSAGES, { ...REQUEST, stream: true });
  const signature = /"signature":"([^"]{20,})"/.exec(streamed.text)?.[1];
  const thought = { type: 'thinking', thinking: '', signature };
  const drops = {
    stream: true,
    thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } },
  };
  const request = { ...nextOf([thought, text('ok')], user('edited')), ...drops };
  const answer = await post(provider, MESSAGES, request);
  const [start] = answer.text.split('\n\n');
  expect(start).toContain('"input_transformations":[{"type":"thinking_dropped"');
  expect(start).toContain('"reason":"prefix_binding_mismatch"');
  expect(start).toContain('"cache_read_input_tokens":0');
});

test('reasoning that is dropped is named in both forms of the answer', async () => {
  const { provider } = await started();
  const request = { model: 'gpt-6', reasoning: {}, input: [user('one [[final=ok]]')] };
  const { output } = JSON.parse((await post(provider, '/v1/responses', request)).text) as {
    output: Item[];
  };
  const edited = { ...request, input: [user('edited'), ...output, user('two')] };
  const entry = `"input_transformations":[{"id":"${String(output[0]?.['id'])}","reason":"prefix_mismatch"}]`;
  for (const stream of [false, true]) {
    expect((await post(provider, '/v1/responses', { ...edited, stream })).text).toContain(entry);
  }
});
