import type { Usage } from '../dialects/dialect-answer.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import {
  type Change,
  commonItems,
  type Difference,
  differenceOf,
  droppedThoughts,
  markDifference,
  type OwnChange,
  type OwnChanges,
  ownDifference,
  type Place,
  type PrefixSketch,
  sharedItems,
  tokensAgain,
} from './prefix.ts';

/**
 * Says why the provider's prompt cache did not serve a request, although the request before had filled the cache: who
 * changed the prefix first, or that nobody did.
 */
export interface CacheMiss {
  /**
   * `svc`, `client`: who changed the prefix. `time`: the cache's lifetime ended. `provider`: the same prefix came in
   * time, but the provider did not read it. `restart`: unknown, because svc was restarted after the request before.
   */
  readonly by: 'svc' | 'client' | 'time' | 'provider' | 'restart';
  readonly place?: Place;
  readonly change?: Change;
  /** The changed message, counted from 1; undefined for the part before all messages. */
  readonly message?: number;
  /** The name of a tool, a server of tools or a setting. */
  readonly name?: string;
  readonly isServer?: true;
  /** What svc changed. `clearing`: svc asked the provider to clear old outputs. */
  readonly own?: OwnChange | 'clearing';
  /** Tokens that had been cached and were charged again. */
  readonly tokens: number;
  /** Their extra cost over a cache read, in input tokens at full price. */
  readonly price: number;
  /** Milliseconds since the request before; set only if the cache may have expired meanwhile. */
  readonly pausedMs?: number;
}

/** One request that the provider answered. */
export interface SentPrefix extends AnsweredPrefix {
  /**
   * How many items this request has, and how many the requests before it had: ascending, only the last ENDS_MAX counts.
   * After each of these counts of items, an entry of the provider's cache may end.
   */
  readonly ends: readonly number[];
}

interface AnsweredPrefix {
  readonly sketch: PrefixSketch;
  readonly own: OwnChanges;
  /** The token counts; undefined if the provider has not reported them. */
  readonly usage: Usage | undefined;
  /** When the request came, and when its answer began, by the monotonic clock. */
  readonly at: number;
  readonly answeredAt: number;
  /** When the request came by the wall clock, which also runs while the machine sleeps. */
  readonly wallAt: number;
  /** How long the provider keeps the messages in its cache, in milliseconds. */
  readonly lifetimeMs: number;
}

/** A request compared with an earlier request of its conversation. */
export interface Comparison {
  /** The nearest earlier request, mostly the one that shares most items; undefined if there is none. */
  readonly before: SentPrefix | undefined;
  readonly sketch: PrefixSketch;
  /** The first difference that the client made. */
  readonly difference: Difference | undefined;
  /** The number of thinking blocks that the client no longer sends. */
  readonly droppedThoughts: number;
}

/** Bound on parallel threads of one conversation: an agent, and sub-agents without a name of their own. */
const THREADS_MAX = 3;

/** Most items of a conversation's beginning: a prompt, with what the client adds before it. */
const OPENING_ITEMS = 3;
/** Bound on the remembered `ends` of a SentPrefix. Providers hardly ever find an entry further back. */
const ENDS_MAX = 4;

/** The latest requests of one conversation, as digests. */
export class PrefixHistory {
  /** The latest requests, newest first. */
  #sent: readonly SentPrefix[] = [];
  /** True if the provider has written or read the conversation in its cache at least once. */
  #hasCache = false;

  get size(): number {
    return this.#sent.reduce((sum, { sketch }) => sum + sketch.items.length, 0);
  }

  /** Compares a request with the nearest earlier one. `at`: when this request came, by the monotonic clock. */
  compare(sketch: PrefixSketch, at: number): Comparison {
    const before = this.#nearest(sketch, at);
    if (before === undefined) return { before, sketch, difference: undefined, droppedThoughts: 0 };
    const difference = differenceOf(before.sketch, sketch);
    const dropped = difference === undefined ? 0 : droppedThoughts(before.sketch, sketch);
    return { before, sketch, difference, droppedThoughts: dropped };
  }

  /** Notes an answered request. If it continues `before`, it replaces `before` in the history. */
  keep(answered: AnsweredPrefix, before: SentPrefix | undefined): void {
    const { cacheRead = 0, cacheWrite = 0 } = answered.usage ?? {};
    this.#hasCache ||= cacheRead > 0 || cacheWrite > 0;
    const count = answered.sketch.items.length;
    const common = before === undefined ? 0 : commonItems(before.sketch, answered.sketch);
    const isNext = before !== undefined && common >= before.sketch.items.length - 1;
    const earlier = (before?.ends ?? []).filter((end) => end < count);
    const sent = { ...answered, ends: [...earlier, count].slice(-ENDS_MAX) };
    this.#sent = [sent, ...this.#sent.filter((one) => !isNext || one !== before)].slice(
      0,
      THREADS_MAX,
    );
  }

  get hasCache(): boolean {
    return this.#hasCache;
  }

  /**
   * Returns the earlier request that shares most items with this one, of those whose answer had begun before this one
   * came. If none shares an item, returns one that had only an opening, which the user may have edited; undefined if
   * there is no such request, as after a compaction.
   */
  #nearest(sketch: PrefixSketch, at: number): SentPrefix | undefined {
    const answered = this.#sent.filter((one) => one.answeredAt <= at);
    // Finds a request that had only an opening. If the user edited that opening, the two requests share no item.
    const isEdited = ({ items }: PrefixSketch): boolean =>
      items.length <= OPENING_ITEMS && items.length < sketch.items.length;
    return (
      most(answered, sketch, commonMessages) ??
      most(answered, sketch, sharedItems) ??
      answered.find((one) => isEdited(one.sketch))
    );
  }
}

/** Counts common items; 0 if all are system messages, which many conversations of Chat Completions share. */
function commonMessages(before: PrefixSketch, after: PrefixSketch): number {
  const count = commonItems(before, after);
  const first = after.items.findIndex(({ isSystem }) => !isSystem);
  return first === -1 || first >= count ? 0 : count;
}

function most(
  sent: readonly SentPrefix[],
  sketch: PrefixSketch,
  count: (before: PrefixSketch, after: PrefixSketch) => number,
): SentPrefix | undefined {
  let nearest: SentPrefix | undefined;
  let shared = 0;
  for (const one of sent) {
    const both = count(one.sketch, sketch);
    if (both > shared) [nearest, shared] = [one, both];
  }
  return nearest;
}

export interface MissQuestion {
  readonly comparison: Comparison;
  readonly hasCache: boolean;
  readonly own: OwnChanges;
  readonly usage: Usage;
  readonly prices: CachePrices;
  /** Factor of all prices of this request: more than 1 if it is long for its model. */
  readonly factor: number;
  /** svc's token estimates: of the request as it was sent, and of what was left out. */
  readonly forwardedTokens: number;
  readonly elidedTokens: number;
  /** True if svc asked the provider to clear old outputs, and some were cleared. */
  readonly isCleared: boolean;
  readonly at: number;
  readonly wallAt: number;
  /** Set for a conversation's first request after svc was restarted. */
  readonly resumed?: ResumedPrefix | undefined;
}

/** What svc knows about a request that an earlier process of svc served. */
export interface ResumedPrefix {
  /** svc's estimate of the tokens in that request. */
  readonly tokens: number;
  /** A lower bound of the milliseconds since that request. */
  readonly pausedMs: number;
  /** How long the provider keeps the messages in its cache, in milliseconds. */
  readonly lifetimeMs: number;
}

/**
 * So many tokens, or this share of the tokens sent again if that is more, are usually not read from the cache (as in
 * core/shortening/meter.ts): clients rewrite their last message, and cache entries end at marks.
 */
const USUAL_TOKENS = 2_048;
const USUAL_SHARE = 0.1;
/** USUAL_SHARE for estimated tokens. It is larger, because the estimates of two kinds of text have different errors. */
const ESTIMATED_SHARE = 0.2;
/**
 * Fewest tokens that system prompt and tools must have, so that svc expects a cache entry of their own. For some models
 * a provider caches nothing shorter.
 */
const SHELL_TOKENS_MIN = 4_096;
/**
 * Number of newest items in which Anthropic usually finds a cache entry: it looks back 20 blocks, and most items have
 * one or two.
 */
const TAIL_ITEMS = 8;

/** Returns the miss; undefined if the cache served what it could, or if that is unknown. */
export function cacheMissOf(question: MissQuestion): CacheMiss | undefined {
  const { comparison, own, resumed } = question;
  const { before, difference } = comparison;
  if (before === undefined) return resumed && resumedMissOf(question, resumed);
  if (!question.hasCache) return undefined;
  const ours = ownDifference(before.own, own, endOf(comparison));
  const again = tokensSentAgain(question, before, ours === undefined && difference === undefined);
  return missOf(question, again, () => culpritOf(question, before, ours));
}

/** Explains a miss after a restart. The digests are gone, so svc can only tell whether the lifetime has expired. */
function resumedMissOf(
  question: MissQuestion,
  { tokens, pausedMs, lifetimeMs }: ResumedPrefix,
): CacheMiss | undefined {
  const { cacheRead, cacheWrite } = question.usage;
  if (cacheRead + cacheWrite === 0) return undefined;
  const again = estimatedAgain(question, tokens);
  return missOf(question, again, () =>
    pausedMs > lifetimeMs ? { by: 'time', pausedMs: Math.round(pausedMs) } : { by: 'restart' },
  );
}

function missOf(
  { usage, prices, factor }: MissQuestion,
  again: SentAgain,
  culprit: () => Culprit,
): CacheMiss | undefined {
  const tokens = Math.round(again.tokens - usage.cacheRead);
  const share = again.isExact ? USUAL_SHARE : ESTIMATED_SHARE;
  if (tokens <= Math.max(USUAL_TOKENS, share * again.tokens)) return undefined;
  const fresh = usage.cacheWrite > 0 ? prices.write : 1;
  const price = Math.round(tokens * factor * Math.max(0, fresh - prices.read));
  return { ...culprit(), tokens, price };
}

/**
 * Returns the index of the first item that the client changed, -1 for the part before all items. If no item changed, or
 * only a setting, returns the number of items of the earlier request.
 */
function endOf({ before, difference }: Comparison): number {
  const count = before?.sketch.items.length ?? 0;
  if (difference === undefined || difference.place === 'settings') return count;
  return Math.min(count, difference.index);
}

interface SentAgain {
  readonly tokens: number;
  readonly isExact: boolean;
}

function tokensSentAgain(
  question: MissQuestion,
  before: SentPrefix,
  isUnchanged: boolean,
): SentAgain {
  const { sketch } = question.comparison;
  const isLonger = sketch.items.length >= before.sketch.items.length;
  if (isUnchanged && isLonger && before.usage !== undefined) {
    const { cacheRead, cacheWrite } = before.usage;
    const cached =
      before.sketch.lastMark === undefined ? totalOf(before.usage) : cacheRead + cacheWrite;
    return { tokens: Math.min(cached, totalOf(question.usage)), isExact: true };
  }
  return estimatedAgain(question, tokensAgain(before.sketch, sketch));
}

function estimatedAgain(
  { usage, forwardedTokens, elidedTokens }: MissQuestion,
  tokens: number,
): SentAgain {
  const share = Math.min(1, Math.max(0, tokens - elidedTokens) / Math.max(1, forwardedTokens));
  return { tokens: totalOf(usage) * share, isExact: false };
}

function totalOf({ input, cacheRead, cacheWrite }: Usage): number {
  return input + cacheRead + cacheWrite;
}

type Culprit = Omit<CacheMiss, 'tokens' | 'price'>;

/**
 * Says who caused the miss. It is svc, whatever else happened, if svc changed an item before the client's first
 * difference, or if the provider cleared outputs because svc asked for it.
 */
function culpritOf(
  question: MissQuestion,
  before: SentPrefix,
  ours: ReturnType<typeof ownDifference>,
): Culprit {
  const { comparison, at, wallAt } = question;
  const pausedMs = Math.max(0, at - before.at);
  const isLate = pausedMs > before.lifetimeMs;
  const paused = isLate ? { pausedMs: Math.round(pausedMs) } : {};
  if (ours !== undefined) {
    return { by: 'svc', own: ours.what, place: 'message', message: ours.index + 1, ...paused };
  }
  if (question.isCleared) return { by: 'svc', own: 'clearing', ...paused };
  if (isLate) return { by: 'time', ...paused };
  const { difference, sketch } = comparison;
  const isClient = difference !== undefined && explains(difference, question);
  const moved = difference === undefined ? markDifference(before.sketch, sketch) : undefined;
  const found = isClient ? difference : moved;
  if (found !== undefined) {
    const { place, change, index, name, isServer } = found;
    return {
      by: 'client',
      place,
      change,
      ...(index < 0 ? {} : { message: index + 1 }),
      ...(name === undefined ? {} : { name }),
      ...(isServer === undefined ? {} : { isServer }),
    };
  }
  // Compare by the wall clock too, because the monotonic clock stops while the machine sleeps.
  const sleptMs = wallAt - before.wallAt;
  if (difference === undefined && sleptMs > before.lifetimeMs) {
    return { by: 'time', pausedMs: Math.round(sleptMs) };
  }
  return { by: 'provider' };
}

/** Says whether the changed message can be the cause. It can only if the cache served the part before that message. */
function explains({ index }: Difference, question: MissQuestion): boolean {
  if (index < 0) return true;
  const { comparison, usage, forwardedTokens } = question;
  const { shell, items } = comparison.sketch;
  const ratio = totalOf(usage) / Math.max(1, forwardedTokens);
  const isShellCached = shell.isMarked && shell.tokens >= SHELL_TOKENS_MIN;
  if (isShellCached && usage.cacheRead < 0.5 * shell.tokens * ratio) return false;
  // Cache entries end where earlier requests ended. The provider searches them backwards from the new end.
  const end = comparison.before?.ends.findLast((one) => one <= index) ?? 0;
  if (end === 0 || items.length - end > TAIL_ITEMS) return true;
  const kept = items.slice(0, end).reduce((sum, item) => sum + item.tokens, shell.tokens);
  return usage.cacheRead >= 0.5 * kept * ratio;
}
