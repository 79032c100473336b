import type { PictureSize } from '../../bytes/picture-size.ts';
import { CACHE_DEFAULT_MS } from '../../conversation/cache-marks.ts';
import type { CachePrices, DialectDescriptor, ErrorFacts } from '../descriptor.ts';
import { MessagesAnswer } from './answers.ts';
import { callArguments, readMessagesItem, resultPlaces } from './items.ts';
import { MESSAGES_SAMPLE } from './sample.ts';

// Entries exist at marked blocks only, so a change anywhere in the messages rewrites all of them.
const CACHE: CachePrices = { read: 0.1, write: 1.25, requestsAhead: 15, tokenRatio: 1.265 };

/** Anthropic Messages. */
export const MESSAGES: DialectDescriptor = {
  name: 'anthropic_messages',
  title: 'Anthropic Messages',
  speakers: 'Claude Code and Anthropic SDKs speak it',
  provider: 'anthropic',
  modelPath: '/v1/messages',
  helperPaths: ['/v1/messages/count_tokens'],
  baseUrlHasVersion: false,
  defaultAuth: 'x-api-key',
  callHeaders: { 'anthropic-version': '2023-06-01' },
  errorBody,
  listKey: 'messages',
  takesTextInput: false,
  textPartType: 'text',
  cacheKeyNamesSession: false,
  readItem: readMessagesItem,
  callArguments,
  resultPlaces,
  createAnswerParser: (textCharsMax) => new MessagesAnswer(textCharsMax),
  endMarks: ['message_stop'],
  cachePrices: CACHE,
  longCachePrices: { ...CACHE, write: 2 },
  cacheDefaultMs: () => CACHE_DEFAULT_MS,
  pictureTokens,
  sample: MESSAGES_SAMPLE,
};

function errorBody({ status, code, message, requestId }: ErrorFacts): object {
  return {
    type: 'error',
    error: { type: errorType(status), message, code },
    request_id: requestId,
  };
}

// The provider's own type names: SDKs build their error classes from the status, and clients show
// the type.
function errorType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 404) return 'not_found_error';
  if (status === 413) return 'request_too_large';
  if (status === 503) return 'overloaded_error';
  if (status === 504) return 'timeout_error';
  return status >= 500 ? 'api_error' : 'invalid_request_error';
}

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
