/** Request bodies of a coding agent in three dialects, of a wanted size, the same for the same seed. */
import { makeCode, makeHex, makeProse, randomOf } from './text.mjs';

export const SIZES = {
  '2k': 2048,
  '36k': 36_000,
  '100k': 102_400,
  '1m': 1_048_576,
  '4m': 4_194_304,
};
export const PATHS = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
};

/** Up to here a body is one question and what came after it. */
const SMALL_BYTES = 4096;

/** A place in the newest item that a request overwrites: so no body is sent twice. */
const NUMBER_MARK = 'Request 00000000.';

/**
 * Options: dialect, bytes, isStream, seed, model;
 * newest: 'output' (a tool's, as in most requests of an agent) or 'question' (a person's);
 * moreRounds: the same conversation, so many tool calls later.
 * Returns a Buffer.
 */
export function makeBody(options) {
  const { dialect = 'messages', bytes, seed = 7, newest = 'output', moreRounds = 0 } = options;
  const random = randomOf(seed);
  const isSmall = bytes <= SMALL_BYTES;
  const write = DIALECTS[dialect];
  const system = makeProse(random, isSmall ? 300 : Math.min(16_000, bytes * 0.12));
  const toolCount = isSmall ? 0 : Math.min(16, Math.max(2, Math.floor(bytes / 12_000)));
  const toolRandom = randomOf(seed + 1);
  const tools = Array.from({ length: toolCount }, (_, at) => makeTool(toolRandom, at));
  const conversation = new Conversation({ random, write, isSmall, toolCount });
  // What the definitions of tools, the envelope and the newest items take, about.
  const fixedBytes = isSmall ? bytes : system.length * 1.02 + toolCount * 1400;
  conversation.fill(bytes - fixedBytes);
  const question = makeProse(random, isSmall ? 300 : 180);
  if (newest === 'question') {
    if (isSmall) conversation.addExchange(Infinity);
    conversation.ask(`${NUMBER_MARK} ${question}`);
  } else {
    conversation.ask(question);
    for (let at = 0; at < moreRounds; at += 1) conversation.addRound(makeCode(random, 1500));
    conversation.addRound(`${NUMBER_MARK} ${makeCode(random, isSmall ? 300 : 1500)}`);
  }
  const { items } = conversation;
  return Buffer.from(
    JSON.stringify(write.envelope({ ...options, random: toolRandom, system, tools, items })),
  );
}

let requestNumber = 0;

/** Overwrites the number in the newest item: the same length, another text. */
export function renumber(request) {
  requestNumber += 1;
  const at = request.lastIndexOf('Request ');
  request.write(String(requestNumber).padStart(8, '0'), at + 'Request '.length, 'latin1');
  return request;
}

class Conversation {
  items = [];
  #bytes = 0;
  #calls = 0;
  #parts;

  constructor(parts) {
    this.#parts = parts;
  }

  fill(bytes) {
    while (this.#bytes < bytes) this.addExchange(bytes);
  }

  ask(text) {
    this.#push(this.#parts.write.human(text));
  }

  /** A question, a few rounds of tool calls, an answer. */
  addExchange(bytesMax) {
    const { random, write, isSmall } = this.#parts;
    this.ask(makeProse(random, isSmall ? 300 : 200 + random() * 600));
    const rounds = isSmall ? 0 : 1 + Math.floor(random() * 4);
    for (let round = 0; round < rounds && this.#bytes < bytesMax; round += 1) {
      // Most outputs are short and a few are long, as in recorded sessions.
      this.addRound(makeCode(random, 800 + random() * random() * 14_000));
    }
    this.#push(write.answer(makeProse(random, isSmall ? 300 : 200 + random() * 800)));
  }

  /** A tool call and its output. */
  addRound(output) {
    const { random, write, toolCount } = this.#parts;
    const call = {
      id: `toolu_${this.#calls}${makeHex(random, 16)}`,
      name: `tool_${this.#calls % Math.max(1, toolCount)}`,
      text: makeProse(random, 80 + random() * 300),
      input: { path: `/src/${makeHex(random, 8)}.ts`, pattern: makeProse(random, 40), limit: 100 },
      output,
      random,
    };
    this.#calls += 1;
    for (const item of write.round(call)) this.#push(item);
  }

  #push(item) {
    this.items.push(item);
    this.#bytes += JSON.stringify(item).length + 1;
  }
}

function makeTool(random, at) {
  const properties = Object.fromEntries(
    Array.from({ length: 5 }, (_, index) => [
      `arg_${index}`,
      { type: index % 2 === 0 ? 'integer' : 'string', description: makeProse(random, 90) },
    ]),
  );
  const schema = { type: 'object', properties, required: ['arg_0'], additionalProperties: false };
  return { name: `tool_${at}`, description: makeProse(random, 600), schema };
}

const DIALECTS = {
  messages: {
    human: (text) => ({ role: 'user', content: [{ type: 'text', text }] }),
    answer: (text) => ({ role: 'assistant', content: [{ type: 'text', text }] }),
    round: ({ id, name, text, input, output, random }) => [
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: makeProse(random, 400), signature: makeHex(random, 200) },
          { type: 'text', text },
          { type: 'tool_use', id, name, input },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: output }] },
        ],
      },
    ],
    envelope: ({ model, isStream, random, system, tools, items }) => ({
      model,
      max_tokens: 4096,
      stream: isStream,
      system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }],
      messages: items,
      ...(tools.length > 0 && {
        tools: tools.map(({ schema, ...tool }) => ({ ...tool, input_schema: schema })),
      }),
      metadata: { user_id: `user_${makeHex(random, 32)}` },
    }),
  },
  chat: {
    human: (content) => ({ role: 'user', content }),
    answer: (content) => ({ role: 'assistant', content }),
    round: ({ id, name, text, input, output }) => [
      {
        role: 'assistant',
        content: text,
        tool_calls: [
          { id, type: 'function', function: { name, arguments: JSON.stringify(input) } },
        ],
      },
      { role: 'tool', tool_call_id: id, content: output },
    ],
    envelope: ({ model, isStream, system, tools, items }) => ({
      model,
      stream: isStream,
      messages: [{ role: 'system', content: system }, ...items],
      ...(tools.length > 0 && {
        tools: tools.map(({ schema, ...tool }) => ({
          type: 'function',
          function: { ...tool, parameters: schema },
        })),
      }),
    }),
  },
  responses: {
    human: (text) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }),
    answer: (text) => ({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text }],
    }),
    round: ({ id, name, input, output, random }) => [
      {
        type: 'reasoning',
        id: `rs_${makeHex(random, 24)}`,
        summary: [],
        encrypted_content: makeHex(random, 400),
      },
      {
        type: 'function_call',
        id: `fc_${makeHex(random, 24)}`,
        call_id: id,
        name,
        arguments: JSON.stringify(input),
      },
      { type: 'function_call_output', call_id: id, output },
    ],
    envelope: ({ model, isStream, random, system, tools, items }) => ({
      model,
      stream: isStream,
      store: false,
      instructions: system,
      input: items,
      ...(tools.length > 0 && {
        tools: tools.map(({ schema, ...tool }) => ({
          type: 'function',
          strict: false,
          ...tool,
          parameters: schema,
        })),
        tool_choice: 'auto',
        parallel_tool_calls: false,
      }),
      prompt_cache_key: makeHex(random, 32),
    }),
  },
};
