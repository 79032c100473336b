import type { Fields } from '../bytes/json-fields.ts';
import type { PictureSize } from '../bytes/picture-size.ts';
import type { Span } from '../bytes/json-scan.ts';
import type { ItemTraits } from '../conversation/view.ts';
import type { AnswerParserOptions, DialectAnswer } from './dialect-answer.ts';
import type { DialectApi } from './apis.ts';

/**
 * Everything in which one dialect differs from the others. The rest of svc uses the descriptor and never compares a
 * dialect's name, so that a new dialect needs one more folder under `src/core/dialects/`, and a row in the tables
 * there.
 */
export interface DialectDescriptor extends DialectApi {
  /** The member of the request body that holds the conversation as a list. */
  readonly listKey: 'messages' | 'input';
  /** True if the member `listKey` may also be one string instead of a list: the user's text. */
  readonly takesTextInput: boolean;
  /** The type of a text part in a user message. */
  readonly textPartType: 'text' | 'input_text';
  /** True if clients of this dialect put their conversation id into `prompt_cache_key`. */
  readonly cacheKeyNamesSession: boolean;
  /**
   * Reads one element of the list. `value` is its parsed JSON, of any type. An unknown form reads as an item without
   * facts; this never throws.
   */
  readItem(value: unknown, hasFrames?: HasFrames): ItemTraits;
  /**
   * Returns the calls in an item, each with its arguments as the client wrote them. A block of Messages that is no call
   * is listed too, with undefined arguments; `function_call`, the old form of Chat Completions, is left out.
   */
  callArguments(item: Fields): readonly CallArguments[];
  /** Returns the objects in an item that answer a call: blocks of its content, or the item itself. */
  resultPlaces(bytes: Buffer, item: Span): readonly ResultPlace[];

  createAnswerParser(options: AnswerParserOptions): DialectAnswer;

  /** True if the provider supports clearing old tool outputs; see core/shortening/provider-clearing.ts. */
  readonly clearsOutputs: boolean;

  /** Prices for models whose own cache prices are unknown. */
  readonly cachePrices: CachePrices;

  /** Returns how long the provider caches a prompt if the request states no lifetime, in milliseconds. */
  cacheDefaultMs(model: string): number;
  /**
   * Returns the tokens of a picture by the provider's published rule. `size`: undefined if it is linked or unreadable.
   */
  pictureTokens(size: PictureSize | undefined, detail: string): number;
}

/**
 * Says whether the client appends what the user types during a tool call to the tool's output, inside a
 * `<system-reminder>`, as Claude Code does. The answer may need a scan of the system prompt, so call this only if an
 * output ends with such a reminder.
 */
export type HasFrames = () => boolean;

export type CallArguments = readonly [id: string, args: unknown];

export interface ResultPlace {
  /** Offset of the object's brace. */
  readonly open: number;
  /** The member with the id of the call. */
  readonly idName: string;
  /** The member with the output. */
  readonly textName: string;
}

/**
 * Prices of a provider's prompt cache, relative to an uncached input token: from the provider's price list, or OpenAI's
 * as a guess if `isKnown` is false.
 */
export interface CachePrices {
  /** Price of a token that is read from the cache. */
  readonly read: number;
  /**
   * Price of a token that is written to the cache for the usual time. In a descriptor it is the price of the dearest
   * models, because not all of a provider's models charge for writing; cachePrices() states the price of one model.
   */
  readonly write: number;
  /** Price of a token that is written to the cache for an hour. */
  readonly writeHour: number;
  /** True if the price of a read is published, for the model or for the whole provider. */
  readonly isKnown: boolean;
  /** Tokens that this provider counts per token that svc estimates; see bytes/tokens.ts. */
  readonly tokenRatio: number;
}
