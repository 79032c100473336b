import type { DialectDescriptor } from '../descriptor.ts';
import { OPENAI_CACHE, openAiCacheMs, openAiPictureTokens } from '../openai-common.ts';
import { ChatAnswer } from './answers.ts';
import { CHAT_API } from './api.ts';
import { callArguments, readChatItem, resultPlaces } from './items.ts';
import { CHAT_SAMPLE } from './sample.ts';

/** OpenAI Chat Completions, which many other providers speak too. */
export const CHAT: DialectDescriptor = {
  ...CHAT_API,
  listKey: 'messages',
  takesTextInput: false,
  textPartType: 'text',
  // No client of this dialect keeps its conversation in that field.
  cacheKeyNamesSession: false,
  readItem: readChatItem,
  callArguments,
  resultPlaces,
  createAnswerParser: (options) => new ChatAnswer(options),
  endMarks: ['[DONE]'],
  thoughtMarks: ['finish_reason":"', 'finish_reason": "'],
  // Many providers speak this dialect, and what they ask for a cache read differs a hundredfold.
  clearsOutputs: false,
  cachePrices: { ...OPENAI_CACHE, isKnown: false },
  cacheDefaultMs: openAiCacheMs,
  pictureTokens: openAiPictureTokens,
  sample: CHAT_SAMPLE,
};
