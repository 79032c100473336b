import type { DialectDescriptor } from '../descriptor.ts';
import {
  OPENAI_CACHE,
  openAiCacheMs,
  openAiErrorBody,
  openAiPictureTokens,
} from '../openai-common.ts';
import { ResponsesAnswer } from './answers.ts';
import { callArguments, readResponsesItem, resultPlaces } from './items.ts';
import { RESPONSES_SAMPLE } from './sample.ts';

/** OpenAI Responses. */
export const RESPONSES: DialectDescriptor = {
  name: 'openai_responses',
  title: 'OpenAI Responses',
  speakers: 'Codex speaks it',
  provider: 'openai',
  modelPath: '/v1/responses',
  helperPaths: ['/v1/responses/compact', '/v1/responses/input_tokens'],
  baseUrlHasVersion: true,
  defaultAuth: 'bearer',
  callHeaders: {},
  errorBody: openAiErrorBody,
  listKey: 'input',
  takesTextInput: true,
  textPartType: 'input_text',
  cacheKeyNamesSession: true,
  readItem: readResponsesItem,
  callArguments,
  resultPlaces,
  createAnswerParser: (textCharsMax) => new ResponsesAnswer(textCharsMax),
  endMarks: ['response.completed', 'response.incomplete', 'response.failed'],
  cachePrices: OPENAI_CACHE,
  longCachePrices: undefined,
  cacheDefaultMs: openAiCacheMs,
  pictureTokens: openAiPictureTokens,
  sample: RESPONSES_SAMPLE,
};
