import { memberAt, said, textAt } from '../sample-parts.ts';
import type { DialectSample } from '../descriptor.ts';

const ID = 'sample_1';

export const RESPONSES_SAMPLE: DialectSample = {
  request: (model, text, stream) => ({ model, stream, store: false, input: [said(text)] }),
  cacheableRequest: ({ model, prefix, question, answerTokensMax }) => ({
    model,
    max_output_tokens: answerTokensMax,
    store: false,
    instructions: prefix,
    input: question,
  }),
  newestMessage: (request) => memberAt(request, 'input', -1),
  answer: answerOf,
  events: (model, pieces) => [
    { type: 'response.created', response: { ...answerOf(model, ''), status: 'in_progress' } },
    ...pieces.map((delta) => ({ type: 'response.output_text.delta', item_id: ID, delta })),
    { type: 'response.completed', response: answerOf(model, pieces.join('')) },
  ],
  streamEnd: '',
  textOf: (answer) => textAt(answer, 'output', 0, 'content', 0, 'text'),
  pieceOf: (event) => textAt(event, 'delta'),
};

function answerOf(model: string, text: string): object {
  const content = [{ type: 'output_text', text, annotations: [] }];
  const message = { id: ID, type: 'message', role: 'assistant', status: 'completed', content };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const common = { id: ID, object: 'response', status: 'completed', model };
  return { ...common, output: [message], usage };
}
