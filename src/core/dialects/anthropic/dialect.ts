import type { PictureSize } from '../../bytes/picture-size.ts';
import { CACHE_DEFAULT_MS } from '../../conversation/cache-marks.ts';
import type { CachePrices, DialectDescriptor } from '../descriptor.ts';
import { MessagesAnswer } from './answers.ts';
import { MESSAGES_API } from './api.ts';
import { callArguments, readMessagesItem, resultPlaces } from './items.ts';
import { MESSAGES_SAMPLE } from './sample.ts';

// Entries exist at marked blocks only, so a change anywhere in the messages rewrites all of them.
const CACHE: CachePrices = {
  read: 0.1,
  write: 1.25,
  writeHour: 2,
  isKnown: true,
  tokenRatio: 1.265,
};

/** Anthropic Messages. */
export const MESSAGES: DialectDescriptor = {
  ...MESSAGES_API,
  listKey: 'messages',
  takesTextInput: false,
  textPartType: 'text',
  cacheKeyNamesSession: false,
  readItem: readMessagesItem,
  callArguments,
  resultPlaces,
  createAnswerParser: (options) => new MessagesAnswer(options),
  endMarks: ['message_stop'],
  thoughtMarks: ['block_stop'],
  clearsOutputs: true,
  cachePrices: CACHE,
  cacheDefaultMs: () => CACHE_DEFAULT_MS,
  pictureTokens,
  sample: MESSAGES_SAMPLE,
};

// Anthropic's guide: scaled to 1,568 pixels at the longer edge and about 1,600 tokens, then (w * h) / 750.
const EDGE_MAX = 1_568;
const PIXELS_A_TOKEN = 750;
const PICTURE_TOKENS_MAX = 1_600;

function pictureTokens(size: PictureSize | undefined): number {
  if (size === undefined) return PICTURE_TOKENS_MAX;
  const scale = Math.min(1, EDGE_MAX / Math.max(size.width, size.height));
  const pixels = size.width * scale * (size.height * scale);
  return Math.min(PICTURE_TOKENS_MAX, Math.max(1, Math.ceil(pixels / PIXELS_A_TOKEN)));
}
