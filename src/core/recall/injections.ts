import { hash } from 'node:crypto';
import { estimateTextTokens } from '../bytes/tokens.ts';
import {
  type AddressOf,
  type BlockFact,
  type BlockKind,
  type EntryOf,
  type FoundEntries,
  markOf,
  type PlacedMark,
  type RefusalPlace,
} from '../ledger/entries.ts';
import { exchangeBefore, isModelWork } from '../conversation/exchanges.ts';
import { textDigest } from '../memory/reference.ts';
import type { Item, RequestView } from '../conversation/view.ts';
import type { AgentLimits } from './agent-block.ts';
import { MARK_TOKENS } from './own-blocks.ts';

/**
 * Decides which recalled texts (blocks) a request carries, and where. A block that was sent once is sent again, byte
 * for byte, in later requests with the same message, so that the provider's prompt cache finds the same prefix. It is
 * not sent again if a record that it quotes was forgotten, the key may not read its space, its message was left out, a
 * memory service's block is too old, or bound thinking or the cached answer was made without it.
 * As measured, blocks that are sent again make the input 1 to 5 % dearer, and blocks that move or vanish 14 to 600 %.
 */

/** The conversation, its tenant and scope (see RefusalPlace), and the space of its memories. */
export interface ConversationPlace extends RefusalPlace {
  readonly space: string;
}

/** An item that may carry a block, and the addresses at which the ledger may know the block. */
export interface BlockItem {
  readonly item: Item;
  readonly index: number;
  /** True if the item is a tool result. It has no address `answered`, and carries only blocks of second looks. */
  readonly isResult: boolean;
  /** Address by the conversation and the item. */
  readonly own: AddressOf<'own-block'>;
  /** Address by the item and the model's first item after it that is not only thinking; undefined without an answer. */
  readonly answered: AddressOf<'answered-block'> | undefined;
  /** Address by the item and the visible text of the first answer; only if `isOpening`, see spokenEntries(). */
  readonly spoken: AddressOf<'answered-block'> | undefined;
  /** Address shared by all conversations of the scope with the same words so far. */
  readonly shared: AddressOf<'shared-block'>;
  /** True if no answer precedes the item. Unrelated conversations may begin with the same words. */
  readonly isOpening: boolean;
}

/** One block that this request carries. */
export interface Placement extends Pick<BlockFact, 'block' | 'form' | 'space'> {
  readonly item: Item;
  readonly tokens: number;
  /** True if this request is the first one that carries the block. */
  readonly isNew?: true;
}

/** Tokens of a request's blocks from second looks (see second-look.ts): `tokens` of all, `written` of the new ones. */
export interface SecondLooks {
  readonly tokens: number;
  readonly written: number;
}

export function secondLooksIn(placements: readonly Placement[]): SecondLooks {
  const looks = placements.filter(({ item }) => item.humanText === '');
  return {
    tokens: tokensOf(looks),
    written: tokensOf(looks.filter(({ isNew }) => isNew === true)),
  };
}

/** Returns the items with text of the user, in order. */
export function humanItems(view: RequestView, place: ConversationPlace): readonly BlockItem[] {
  const humans: BlockItem[] = [];
  const firstWork = view.items.findIndex(isModelWork);
  let spokenOpening: string | undefined;
  let answer: string | undefined;
  for (let at = view.items.length - 1; at >= 0; at -= 1) {
    const item = view.items[at];
    if (item === undefined) continue;
    if (item.humanText !== '') {
      const { own, answered, shared } = addressesOf(item, place, answer);
      const isOpening = firstWork === -1 || at < firstWork;
      const spoken =
        answered === undefined || !isOpening
          ? undefined
          : { ...answered, answer: (spokenOpening ??= spokenAnswer(openingText(view))) };
      humans.push({ item, index: at, isResult: false, own, answered, spoken, shared, isOpening });
    }
    // Skip an item with only thinking, because a client may leave it out later.
    if (isModelWork(item) && item.isThought !== true) answer = item.fingerprint;
  }
  return humans.toReversed();
}

type ItemAddresses = Pick<BlockItem, 'own' | 'answered' | 'shared'>;

/**
 * Caches the ledger addresses of each item. The ledger computes the key of an address object only once, so reused
 * objects save 0.8 ms in a request with 1,000 prompts and results.
 */
const ADDRESSES = new WeakMap<Item, ItemAddresses>();

/** Returns the addresses of an item. `answer`: the fingerprint of its answer. */
function addressesOf(
  item: Item,
  { tenant, scope, conversation }: ConversationPlace,
  answer?: string,
): ItemAddresses {
  const known = ADDRESSES.get(item);
  const isSame =
    known?.own.tenant === tenant &&
    known.own.conversation === conversation &&
    known.shared.scope === scope &&
    known.answered?.answer === answer;
  if (isSame) return known;
  const { fingerprint } = item;
  const addresses: ItemAddresses = {
    own: { kind: 'own-block', tenant, conversation, fingerprint },
    answered:
      answer === undefined
        ? undefined
        : { kind: 'answered-block', tenant, scope, fingerprint, answer },
    shared: { kind: 'shared-block', tenant, scope, fingerprint },
  };
  ADDRESSES.set(item, addresses);
  return addresses;
}

/** Returns the items that may carry a block, in order: those of the user, and tool results. */
export function blockItems(view: RequestView, place: ConversationPlace): readonly BlockItem[] {
  return [...humanItems(view, place), ...resultItems(view, place)].toSorted(
    (a, b) => a.index - b.index,
  );
}

/**
 * Returns the items from index `from` on that hold results of the client's tools and no text of the user. Each call has
 * a unique id, so conversations that share a result are continuations of one conversation.
 */
export function resultItems(
  view: RequestView,
  place: ConversationPlace,
  from = 0,
): readonly BlockItem[] {
  return view.items.slice(from).flatMap((item, at) => {
    const isResult = item.toolResultIds.length > 0 && item.role !== 'assistant';
    if (!isResult || item.humanText !== '') return [];
    const { own, answered, shared } = addressesOf(item, place);
    const index = from + at;
    return [{ item, index, isResult, own, answered, spoken: undefined, shared, isOpening: false }];
  });
}

/** Returns what humanItems() returns as `answered` for the newest item of the user; undefined before its answer. */
export function newestAnswered(
  { items }: RequestView,
  { tenant, scope }: ConversationPlace,
): AddressOf<'answered-block'> | undefined {
  const index = items.at(-1)?.soFar.humans?.index;
  const prompt = index === undefined ? undefined : items[index];
  if (index === undefined || prompt === undefined) return undefined;
  const { fingerprint } = prompt;
  for (let at = index + 1; at < items.length; at += 1) {
    const item = items[at];
    if (item === undefined || !isModelWork(item) || item.isThought === true) continue;
    return { kind: 'answered-block', tenant, scope, fingerprint, answer: item.fingerprint };
  }
  return undefined;
}

/**
 * Lists every address at which the ledger may know a block of these items. `placed`: the blocks in front of the newest
 * thinking.
 */
export function blockAddresses(
  items: readonly BlockItem[],
  placed: Bond['placed'] = [],
): readonly AddressOf<BlockKind>[] {
  const sent = placed === 'foreign' ? [] : placed;
  return items
    .flatMap((one) => [one.own, one.answered, one.spoken, one.shared, placedAddress(one, sent)])
    .filter((address) => address !== undefined);
}

/** Names an answer by a hash of its visible text. The prefix distinguishes the name from a fingerprint. */
function spokenAnswer(text: string): string {
  return `said-${textDigest('assistant', text.trim())}`;
}

/**
 * Returns entries under the visible text of a conversation's first answer. With them a fork finds the blocks in front
 * of that answer even if no request has contained the answer yet: a client may continue under another conversation id
 * at once. `placements`: the blocks that the request carried. Blocks that the ledger no longer has are left out.
 */
export function spokenEntries(
  humans: readonly BlockItem[],
  found: FoundEntries,
  { text, placements }: { readonly text: string; readonly placements: readonly Placement[] },
): readonly BlockEntry[] {
  const answer = spokenAnswer(text);
  return humans.flatMap(({ item, own, shared }) => {
    const placed = placements.find((placement) => placement.item === item)?.block ?? '';
    const used = found.get(own);
    if (used === undefined || (used.block !== placed && placed !== '')) return [];
    const fact = used.block === placed ? factOf(used) : { ...NO_BLOCK, at: used.at };
    return [{ ...shared, kind: 'answered-block', answer, ...fact }];
  });
}

/** Returns the assistant's visible text in the first answered exchange. */
function openingText({ items }: RequestView): string {
  const number = items.find(isModelWork)?.soFar.exchange.number ?? 0;
  const next = items.findIndex(({ soFar }) => soFar.exchange.number > number);
  return exchangeBefore(items, next === -1 ? items.length : next)?.assistantText ?? '';
}

/** Returns the newest message of the user, answered or not. */
export function newestPrompt(view: RequestView): Item | undefined {
  return view.items[newestPromptIndex(view)];
}

/** Returns the index of the newest prompt; -1 if there is none. */
export function newestPromptIndex({ items }: RequestView): number {
  return items.at(-1)?.soFar.humans?.index ?? -1;
}

/**
 * Returns the newest item of the user if it has no answer yet: svc adds a prompt's block only to such an item.
 * Undefined inside a tool loop, because a new block at the prompt would break the cached prefix.
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

/**
 * How long svc reuses its decision for a conversation's first prompt in another conversation with the same words.
 * Without a conversation id svc cannot distinguish the two. Anthropic caches a prompt for at most one hour: within that
 * hour equal bytes save money, afterwards a new recall costs nothing extra.
 */
const ALIKE_REUSE_MS = 3_600_000;

/**
 * How long a block from a memory service is sent again, except in front of bound thinking (see Bond). svc learns of a
 * purge only when it asks the service, so this bounds how long a purged text is still sent. No provider caches a prompt
 * for more than a day, so only a conversation that continues for a week without a day's pause loses its cached prefix.
 */
export const SERVICE_BLOCK_MS = 7 * 24 * 3_600_000;

/**
 * What the newest thinking of a request requires of the blocks before it. A provider may bind thinking: it accepts
 * the thinking only if everything before it is unchanged.
 */
export interface Bond {
  /** True if the conversation has thinking that is bound to its prefix, so that nothing before it may change. */
  readonly isBound: boolean;
  /** The index of the item with the newest thinking; -1 if there is none. */
  readonly thoughtAt: number;
  /**
   * The blocks that were sent in front of the newest thinking. 'foreign': the thinking was made without svc, so
   * without blocks. Undefined if the thinking is not bound.
   */
  readonly placed: readonly PlacedMark[] | 'foreign' | undefined;
  /**
   * Marks (see markOf) of the items whose batches apply; a batch is what svc left out at one item. Empty if nothing
   * was left out before the bound thinking. Undefined: all known batches apply.
   */
  readonly batches?: readonly string[] | undefined;
  /** Marks of texts of these batches that were sent in full when the thinking was made; see backMark. */
  readonly whole?: readonly string[] | undefined;
  /**
   * Set if the client has left its bound thinking out: the blocks that the provider's cache can hold. Undefined also if
   * svc does not know them.
   */
  readonly cached?: CachedBlocks | undefined;
}

/** The blocks that were sent in front of an answer. */
interface CachedBlocks {
  /** The index of the answer's last item. */
  readonly answerAt: number;
  readonly blocks: readonly PlacedMark[];
}

export const UNBOUND: Bond = { isBound: false, thoughtAt: -1, placed: undefined };

export interface Replay {
  readonly placements: readonly Placement[];
  /** True if no recall is needed: there is no unanswered item, or the ledger has an entry for it. */
  readonly isSettled: boolean;
  /** True if each answered prompt has its final entry or `bond` decides its block: svc waits for no late entry. */
  readonly isWhole: boolean;
  /** True if the caller's key may not read the space of a block, so that the block is not sent. */
  readonly isDenied: boolean;
  /** True if blocks are not sent because the conversation was continued without svc. */
  readonly isForeign: boolean;
  /** Entries to record, so that this conversation and its forks find the blocks again. */
  readonly pins: readonly BlockEntry[];
}

type BlockEntry = EntryOf<BlockKind>;

type DatedFact = BlockFact & { readonly at: number };

/** Records the decision that an item gets no block. */
export const NO_BLOCK: BlockFact = { block: '', form: 'text', space: '' };

export interface ReplayFacts {
  /** What unansweredItem() returned. */
  readonly unanswered: Item | undefined;
  /** True if the client states an id of the conversation. */
  readonly isStated: boolean;
  readonly now: number;
  readonly bond: Bond;
  /** Says whether the caller's key may read a space; undefined: it may read every space. */
  readonly mayRead?: ((space: string) => boolean) | undefined;
  /** Age in ms above which a block is not placed again, except before bound thinking; undefined: no bound. */
  readonly blockAgeMaxMs?: number | undefined;
  /** Says whether an item was left out with its exchange, so that its block is not sent. */
  readonly isGone?: ((item: Item) => boolean) | undefined;
}

/**
 * Returns the blocks that the ledger has for this conversation. An answered prompt without an entry was sent without a
 * block. svc records that in an entry, because another conversation with the same beginning may get a block there
 * later. In front of bound thinking, only the blocks count that were sent when the thinking was made.
 */
export function replayBlocks(
  carriers: readonly BlockItem[],
  found: FoundEntries,
  facts: ReplayFacts,
): Replay {
  const { placed, thoughtAt } = facts.bond;
  const placements: Placement[] = [];
  const pins: BlockEntry[] = [];
  let [isSettled, isWhole] = [facts.unanswered === undefined, true];
  let [isDenied, isForeign] = [false, false];
  for (const carrier of carriers) {
    const isUnanswered = carrier.item === facts.unanswered;
    const counts = facts.isStated ? carrier.own : carrier.answered;
    const sent = carrier.index < thoughtAt ? placed : undefined;
    if (sent === 'foreign') {
      const retired = retiredEntry(carrier, found, facts.now);
      isForeign ||= retired !== undefined;
      if (retired !== undefined) pins.push(retired);
      continue;
    }
    const isForced = sent !== undefined || isKeptAway(carrier, facts.bond);
    const entry = isForced
      ? placedEntry(carrier, found, sent ?? [])
      : entryOf(carrier, found, { ...facts, isUnanswered });
    isWhole &&=
      isForced || isUnanswered || carrier.isResult || (counts !== undefined && found.has(counts));
    if (entry === undefined && (isUnanswered || carrier.isResult)) continue;
    const fact = entry ?? { ...NO_BLOCK, at: facts.now };
    if (!isForced && isTooOld(fact, facts)) continue;
    if (isUnanswered) isSettled = true;
    pins.push(...pinsOf(carrier, fact, { found, isStated: facts.isStated }));
    const { block, form, space } = fact;
    if (block === '' || facts.isGone?.(carrier.item) === true) continue;
    if (facts.mayRead?.(space) === false) isDenied = true;
    else {
      const tokens = estimateTextTokens(block);
      placements.push({ item: carrier.item, block, form, space, tokens });
    }
  }
  return { placements, isSettled, isWhole, isDenied, isForeign, pins };
}

/** Says whether the newest answer was made without a block at this item. Then a block would break the cached prefix. */
function isKeptAway({ index, item }: BlockItem, { cached }: Bond): boolean {
  if (cached === undefined || index > cached.answerAt) return false;
  const name = markOf(item.fingerprint);
  return cached.blocks.every((one) => one.item !== name);
}

/** Returns the entry with the block that `placed` has for this item; undefined if there is none. */
function placedEntry(
  carrier: BlockItem,
  found: FoundEntries,
  placed: readonly PlacedMark[],
): BlockEntry | undefined {
  const address = placedAddress(carrier, placed);
  return address === undefined ? undefined : found.get(address);
}

/** Returns the address of the block that was sent at this item; undefined if none was. */
function placedAddress(
  { item: { fingerprint }, own: { tenant } }: BlockItem,
  placed: readonly PlacedMark[],
): AddressOf<'placed-block'> | undefined {
  const mark = placed.find((one) => one.item === markOf(fingerprint))?.block;
  return mark === undefined ? undefined : { kind: 'placed-block', tenant, fingerprint, mark };
}

/** Returns the ledger's entries for an item, that of this conversation first. */
function entriesAt(carrier: BlockItem, found: FoundEntries): readonly BlockEntry[] {
  return blockAddresses([carrier]).flatMap((address) => found.get(address) ?? []);
}

/** Returns the marks (see markOf) of each block and its item, as the ledger's entry of a thinking block has them. */
export function placedMarks(placements: readonly Placement[]): readonly PlacedMark[] {
  return placements.map((placement) => ({
    item: markOf(placement.item.fingerprint),
    block: blockMark(placement),
  }));
}

/**
 * Names a block by its text, form and space. In another form the same text is sent as other bytes. In another space
 * other keys may read it, and a user forgets it separately.
 */
function blockMark({ block, form, space }: Pick<BlockFact, 'block' | 'form' | 'space'>): string {
  return markOf(hash('sha256', JSON.stringify([form, space, block]), 'base64url'));
}

/** Returns an entry that removes this conversation's block at an item for good; undefined if the item has no block. */
export function retiredEntry(
  carrier: BlockItem,
  found: FoundEntries,
  now: number,
): BlockEntry | undefined {
  const [known] = entriesAt(carrier, found);
  const isPlaced = known !== undefined && known.block !== '';
  return isPlaced ? { ...carrier.own, ...NO_BLOCK, at: now } : undefined;
}

function isTooOld({ at }: DatedFact, { now, blockAgeMaxMs }: ReplayFacts): boolean {
  return blockAgeMaxMs !== undefined && now - at > blockAgeMaxMs;
}

function entryOf(
  { own, answered, spoken, shared, isOpening }: BlockItem,
  found: FoundEntries,
  facts: { readonly isUnanswered: boolean; readonly isStated: boolean; readonly now: number },
): BlockEntry | undefined {
  const used = found.get(own);
  if (!facts.isUnanswered) {
    const answeredSo = [answered, spoken].flatMap((address) =>
      address === undefined ? [] : (found.get(address) ?? []),
    )[0];
    // An id that the client states belongs to one conversation. An id that svc derives is the same for all
    // conversations that begin alike.
    if (facts.isStated && used !== undefined) return used;
    if (answeredSo !== undefined) return answeredSo;
    const alike = [used, found.get(shared)];
    return alike.find((entry) => entry !== undefined && (!isOpening || isFresh(entry, facts)));
  }
  // An answer precedes this item. Conversations with the same items up to here are one conversation under any id.
  if (!isOpening) return decided(used) ?? decided(found.get(shared));
  if (used === undefined || used.isOpen === true) return undefined;
  return facts.isStated || isFresh(used, facts) ? used : undefined;
}

function isFresh({ at }: DatedFact, { now }: Pick<ReplayFacts, 'now'>): boolean {
  return now - at <= ALIKE_REUSE_MS;
}

function decided(entry: BlockEntry | undefined): BlockEntry | undefined {
  return entry?.isOpen === true ? undefined : entry;
}

/** Returns the entries that the ledger lacks for an item: at `answered`, and at `own` if the client states an id. */
function pinsOf(
  { own, answered }: BlockItem,
  known: DatedFact,
  { found, isStated }: { readonly found: FoundEntries; readonly isStated: boolean },
): readonly BlockEntry[] {
  const fact = factOf(known);
  return [
    ...(isStated && !found.has(own) ? [{ ...own, ...fact }] : []),
    ...(answered === undefined || found.has(answered) ? [] : [{ ...answered, ...fact }]),
  ];
}

/** Copies a fact with its date. The old date lets the copy be removed too if the user forgets a record meanwhile. */
function factOf({ block, form, space, quoted, at }: DatedFact): DatedFact {
  return { block, form, space, ...(quoted && { quoted }), at };
}

/** Least room for a prompt's block, as a share of `recalledTokensMax`. With less room the prompt gets no block. */
const PROMPT_SHARE_MIN = 0.2;
/** Share of `recalledTokensMax` for the blocks of all prompts. The rest is for second looks. */
const PROMPTS_SHARE = 0.75;
/** Fewest tokens of a second look: fewer have room only for the block's opening and closing line. */
const LOOK_TOKENS_MIN = 60;
/**
 * Most tokens of a second look: two lines and the rules for the action. This leaves room for second looks after later
 * prompts.
 */
const LOOK_TOKENS_MAX = 200;

/**
 * Returns the token limit of a prompt's new block; undefined if too little is left for a block. With the new block, all
 * blocks stay within `recalledTokensMax`, and those of prompts within PROMPTS_SHARE of it. No earlier block is removed.
 */
export function roomForBlock(
  placements: readonly Placed[],
  recalledTokensMax: number,
): number | undefined {
  const ofPrompts = placements.filter(({ item }) => item.humanText !== '');
  const left = Math.min(
    roomLeft(placements, recalledTokensMax),
    Math.floor(PROMPTS_SHARE * recalledTokensMax) - tokensOf(ofPrompts),
  );
  return left >= PROMPT_SHARE_MIN * recalledTokensMax && left > 0 ? left : undefined;
}

/** Returns the token limit of a second look; undefined if there is no room. */
export function roomForLook(
  placements: readonly Placed[],
  recalledTokensMax: number,
): number | undefined {
  const left = Math.min(LOOK_TOKENS_MAX, roomLeft(placements, recalledTokensMax));
  return left >= LOOK_TOKENS_MIN ? left : undefined;
}

export function roomLeft(placements: readonly Placed[], recalledTokensMax: number): number {
  return recalledTokensMax - tokensOf(placements);
}

/** Most characters of a recall's question. With more words the search mostly finds common ones. */
export const QUESTION_CHARS_MAX = 4_096;

/**
 * Token limit of the list of earlier sessions (brief): three or four of them, and the block's opening and closing line.
 */
export const BRIEF_TOKENS_MAX = 125;

/**
 * Returns the token limits for writing a new block, without the tokens of svc's mark, which is added afterwards.
 * `tokensMax`: what roomForBlock() or roomForLook() returns. `left`: what roomLeft() returns.
 */
export function limitsOfBlock({
  tokensMax,
  left,
  isLook,
}: {
  readonly tokensMax: number;
  readonly left: number;
  readonly isLook: boolean;
}): AgentLimits {
  return {
    tokensMax: tokensMax - MARK_TOKENS,
    upperTokensMax: isLook ? undefined : left - MARK_TOKENS,
    briefTokensMax: BRIEF_TOKENS_MAX - MARK_TOKENS,
    isLook,
  };
}

export interface Placed extends Pick<Placement, 'tokens'> {
  readonly item: Pick<Item, 'humanText'>;
}

function tokensOf(placements: readonly Placed[]): number {
  return placements.reduce((sum, { tokens }) => sum + tokens, 0);
}

/**
 * Returns the entries that record a decision about an item: for this conversation, for all with the same words, and if
 * the item gets a block, for the block's mark. `isReopened`: a refusal took back the shared decision, so that the new
 * one replaces it.
 */
export function entriesFor(
  { own, shared }: Pick<BlockItem, 'own' | 'shared'>,
  fact: BlockFact & { readonly at: number },
  isReopened = false,
): readonly BlockEntry[] {
  const { tenant, fingerprint } = own;
  const placed = {
    kind: 'placed-block',
    tenant,
    fingerprint,
    mark: blockMark(fact),
  } as const;
  return [
    { ...own, ...fact },
    { ...shared, ...fact, ...(isReopened && { replaces: true as const }) },
    ...(fact.block === '' ? [] : [{ ...placed, ...fact }]),
  ];
}

/**
 * Returns the index of the first item that no earlier request has sent, as far as the ledger shows; undefined if all
 * were sent. After an edit of the history, old prompts are new to the provider.
 * The function looks at the entries of prompts, and of prompts with their answers, but not of the rounds of a tool
 * loop: a loop counts as sent with its answered prompt. `found`: all entries of these prompts from before this request.
 */
export function firstUnsentItem(
  humans: readonly BlockItem[],
  found: FoundEntries,
): number | undefined {
  const last = humans.findLastIndex((human) => entriesAt(human, found).length > 0);
  const [brought, next] = [humans[last], humans[last + 1]];
  const isAnswerNew = brought?.answered !== undefined && !found.has(brought.answered);
  if (isAnswerNew) return brought.index + 1;
  return next?.index;
}
