import type { DialectDescriptor } from '../descriptor.ts';
import { OPENAI_CACHE, openAiCacheMs, openAiPictureTokens } from '../openai-common.ts';
import { ResponsesAnswer } from './answers.ts';
import { RESPONSES_API } from './api.ts';
import { callArguments, readResponsesItem, resultPlaces } from './items.ts';
import { RESPONSES_SAMPLE } from './sample.ts';

/** OpenAI Responses. */
export const RESPONSES: DialectDescriptor = {
  ...RESPONSES_API,
  listKey: 'input',
  takesTextInput: true,
  textPartType: 'input_text',
  cacheKeyNamesSession: true,
  readItem: readResponsesItem,
  callArguments,
  resultPlaces,
  createAnswerParser: (options) => new ResponsesAnswer(options),
  endMarks: ['response.completed', 'response.incomplete', 'response.failed'],
  thoughtMarks: ['item.done'],
  clearsOutputs: false,
  cachePrices: OPENAI_CACHE,
  cacheDefaultMs: openAiCacheMs,
  pictureTokens: openAiPictureTokens,
  sample: RESPONSES_SAMPLE,
};
