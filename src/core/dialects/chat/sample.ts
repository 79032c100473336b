import { memberAt, said, textAt } from '../sample-parts.ts';
import type { DialectSample } from '../descriptor.ts';

const ID = 'sample_1';

export const CHAT_SAMPLE: DialectSample = {
  request: (model, text, stream) => ({ model, stream, messages: [said(text)] }),
  cacheableRequest: ({ model, prefix, question, answerTokensMax, isOpenAi }) => ({
    model,
    // OpenAI wants the newer name; other providers know the older one only.
    [isOpenAi ? 'max_completion_tokens' : 'max_tokens']: answerTokensMax,
    messages: [{ role: 'system', content: prefix }, said(question)],
  }),
  newestMessage: (request) => memberAt(request, 'messages', -1),
  answer: (model, content) => ({
    id: ID,
    object: 'chat.completion',
    model,
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  }),
  events: (model, pieces) => [
    ...pieces.map((content) => chunkOf(model, { content }, null)),
    chunkOf(model, {}, 'stop'),
  ],
  streamEnd: 'data: [DONE]\n\n',
  textOf: (answer) => textAt(answer, 'choices', 0, 'message', 'content'),
  pieceOf: (event) => textAt(event, 'choices', 0, 'delta', 'content'),
};

function chunkOf(model: string, delta: object, finishReason: string | null): object {
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  return { id: ID, object: 'chat.completion.chunk', model, choices };
}
