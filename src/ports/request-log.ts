import type { Dialect } from '../core/conversation/view.ts';
import type { LostThoughts } from '../core/conversation/lost-thoughts.ts';
import type { ThoughtSums } from '../core/plan/states.ts';
import type { Cleared, Usage } from '../core/dialects/dialect-answer.ts';
import type { ItemNote } from '../core/plan/item-notes.ts';
import type { QuotaReport, QuotaRow } from '../core/meter/quota.ts';
import type { Trial } from '../core/meter/hold-out.ts';
import type { TrialReport } from '../core/meter/trial-report.ts';
import type { PlanLimit } from '../core/meter/quota-words.ts';
import type { CacheMiss } from '../core/meter/cache-miss.ts';
import type { Price } from '../core/shortening/meter.ts';
import type { SecondLooks } from '../core/recall/injections.ts';
import type { RecallUse } from '../core/recall/recall-use.ts';

/** Stores one row per request, without texts or keys. */
export interface RequestLog {
  /** Adds a row and returns at once. A kill of the process may lose the newest rows. */
  add(row: RequestRow): void;
  /** Records how much of a subscription plan is used, as an answer stated it. Returns at once. */
  addQuota(row: QuotaRow): void;
  /** Returns how much of each login's subscription plan is used, newest first. `now`: milliseconds since 1970. */
  quota(now: number): Promise<readonly QuotaReport[]>;
  /** Returns the results of both groups of the hold-out experiment. `since`: milliseconds since 1970. */
  trial(since: number): Promise<TrialReport>;
  list(filter: RequestList): Promise<readonly RequestRow[]>;
  /** Finds model requests, newest first. */
  find(filter: RequestFilter): Promise<readonly RequestRow[]>;
  /** Returns rows of one conversation, newest first. The newest rows may be missing while they are written. */
  conversation(filter: ConversationFilter): Promise<readonly RequestRow[]>;
  /** Returns sums over rows: one for each day, client, space, model and way of payment, newest day first. */
  sum(filter: SumFilter): Promise<readonly RequestSum[]>;
}

export interface RequestList {
  readonly limit: number;
  /** Only requests whose id begins with this text. */
  readonly id?: string;
  /** Only rows from this time on, in milliseconds since 1970. At most the newest `limit` rows are read. */
  readonly since?: number;
}

/** Selects requests. A request must match every member that is set. */
export interface RequestFilter {
  readonly conversation?: string;
  readonly space?: string;
  readonly client?: string;
  readonly model?: string;
  /** A text to find anywhere in the row, in any case: an id, a project, a client, a model, a state. */
  readonly words?: string;
  /** Only requests that the provider's cache should have served and did not. */
  readonly isMiss?: true;
  /** The period in milliseconds since 1970: `since` is included, `until` is not. */
  readonly since?: number;
  readonly until?: number;
  readonly limit: number;
  readonly offset?: number;
}

export interface ConversationFilter {
  readonly conversation: string;
  readonly limit: number;
}

export interface SumFilter {
  /** The period in milliseconds since 1970: `since` is included, `until` is not. */
  readonly since: number;
  readonly until?: number;
}

/**
 * Sums over the model requests of one day, client, space, model and way of payment (`isLogin`), without counts and
 * without requests that svc relayed unread. Token counts are svc's estimates, except in `usage`.
 */
export interface RequestSum {
  /** The day in local time: 2026-11-20. */
  readonly day: string;
  readonly client: string;
  readonly space: string;
  readonly model: string;
  /** 1 if the client's own login paid. */
  readonly isLogin: number;
  readonly requests: number;
  /** Requests that ended in an error, were cut, or were given up by the client. */
  readonly failed: number;
  readonly originalInputTokens: number;
  readonly forwardedInputTokens: number;
  readonly recalledTokens: number;
  readonly elidedTokens: number;
  /**
   * `asked`: the number of requests that could carry memories. `recalled`: the number of those that carried more than
   * the list of earlier sessions.
   */
  readonly asked: number;
  readonly recalled: number;
  /** The number of requests that carried only the list of earlier sessions. */
  readonly briefs: number;
  /** The number of second looks that added a block, the tokens of these blocks, and their tokens in later requests. */
  readonly looks: number;
  readonly lookTokens: number;
  readonly lookTokensRepeated: number;
  /** The number of requests that got no new memories because the memory failed. */
  readonly degraded: number;
  /** The part of `degraded` for which the memory did not answer in time. */
  readonly late: number;
  /** The sums of the token counts that providers reported. */
  readonly usage: Usage;
  /** The price of the input that `usage` counts. */
  readonly price: Price;
  /** The number of calls with which a model read left-out outputs again. */
  readonly readings: number;
  /** The direct price of the requests that have such calls (`readings`), and that would not exist without svc. */
  readonly againPrice: number;
  readonly thoughts: ThoughtSums;
  /** Prompts whose block has more than the list of earlier sessions, and those of them whose block the model used. */
  readonly prompts: number;
  readonly promptsUsed: number;
}

/** The totals of one session with one model. */
export interface SessionSum {
  readonly model: string;
  /** 1 if the client's own login paid. */
  readonly isLogin: number;
  /** The number of prompts whose block has more than the list of earlier sessions. */
  readonly prompts: number;
  /** The price of the input with svc, and the estimated price without it, in input tokens at full price. */
  readonly paid: number;
  readonly direct: number;
}

export interface RequestRow {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly client: string;
  /** The kind from core/request/identity.ts; 'relayed' for a request that is no model request and counts no tokens. */
  readonly kind: string;
  readonly dialect: Dialect;
  readonly model: string;
  readonly space: string;
  readonly conversation: string;
  readonly status: number;
  /** 'complete', 'client-gone', 'upstream-cut', or the code of svc's own error; 'open' until the request has ended. */
  readonly end: string;
  readonly memoryMode: string;
  readonly memoryState: string;
  readonly compressionMode: string;
  readonly continuityState: string;
  readonly originalInputTokens: number;
  readonly forwardedInputTokens: number;
  readonly recalledTokens: number;
  readonly elidedItems: number;
  readonly elidedTokens: number;
  /** References of the newest left-out outputs. */
  readonly elidedRefs?: readonly string[];
  /**
   * Notes on the items: one for each edit, of which the oldest may be merged, and one for each run of unchanged items.
   * Undefined if all were sent unchanged.
   */
  readonly items?: readonly ItemNote[];
  /** The recall for the newest prompt, and whether the model used it. */
  readonly recall?: RecallUse;
  /** The tokens of the blocks of second looks; undefined if there are none. */
  readonly secondLooks?: SecondLooks;
  /** True if the request was paid by the client's own login and not by a key. */
  readonly isLogin?: true;
  /** The conversation's group, if the hold-out experiment is on. */
  readonly trial?: Trial;
  /** True if the newest text begins like a correction; only set together with `trial`. */
  readonly isCorrection?: true;
  /** The usage window of the login's plan that was used up, if the provider refused the request for that reason. */
  readonly planLimit?: PlanLimit;
  /** The token counts that the provider reported. */
  readonly usage?: Usage;
  /** Thinking blocks that the provider dropped or flagged; undefined if none. */
  readonly lostThoughts?: LostThoughts;
  /** The tool outputs that the provider itself cleared; 0 if svc asked for it and the provider cleared none. */
  readonly cleared?: Cleared;
  /** Why the provider's cache did not serve the cached prefix; undefined if it did, or if that is unknown. */
  readonly miss?: CacheMiss;
  /** The number of thinking blocks that an earlier request had and that this one lacks; undefined if none. */
  readonly droppedThoughts?: number;
  /** Who first changed the prefix of the lost thinking; only set together with `lostThoughts`, if known. */
  readonly prefixChangedBy?: 'client' | 'svc';
  /** How long the provider caches the prompt, in milliseconds; undefined for the default. */
  readonly cacheMs?: number;
  /** The price of the input with svc, and the estimated price without it; see core/shortening/meter.ts. */
  readonly price?: Price;
  /** The number of calls of the newest round that read left-out outputs again; undefined if none. */
  readonly readings?: number;
  /** True if the provider may have bound thinking to its prefix, so that svc changes nothing that was sent before. */
  readonly isBound?: true;
  /** True if the newest thinking was made without svc, so that no block may stand in front of it. */
  readonly isForeign?: true;
  /** Milliseconds of each step, by name. */
  readonly ms: Readonly<Record<string, number>>;
}
