import type { Dialect } from '../core/conversation/view.ts';
import type { LostThoughts } from '../core/conversation/lost-thoughts.ts';
import type { ThoughtSums } from '../core/plan/states.ts';
import type { Cleared, Usage } from '../core/dialects/answer.ts';
import type { ItemNote } from '../core/plan/item-notes.ts';
import type { QuotaReport, QuotaRow } from '../core/meter/quota.ts';
import type { Trial } from '../core/meter/hold-out.ts';
import type { TrialReport } from '../core/meter/trial-report.ts';
import type { PlanLimit } from '../core/meter/quota-words.ts';
import type { CacheMiss } from '../core/meter/cache-miss.ts';
import type { Price } from '../core/shortening/meter.ts';
import type { SecondLooks } from '../core/recall/injections.ts';
import type { RecallUse } from '../core/recall/recall-use.ts';

/** One row a request: no text, no key. It is what a hosted receipt would be. */
export interface RequestLog {
  /** Returns at once. A kill may take the row of an answer that ended a moment ago. */
  add(row: RequestRow): void;
  /** Notes how much of a plan is used. Returns at once. */
  addQuota(row: QuotaRow): void;
  /** How much of each login's plan is used, the newest first. `now`: milliseconds since 1970. */
  quota(now: number): Promise<readonly QuotaReport[]>;
  /** Both groups of the hold-out since then. */
  trial(since: number): Promise<TrialReport>;
  /** Newest first. */
  list(filter: RequestList): Promise<readonly RequestRow[]>;
  /** Newest first, of model requests alone. */
  find(filter: RequestFilter): Promise<readonly RequestRow[]>;
  /** Rows of one conversation, the newest first; what is still on its way to the table may be missing. */
  conversation(filter: ConversationFilter): Promise<readonly RequestRow[]>;
  /** Sums over the rows since then: one for each day, client and space, newest day first. */
  sum(filter: SumFilter): Promise<readonly RequestSum[]>;
}

export interface RequestList {
  readonly limit: number;
  /** Those whose id is this or begins so. */
  readonly id?: string;
  /** Milliseconds since 1970: those of the newest `limit` rows that are not older. */
  readonly since?: number;
}

/** Every member that is there must fit. */
export interface RequestFilter {
  readonly conversation?: string;
  readonly space?: string;
  readonly client?: string;
  readonly model?: string;
  /** Somewhere in the row, in any case of its letters: an id, a project, a client, a model, a state. */
  readonly words?: string;
  /** Only those that the provider's cache should have served. */
  readonly isMiss?: true;
  /** Milliseconds since 1970: from the first, before the second. */
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
  /** Milliseconds since 1970: from the first, before the second. */
  readonly since: number;
  readonly until?: number;
}

/** Sums over model requests of one day, client, space and model; what was only relayed is not in them. Tokens are svc's estimates, but for `usage`. */
export interface RequestSum {
  /** In local time: 2026-11-20. */
  readonly day: string;
  readonly client: string;
  readonly space: string;
  readonly model: string;
  /** 1 where the client's own login paid. */
  readonly isLogin: number;
  readonly requests: number;
  /** Answered with an error, cut, or given up by the client. */
  readonly failed: number;
  readonly originalInputTokens: number;
  readonly forwardedInputTokens: number;
  readonly recalledTokens: number;
  readonly elidedTokens: number;
  /** Requests where memory looked, and where it quoted something. */
  readonly asked: number;
  readonly recalled: number;
  /** Requests of prompts that only got the list of earlier sessions. */
  readonly briefs: number;
  /** Second looks that found something, their tokens, and how many tokens later requests repeated. */
  readonly looks: number;
  readonly lookTokens: number;
  readonly lookTokensRepeated: number;
  /** Requests that went without memory, because it failed. */
  readonly degraded: number;
  /** Those of them for which it did not answer in time. */
  readonly late: number;
  /** The provider's own counts, of the requests that carry them. */
  readonly usage: Usage;
  /** Price of the requests that `usage` counts. */
  readonly price: Price;
  /** Calls of a model that read left-out outputs again. */
  readonly readings: number;
  /** The part of the direct price for the requests with such calls: direct would have none of them. */
  readonly againPrice: number;
  readonly thoughts: ThoughtSums;
  /** Prompts that got a block, and those of them whose block the model used. */
  readonly prompts: number;
  readonly promptsUsed: number;
}

/** The totals of one session with one model. */
export interface SessionSum {
  readonly model: string;
  /** 1 where the client's own login paid. */
  readonly isLogin: number;
  /** Prompts that got memories. */
  readonly prompts: number;
  /** In input tokens at full price. */
  readonly paid: number;
  readonly direct: number;
}

export interface RequestRow {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly client: string;
  /**
   * As in core/request/identity.ts; 'relayed' or 'count' for requests that svc passes on without
   * reading.
   */
  readonly kind: string;
  readonly dialect: Dialect;
  readonly model: string;
  readonly space: string;
  readonly conversation: string;
  readonly status: number;
  /** 'complete', 'client-gone', 'upstream-cut', or the code of svc's own error. */
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
  /** References of the newest outputs that were left out. */
  readonly elidedRefs?: readonly string[];
  /** Its items and what became of each; absent where all went out as it came. */
  readonly items?: readonly ItemNote[];
  /** The recall for the newest prompt, and whether the model used it. */
  readonly recall?: RecallUse;
  /** The tokens of the blocks that second looks placed; absent where it carries none. */
  readonly secondLooks?: SecondLooks;
  /** The client's own login paid, not a key. */
  readonly isLogin?: true;
  /** The group of its conversation where the hold-out is on. */
  readonly trial?: Trial;
  /** Its newest text begins as a correction; only beside `trial`. */
  readonly isCorrection?: true;
  /** The window of the plan that the provider refused it for. */
  readonly planLimit?: PlanLimit;
  /** The provider's own count, where it reported one. */
  readonly usage?: Usage;
  /** Thoughts in it that the provider did not use as they were sent; absent where there are none. */
  readonly lostThoughts?: LostThoughts;
  /** Tool outputs that the provider itself cleared; 0 where svc asked for that and it cleared none. */
  readonly cleared?: Cleared;
  /** Why the provider's cache did not serve what it had; absent where it did, or where that is not known. */
  readonly miss?: CacheMiss;
  /** Thoughts that the client sent before and left out here; absent for none. */
  readonly droppedThoughts?: number;
  /** Who first changed what the thoughts are bound to; only beside `lostThoughts`, where svc knows it. */
  readonly prefixChangedBy?: 'client' | 'svc';
  /** Milliseconds that the provider's prompt cache lives; absent where it is the default. */
  readonly cacheMs?: number;
  /** The price of its input, here and direct; see core/shortening/meter.ts. */
  readonly price?: Price;
  /** Calls that read left-out outputs again, answered in this request; absent for none. */
  readonly readings?: number;
  /** The conversation holds thinking that is bound to what was sent, so nothing sent may change. */
  readonly isBound?: true;
  /** Blocks stay out for good, because the conversation was continued without svc. */
  readonly isForeign?: true;
  /** Milliseconds of each step, by name. */
  readonly ms: Readonly<Record<string, number>>;
}
