import type { Dialect } from '../../src/core/conversation/view.ts';

/** One round of a session that a test writes: what was called, and what came back. */
export interface Round {
  readonly id: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly output: string;
}

export const SESSION_MODEL = 'claude-sonnet-4-5';

/** A request body after these rounds of one prompt, as a client of the dialect sends it. */
export function sessionBody(
  dialect: Dialect,
  rounds: readonly Round[],
  prompt = 'Fix the failing test in the parser, step by step.',
): Record<string, unknown> {
  const shell = { model: SESSION_MODEL, stream: false };
  if (dialect === 'anthropic_messages') {
    return {
      ...shell,
      max_tokens: 1024,
      system: 'You are a test agent.',
      tools: [{ name: 'Bash', input_schema: { type: 'object' } }],
      messages: [{ role: 'user', content: prompt }, ...rounds.flatMap(messagesRound)],
    };
  }
  if (dialect === 'openai_responses') {
    const first = { type: 'message', role: 'user', content: prompt };
    return {
      ...shell,
      instructions: 'You are a test agent.',
      tools: [{ type: 'function', name: 'Bash' }],
      input: [first, ...rounds.flatMap(responsesRound)],
    };
  }
  return {
    ...shell,
    tools: [{ type: 'function', function: { name: 'Bash' } }],
    messages: [
      { role: 'system', content: 'You are a test agent.' },
      { role: 'user', content: prompt },
      ...rounds.flatMap(chatRound),
    ],
  };
}

/** An output of about `tokens` tokens that no other has. */
export function longOutput(name: string, tokens: number): string {
  const lines = Array.from({ length: Math.ceil(tokens / 10) }, (_, line) => {
    return `${name} line ${line} of the parser module`;
  });
  return lines.join('\n');
}

function messagesRound({ id, tool, args, output }: Round): unknown[] {
  return [
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: `thought ${id}`, signature: `sig${id}==` },
        { type: 'tool_use', id, name: tool, input: args },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: output }] },
  ];
}

function responsesRound({ id, tool, args, output }: Round): unknown[] {
  return [
    { type: 'reasoning', id: `rs_${id}`, summary: [], encrypted_content: `enc${id}==` },
    { type: 'function_call', call_id: id, name: tool, arguments: JSON.stringify(args) },
    { type: 'function_call_output', call_id: id, output },
  ];
}

function chatRound({ id, tool, args, output }: Round): unknown[] {
  const call = { id, type: 'function', function: { name: tool, arguments: JSON.stringify(args) } };
  return [
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: id, content: output },
  ];
}
