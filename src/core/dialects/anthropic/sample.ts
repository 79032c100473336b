import { memberAt, said, textAt } from '../sample-parts.ts';
import type { DialectSample } from '../descriptor.ts';

const ID = 'sample_1';

export const MESSAGES_SAMPLE: DialectSample = {
  request: (model, text, stream) => ({ model, max_tokens: 200, stream, messages: [said(text)] }),
  cacheableRequest: ({ model, prefix, question, answerTokensMax }) => ({
    model,
    max_tokens: answerTokensMax,
    system: [{ type: 'text', text: prefix, cache_control: { type: 'ephemeral' } }],
    messages: [said(question)],
  }),
  newestMessage: (request) => memberAt(request, 'messages', -1),
  answer: (model, text) => answerOf(model, [{ type: 'text', text }], 'end_turn'),
  events: (model, pieces) => [
    { type: 'message_start', message: answerOf(model, [], null) },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...pieces.map((text) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text },
    })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ],
  streamEnd: '',
  textOf: (answer) => textAt(answer, 'content', 0, 'text'),
  pieceOf: (event) => textAt(event, 'delta', 'text'),
};

function answerOf(model: string, content: readonly object[], stopReason: string | null): object {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const common = { id: ID, type: 'message', role: 'assistant', model };
  return { ...common, content, stop_reason: stopReason, usage };
}
