import type { Fields } from '../bytes/json-fields.ts';
import type { PictureSize } from '../bytes/picture-size.ts';
import type { Span } from '../bytes/json-scan.ts';
import type { ItemTraits } from '../conversation/view.ts';
import type { AnswerParser, AnswerParserOptions } from './dialect-answer.ts';
import type { DialectApi } from './apis.ts';

/**
 * Everything in which one dialect differs from the others. The rest of svc asks the descriptor and
 * never compares a dialect with a name, so that a further dialect is one more folder beside these.
 */
export interface DialectDescriptor extends DialectApi {
  /** The member of the request body that holds the conversation. */
  readonly listKey: 'messages' | 'input';
  /** That member may also be one string: the person's. */
  readonly takesTextInput: boolean;
  /** The type of a text part in a user message. */
  readonly textPartType: 'text' | 'input_text';
  /** Clients keep their conversation's id in `prompt_cache_key`. */
  readonly cacheKeyNamesSession: boolean;
  /**
   * Reads one element of the list. `value` is its parsed JSON, whatever that is. An item that no
   * client sends today reads as one about which nothing is known; this never throws.
   */
  readItem(value: unknown, hasFrames?: HasFrames): ItemTraits;
  /** The calls in an item of the list, each with its arguments as the client wrote them. */
  callArguments(item: Fields): readonly CallArguments[];
  /** The objects in an item that answer a call: blocks of its content, or the item itself. */
  resultPlaces(bytes: Buffer, item: Span): readonly ResultPlace[];

  createAnswerParser(options: AnswerParserOptions): AnswerParser;
  /** The event that ends a stream contains one of these texts. */
  readonly endMarks: readonly string[];
  /** The event that completes a signed thought contains one of these texts. */
  readonly thoughtMarks: readonly string[];

  /** The provider can be asked to clear old tool outputs; see core/shortening/provider-clearing.ts. */
  readonly clearsOutputs: boolean;

  /** The prices of the cache if the model's own are not known. */
  readonly cachePrices: CachePrices;

  /** How long the provider keeps an entry of its cache, where a request does not say. */
  cacheDefaultMs(model: string): number;
  /** The published rule for a picture; `size` undefined: the body only names it. */
  pictureTokens(size: PictureSize | undefined, detail: string): number;
}

/**
 * Says whether the client of a request is one that appends to a tool's output what the person has typed during the
 * call, inside a `<system-reminder>` frame. Claude Code is. To know the client, svc may have to read the system
 * prompt, so this is called only when an output ends with such a frame.
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
 * Prices of a provider's prompt cache, in units of one uncached input token. They come from the
 * providers' price lists; the caching rules were checked against the usage of 15,233 real calls.
 */
export interface CachePrices {
  /** A token that is read from the cache. */
  readonly read: number;
  /**
   * A token that is written to it. Where two prices are published, the dearer one, to be
   * conservative.
   */
  readonly write: number;
  /** A token of an entry that lives an hour. */
  readonly writeHour: number;
  /** The price of a read is published: by the model's list price, or one for all of the provider's. */
  readonly isKnown: boolean;
  /** Tokens of this provider's models for one estimated token. */
  readonly tokenRatio: number;
}
