import { estimateTextTokens } from '../bytes/tokens.ts';
import type { Item, RequestView } from '../conversation/view.ts';

/**
 * Decides which recalled blocks a request carries, and where. A block that was placed once is put
 * back byte for byte on every later request that still holds its message: the provider's prompt
 * cache then sees the same prefix. Measured: replaying costs +1 to +5 % of the input cost, a block
 * that moves or vanishes +14 to +600 %.
 */

/** What the ledger keeps of one human item. The ledger port stores it as it is. */
export interface InjectionEntry {
  readonly key: string;
  /** '' when the recall found nothing worth saying. */
  readonly block: string;
  readonly form: 'text' | 'part';
  /** Blocks of earlier items are left out from here on. */
  readonly dropsEarlier: boolean;
  readonly at: number;
}

export interface ConversationPlace {
  readonly space: string;
  /** The conversation's key. */
  readonly conversation: string;
  /** The client states its conversation id; otherwise the key was derived from the first words. */
  readonly isStated: boolean;
}

/** A human item and the keys under which the ledger may know it. */
export interface HumanItem {
  readonly item: Item;
  /** This conversation at this item. */
  readonly exactKey: string;
  /** Any conversation of this space with the same words so far: a fork or resume under a new id. */
  readonly looseKey: string;
}

/** A block and the item that it goes into. */
export interface Placement {
  readonly item: Item;
  readonly block: string;
  readonly form: 'text' | 'part';
  readonly tokens: number;
}

/** Fingerprints have one length and spaces hold no colon, so two different places never share a key. */
export function humanItems(view: RequestView, place: ConversationPlace): readonly HumanItem[] {
  const humans: HumanItem[] = [];
  for (let at = view.items.at(-1)?.soFar.humans; at !== undefined; at = at.before) {
    const item = view.items[at.index];
    if (item === undefined) continue;
    const { fingerprint } = item;
    humans.push({
      item,
      exactKey: `e:${fingerprint}:${place.space}:${place.conversation}`,
      looseKey: `l:${fingerprint}:${place.space}`,
    });
  }
  return humans.toReversed();
}

/**
 * The newest human item, when nobody answered it yet: the one place where a recall may happen.
 * Inside a tool loop there is none: a new block there would break the prefix in every round.
 */
export function unansweredItem(view: RequestView): Item | undefined {
  for (let at = view.items.length - 1; at >= 0; at -= 1) {
    const item = view.items[at];
    if (item === undefined || item.role === 'assistant' || item.role === 'tool') return undefined;
    if (item.humanText !== '') return item;
    if (item.toolResultIds.length > 0 || item.hasReasoning) return undefined;
  }
  return undefined;
}

// Conversations without a stated id are told apart by their words alone, so the same first words
// said again later are a new conversation. One hour is the longest life of a provider's prompt
// cache: until then the same bytes save money, after that a fresh recall costs nothing.
const DERIVED_REUSE_MS = 3_600_000;

export interface Replay {
  readonly placements: readonly Placement[];
  /** The unanswered item has its entry: no recall is needed for it. */
  readonly isSettled: boolean;
}

/** The blocks that the ledger already knows for this conversation. */
export function replayBlocks(
  humans: readonly HumanItem[],
  entries: ReadonlyMap<string, InjectionEntry>,
  facts: {
    readonly unanswered: Item | undefined;
    readonly isStated: boolean;
    readonly now: number;
    readonly recalledTokensMax: number;
  },
): Replay {
  let placements: Placement[] = [];
  let used = 0;
  let isSettled = facts.unanswered === undefined;
  for (const human of humans) {
    const isUnanswered = human.item === facts.unanswered;
    const entry = entryOf(human, entries, { ...facts, isUnanswered });
    if (entry === undefined) continue;
    if (isUnanswered) isSettled = true;
    const { block, form } = entry;
    const tokens = block === '' ? 0 : estimateTextTokens(block);
    // The budget may have been lowered since, and a fork may join the blocks of two conversations.
    const isTooLong = tokens > facts.recalledTokensMax;
    if (entry.dropsEarlier || (!isTooLong && used + tokens > facts.recalledTokensMax)) {
      placements = [];
      used = 0;
    }
    if (tokens === 0 || isTooLong) continue;
    placements.push({ item: human.item, block, form, tokens });
    used += tokens;
  }
  return { placements, isSettled };
}

function entryOf(
  human: HumanItem,
  entries: ReadonlyMap<string, InjectionEntry>,
  facts: { readonly isUnanswered: boolean; readonly isStated: boolean; readonly now: number },
): InjectionEntry | undefined {
  const exact = entries.get(human.exactKey);
  if (!facts.isUnanswered) return exact ?? entries.get(human.looseKey);
  if (exact === undefined || facts.isStated) return exact;
  return facts.now - exact.at <= DERIVED_REUSE_MS ? exact : undefined;
}

/** How many tokens a new block may take, and whether the older ones make way for it. */
export interface Room {
  readonly tokensMax: number;
  readonly dropsEarlier: boolean;
}

// Under a quarter of the budget a block says too little to be worth its place.
const ROOM_SHARE_MIN = 4;
// Dropping rewrites everything behind the first block at 1.25 times the price instead of reading it
// from the cache at 0.1. Up to this many tokens that is less than 1 cent per drop with the
// dearest models; above it, on a warm cache, memory would cost more than it is worth.
const REWRITE_TOKENS_MAX = 4096;

/**
 * Room for a new block beside those already placed. The sum of all blocks stays within
 * `recalledTokensMax`. When too little is left, the older blocks are dropped together, but only
 * where that is cheap: little text behind them, or a provider cache that is cold anyway. Undefined:
 * no room, so no recall.
 */
export function roomForBlock(
  view: RequestView,
  placements: readonly Placement[],
  facts: { readonly recalledTokensMax: number; readonly isCacheCold: boolean },
): Room | undefined {
  const { recalledTokensMax } = facts;
  const used = placements.reduce((sum, { tokens }) => sum + tokens, 0);
  const left = recalledTokensMax - used;
  if (left * ROOM_SHARE_MIN >= recalledTokensMax) return { tokensMax: left, dropsEarlier: false };
  const first = placements[0];
  if (first === undefined) return undefined;
  const { tokens, soFar } = first.item;
  const behind = (view.items.at(-1)?.soFar.tokens ?? 0) - soFar.tokens + tokens;
  if (!facts.isCacheCold && behind > REWRITE_TOKENS_MAX) return undefined;
  return { tokensMax: recalledTokensMax, dropsEarlier: true };
}

/** Both entries of one placement, as the ledger records them. */
export function entriesFor(
  human: HumanItem,
  entry: Omit<InjectionEntry, 'key'>,
): readonly InjectionEntry[] {
  return [
    { ...entry, key: human.exactKey },
    { ...entry, key: human.looseKey },
  ];
}
