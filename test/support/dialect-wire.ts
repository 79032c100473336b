import type { Dialect } from '../../src/core/conversation/view.ts';
import type { Reply, SeenRequest } from './story.ts';

/** The least that each dialect needs on the wire, for tests of the whole proxy. */

export const PATHS: Readonly<Record<Dialect, string>> = {
  anthropic_messages: '/v1/messages',
  openai_responses: '/v1/responses',
  openai_chat_completions: '/v1/chat/completions',
};

export const DIALECTS = Object.keys(PATHS) as Dialect[];

export type WireItem = Readonly<Record<string, unknown>>;

/** A request with these items, as an SDK writes it. */
export function requestWith(
  dialect: Dialect,
  items: readonly unknown[],
  extra: WireItem = {},
): WireItem {
  if (dialect === 'openai_responses') {
    return { model: 'm', instructions: 'Be kind.', input: items, ...extra };
  }
  if (dialect === 'anthropic_messages') {
    return { model: 'm', max_tokens: 500, system: 'Be kind.', messages: items, ...extra };
  }
  return { model: 'm', messages: [{ role: 'system', content: 'Be kind.' }, ...items], ...extra };
}

/** One prompt and nothing else. */
export function promptOf(dialect: Dialect, text: string, extra: WireItem = {}): WireItem {
  return requestWith(dialect, [said('user', text)], extra);
}

export function said(role: 'user' | 'assistant', content: unknown): WireItem {
  return { role, content };
}

/** A step of the assistant that calls one tool, and the tool's result. `input`: the arguments. */
export function toolRound(
  dialect: Dialect,
  id: string,
  output: unknown,
  input?: WireItem,
): readonly WireItem[] {
  if (dialect === 'anthropic_messages') {
    const call = { type: 'tool_use', id, name: 'Bash', input: input ?? { command: id } };
    return [
      said('assistant', [call]),
      said('user', [{ type: 'tool_result', tool_use_id: id, content: output }]),
    ];
  }
  if (dialect === 'openai_responses') {
    return [
      {
        type: 'function_call',
        call_id: id,
        name: 'shell',
        arguments: JSON.stringify(input ?? { id }),
      },
      { type: 'function_call_output', call_id: id, output },
    ];
  }
  const shell = { name: 'shell', arguments: JSON.stringify(input ?? {}) };
  const call = { id, type: 'function', function: shell };
  return [
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: id, content: output },
  ];
}

export interface AnswerChoices {
  readonly text?: string;
  readonly isStreamed?: boolean;
  /** The answer ends with a tool call. */
  readonly callsTool?: boolean;
  /** The answer ended at a limit. */
  readonly isCutShort?: boolean;
}

/** What a provider answers to this request. */
export function answerTo(request: SeenRequest, choices: AnswerChoices = {}): Reply {
  const dialect = DIALECTS.find((one) => request.path.startsWith(PATHS[one]));
  const isStreamed = choices.isStreamed ?? request.body.includes('"stream":true');
  const headers = { 'content-type': isStreamed ? 'text/event-stream' : 'application/json' };
  if (dialect === undefined) return { status: 404, headers, body: '{}' };
  const body = isStreamed ? eventsOf(dialect, choices) : wholeOf(dialect, choices);
  return { status: 200, headers, body };
}

const TEXT = 'Noted.';

function wholeOf(dialect: Dialect, choices: AnswerChoices): string {
  if (dialect === 'anthropic_messages') return JSON.stringify(messageOf(choices));
  if (dialect === 'openai_responses') return JSON.stringify(responseOf(choices));
  const { text = TEXT } = choices;
  const tool_calls = choices.callsTool === true ? [CHAT_CALL] : undefined;
  const message = { role: 'assistant', content: text, ...(tool_calls && { tool_calls }) };
  const choice = { index: 0, message, finish_reason: finishOf(choices) };
  return JSON.stringify({ id: 'c1', object: 'chat.completion', choices: [choice] });
}

const TOOL_USE = { type: 'tool_use', id: 'call_1', name: 'Bash', input: { command: 'ls' } };
const CHAT_CALL = { id: 'call_1', type: 'function', function: { name: 'shell', arguments: '{}' } };
const FUNCTION_CALL = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_1',
  name: 'shell',
  arguments: '{}',
  status: 'completed',
};

function finishOf({ callsTool, isCutShort }: AnswerChoices): string {
  if (isCutShort === true) return 'length';
  return callsTool === true ? 'tool_calls' : 'stop';
}

function stopOf({ callsTool, isCutShort }: AnswerChoices): string {
  if (isCutShort === true) return 'max_tokens';
  return callsTool === true ? 'tool_use' : 'end_turn';
}

function messageOf(choices: AnswerChoices): WireItem {
  const text = { type: 'text', text: choices.text ?? TEXT };
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: choices.callsTool === true ? [text, TOOL_USE] : [text],
    stop_reason: stopOf(choices),
    usage: { input_tokens: 7, output_tokens: 3 },
  };
}

function responseOf(choices: AnswerChoices): WireItem {
  const content = [{ type: 'output_text', text: choices.text ?? TEXT, annotations: [] }];
  const message = { type: 'message', id: 'i1', role: 'assistant', status: 'completed', content };
  const isCutShort = choices.isCutShort === true;
  return {
    id: 'resp_1',
    object: 'response',
    status: isCutShort ? 'incomplete' : 'completed',
    ...(isCutShort && { incomplete_details: { reason: 'max_output_tokens' } }),
    output: choices.callsTool === true ? [message, FUNCTION_CALL] : [message],
    usage: { input_tokens: 7, output_tokens: 3 },
  };
}

function eventsOf(dialect: Dialect, choices: AnswerChoices): string {
  if (dialect === 'anthropic_messages') return messageEvents(choices);
  if (dialect === 'openai_responses') return responseEvents(choices);
  const { text = TEXT } = choices;
  const delta = { role: 'assistant', content: text };
  return [
    `data: ${JSON.stringify({ id: 'c1', choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`,
    `data: ${JSON.stringify({ id: 'c1', choices: [{ index: 0, delta: {}, finish_reason: finishOf(choices) }] })}\n\n`,
    'data: [DONE]\n\n',
  ].join('');
}

function messageEvents(choices: AnswerChoices): string {
  const { text = TEXT } = choices;
  const events: WireItem[] = [
    { type: 'message_start', message: { ...messageOf(choices), content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: stopOf(choices) },
      usage: { output_tokens: 3 },
    },
    { type: 'message_stop' },
  ];
  return events.map(namedEvent).join('');
}

function responseEvents(choices: AnswerChoices): string {
  const { text = TEXT } = choices;
  const response = responseOf(choices);
  const end = choices.isCutShort === true ? 'response.incomplete' : 'response.completed';
  const events: WireItem[] = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: text },
    { type: 'response.output_text.done', output_index: 0, content_index: 0, text },
    { type: end, response },
  ];
  return events.map(namedEvent).join('');
}

function namedEvent(event: WireItem): string {
  return `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`;
}
