import type { Fields } from '../bytes/json-fields.ts';
import type { PictureSize } from '../bytes/picture-size.ts';
import type { Span } from '../bytes/json-scan.ts';
import type { ItemTraits } from '../conversation/view.ts';
import type { AnswerParser, AnswerParserOptions } from './dialect-answer.ts';
import type { DialectApi } from './apis.ts';

/**
 * Everything in which one dialect differs from the others. The rest of svc uses the descriptor and never compares a
 * dialect's name, so that a new dialect is only one more folder here.
 */
export interface DialectDescriptor extends DialectApi {
  /** The member of the request body that holds the conversation: a list, */
  readonly listKey: 'messages' | 'input';
  /** or, if true, also a single string of the user. */
  readonly takesTextInput: boolean;
  /** The type of a text part in a user message. */
  readonly textPartType: 'text' | 'input_text';
  /** Clients of this dialect put their conversation id into `prompt_cache_key`. */
  readonly cacheKeyNamesSession: boolean;
  /**
   * Reads one element of the list. `value` is its parsed JSON, of any type. An unknown form reads as an item without
   * facts; this never throws.
   */
  readItem(value: unknown, hasFrames?: HasFrames): ItemTraits;
  /** The calls in an item of the list, each with its arguments as the client wrote them. */
  callArguments(item: Fields): readonly CallArguments[];
  /** Returns the objects in an item that answer a call: blocks of its content, or the item itself. */
  resultPlaces(bytes: Buffer, item: Span): readonly ResultPlace[];

  createAnswerParser(options: AnswerParserOptions): AnswerParser;
  /** Texts of which the event that ends a stream contains at least one. */
  readonly endMarks: readonly string[];
  /** Texts of which the event that completes a signed thought contains at least one. */
  readonly thoughtMarks: readonly string[];

  /** The provider supports clearing old tool outputs; see core/shortening/provider-clearing.ts. */
  readonly clearsOutputs: boolean;

  /** Cache prices for models whose own prices are unknown. */
  readonly cachePrices: CachePrices;

  /** How long the provider caches a prompt if the request does not say. */
  cacheDefaultMs(model: string): number;
  /** Returns the tokens of a picture by the published rule. `size`: undefined if the body only links the picture. */
  pictureTokens(size: PictureSize | undefined, detail: string): number;
}

/**
 * Says whether the client appends text that the user types during a tool call to the tool's output, inside a
 * `<system-reminder>` frame, as Claude Code does. To identify the client svc may have to read the system prompt, so
 * call this only if an output ends with such a frame.
 */
export type HasFrames = () => boolean;

export const NO_FRAMES: HasFrames = () => false;

export type CallArguments = readonly [id: string, args: unknown];

export interface ResultPlace {
  /** Offset of the object's brace. */
  readonly open: number;
  /** The member that names the call. */
  readonly idName: string;
  /** The member that holds the output. */
  readonly textName: string;
}

/**
 * Prices of a provider's prompt cache, relative to an uncached input token. They come from the providers' price
 * lists; the caching rules were checked against the usage of 15,233 real calls.
 */
export interface CachePrices {
  /** A token that is read from the cache. */
  readonly read: number;
  /** Price of a token written to the cache. Of two published prices the higher, to be conservative. */
  readonly write: number;
  /** A token of an entry that lives an hour. */
  readonly writeHour: number;
  /** The price of a read is published: for the model, or one for the whole provider. */
  readonly isKnown: boolean;
  /** Tokens of this provider's models per estimated token. */
  readonly tokenRatio: number;
}
