import type { Dialect } from '../../../src/core/conversation/view.ts';
import type { PromptUsage } from '../scripted-provider/prompt-cache.ts';

/** A request as the rules see it. */
export interface ModelRequest {
  readonly dialect: Dialect;
  /** `/v1/messages/count_tokens`: the same checks, no answer. */
  readonly isCount: boolean;
  /** The values of `anthropic-beta`. */
  readonly betas: readonly string[];
  readonly json: unknown;
}

export interface Refusal {
  readonly status: 400;
  /** `messages.1.content.0`; empty where no place is named. */
  readonly path: string;
  readonly reason: 'prefix' | 'signature' | 'shape';
  /** As the provider words it, with the path. */
  readonly message: string;
}

/** A thinking block or reasoning item that the model does not get, or would not get on a new account. */
export interface Lost {
  /** The signature or encrypted content, by which one block is told from another. */
  readonly seal: string;
  readonly path: string;
  readonly reason: 'prefix' | 'model';
  /** An older account: the block failed its check and reached the model all the same. */
  readonly isAllowed: boolean;
}

export type Judgement = Refused | Accepted;

export interface Refused {
  readonly kind: 'refused';
  readonly refusal: Refusal;
}

export interface Accepted {
  readonly kind: 'accepted';
  readonly lost: readonly Lost[];
  /** What the answer says under `input_transformations`; undefined where it has no such member. */
  readonly transformations: readonly object[] | undefined;
  readonly usage: PromptUsage;
  /**
   * Binds the thinking of the answer to what the request sent. A block without a seal gets one; a block
   * that has one (the stand-in for the direct run is told the answer) is bound under it.
   */
  readonly seal: <Part extends object>(output: readonly Part[]) => readonly Part[];
}

export function shape(path: string, message: string): Refusal {
  return {
    status: 400,
    path,
    reason: 'shape',
    message: path === '' ? message : `${path}: ${message}`,
  };
}
