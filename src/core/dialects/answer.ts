import type { Fields } from '../bytes/json-fields.ts';
import type { LostThoughts } from '../conversation/lost-thoughts.ts';

/** What svc reads from a provider's answer while its bytes are relayed. */

export interface Usage {
  /** Tokens that the provider charged in full, without cached ones. */
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The part of `cacheWrite` that is cached for an hour, if the provider reports it. */
  readonly cacheWriteHour?: number;
  readonly output: number;
}

/** The number of tool outputs that the provider removed from the prompt, and their tokens, as it reports them. */
export interface Cleared {
  readonly outputs: number;
  readonly tokens: number;
}

export interface Answer {
  /** The visible text of the assistant, in order, without reasoning and tool arguments. */
  readonly text: string;
  /** True if the answer asks the client to run tools, so that the exchange continues. */
  readonly callsTools: boolean;
  /**
   * True if the provider has ended the answer, for example with `message_stop`, `response.completed` or a finish
   * reason.
   */
  readonly isComplete: boolean;
  /** True if the provider reported an error inside the answer, refused, or filtered it. */
  readonly isFailed: boolean;
  /** True if the answer ended early, mostly at a limit (`max_tokens`, `length`), so that its text is not whole. */
  readonly isCutShort: boolean;
  /** The ids of the answer's signed thinking blocks, in order. */
  readonly thoughts: readonly string[];
  /** How many thinking blocks of the request the provider dropped or flagged, by reason. */
  readonly lostThoughts?: LostThoughts;
  readonly usage?: Usage;
  readonly cleared?: Cleared;
  readonly id?: string;
  /** The model that answered, as the provider reports it. */
  readonly model?: string;
  /** The newest event that states how much of the user's subscription is used; see core/meter/quota.ts. */
  readonly limits?: Fields;
  /** The numbers of the provider's `usage` object; see usageNumbers(). */
  readonly usageTold?: Fields;
}
