import { createParser } from 'eventsource-parser';
import type { Dialect } from '../../src/core/conversation/view.ts';

/** What an answer says, read the slow and plain way: every event parsed by the reference parser. */
export interface PlainAnswer {
  readonly text: string;
  readonly callsTools: boolean;
  readonly isComplete: boolean;
  readonly isFailed: boolean;
}

// Test code: events are whatever JSON says.
// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

export function readWithOracle(dialect: Dialect, stream: string): PlainAnswer {
  const events: Json[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(parse(data)) });
  parser.feed(stream);
  const read = { anthropic_messages: readMessages, openai_responses: readResponses };
  return dialect === 'openai_chat_completions' ? readChat(events) : read[dialect](events);
}

function parse(data: string): Json {
  if (data.trim() === '[DONE]') return { isDone: true };
  try {
    return JSON.parse(data) ?? {};
  } catch {
    return {};
  }
}

function readMessages(events: readonly Json[]): PlainAnswer {
  const paragraphs: string[] = [''];
  let block: unknown;
  for (const event of events) {
    if (event.type === 'content_block_start') {
      const type = event.content_block?.type;
      if (type === 'text' && block !== undefined && block !== 'text') paragraphs.push('');
      block = type;
      if (type === 'text') paragraphs.push(`${paragraphs.pop()}${event.content_block.text ?? ''}`);
    }
    if (event.type === 'content_block_delta' && event.delta?.type === 'text_delta') {
      paragraphs.push(`${paragraphs.pop()}${event.delta.text ?? ''}`);
    }
  }
  const stops = new Set(events.map((event) => event.delta?.stop_reason));
  return {
    text: joined(paragraphs),
    callsTools:
      events.some((event) => event.content_block?.type === 'tool_use') ||
      ['tool_use', 'pause_turn', 'compaction'].some((reason) => stops.has(reason)),
    isComplete: events.some((event) => event.type === 'message_stop'),
    isFailed: events.some((event) => event.type === 'error') || stops.has('refusal'),
  };
}

function readResponses(events: readonly Json[]): PlainAnswer {
  const texts = new Map<unknown, string>();
  for (const event of events) {
    if (event.type !== 'response.output_text.delta') continue;
    texts.set(event.output_index, `${texts.get(event.output_index) ?? ''}${event.delta}`);
  }
  const items = events.flatMap((event) => [event.item ?? {}, ...(event.response?.output ?? [])]);
  const types = new Set(events.map((event) => event.type));
  return {
    text: joined([...texts.values()]),
    callsTools: items.some((item) => item.type?.endsWith('_call') && item.call_id !== undefined),
    isComplete: types.has('response.completed') || types.has('response.incomplete'),
    isFailed: types.has('response.failed') || types.has('error'),
  };
}

function readChat(events: readonly Json[]): PlainAnswer {
  const choices = events.map((event) => event.choices?.find((it: Json) => it.index === 0) ?? {});
  const reasons = choices.map((choice) => choice.finish_reason).filter(Boolean);
  return {
    text: joined([choices.map((choice) => choice.delta?.content ?? '').join('')]),
    callsTools:
      choices.some((choice) => choice.delta?.tool_calls?.length > 0) ||
      reasons.includes('tool_calls'),
    isComplete: reasons.length > 0 || events.some((event) => event.isDone === true),
    isFailed: events.some((event) => event.error) || reasons.includes('content_filter'),
  };
}

function joined(paragraphs: readonly string[]): string {
  return paragraphs
    .map((it) => it.trim())
    .filter((it) => it !== '')
    .join('\n\n');
}
