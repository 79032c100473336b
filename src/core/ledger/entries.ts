import type { RequestView } from '../conversation/view.ts';

/**
 * The entries of the ledger: facts about a conversation that svc needs again, each with an address. The port
 * (ports/ledger.ts) says how they are stored.
 */

/** The tenant of all entries of a proxy on a user's own machine. */
export const LOCAL_TENANT = 'local';

interface Owner {
  /** LOCAL_TENANT, or a tenant of a service. */
  readonly tenant: string;
}

/**
 * `scope`: what the client states, which is the header x-svc-memory-space or a folder. It is never the project or space
 * that svc derives from that. So an address stays the same if svc finds a project late, or if the project's origin or
 * the name of its space changes.
 */
export interface ScopeOwner extends Owner {
  readonly scope: string;
}

export interface SpaceOwner extends Owner {
  readonly space: string;
}

export interface ConversationOwner extends Owner {
  /**
   * The key of the conversation; see conversationKey. Without a name from the client, it is a hash that covers the
   * scope.
   */
  readonly conversation: string;
}

/**
 * An item that a conversation shares with its forks, resumed sessions and rewinds: all are the same up to and including
 * this item.
 */
interface AtItem extends ScopeOwner {
  /** Fingerprint of the conversation up to and including an item. */
  readonly fingerprint: string;
}

/** An item of one conversation. */
interface AtOwnItem extends ConversationOwner {
  readonly fingerprint: string;
}

/** An item with human text, and its answer, which other conversations with the same beginning hardly ever have. */
interface AtAnswer extends AtItem {
  /**
   * Names the answer: the fingerprint of its first item that is more than thinking. svc also records an entry at the
   * end of a conversation's first answer, when that answer is not yet an item of any request. Then the name is the
   * result of spokenAnswer() in recall/injections.ts.
   */
  readonly answer: string;
}

/** The decision about the block at an item. */
export interface BlockFact {
  /** The block's text; '' if svc placed none. */
  readonly block: string;
  readonly form: 'text' | 'part';
  /** The space that the block quotes. A service key that may not read the space never gets the block. */
  readonly space: string;
  /** The stored texts that the block quotes. */
  readonly quoted?: readonly QuotedRecord[];
  /**
   * True if the provider refused the request with the block and also without it, so that svc decides about the prompt
   * again.
   */
  readonly isOpen?: true;
}

/** A stored text: its reference `m_…` and its space. */
export interface QuotedRecord {
  readonly ref: string;
  readonly space: string;
}

/** A block that stood in front of a thought. */
export interface PlacedMark {
  /** The first characters of the fingerprint of the item with the block; see markOf. */
  readonly item: string;
  /** The first characters of a digest of the block's text, form and space. */
  readonly block: string;
}

/** What svc knows about a thinking block that it relayed. */
export interface ThoughtFact {
  /** True if the model may have bound this thinking, or an earlier one of the conversation, to its prefix. */
  readonly isBound: boolean;
  /** Fingerprint of the newest item before the thinking that no model made: a prompt, a result or a system message. */
  readonly behind: string;
  /** True if texts were left out of the request whose answer had the thinking. */
  readonly isShortened: boolean;
  /**
   * The batches (see LeftOut) that were left out of that request: for each the mark of the item at which it is
   * recorded. Only these apply in front of the thinking, because a fork may add batches at other items later. Undefined
   * if they are not known.
   */
  readonly batches?: readonly string[] | undefined;
  /** The names of texts of these batches that the request nevertheless had whole; see backMark. */
  readonly whole?: readonly string[] | undefined;
  readonly blocks: readonly PlacedMark[];
}

/** 'shadow': a batch of shadow mode, which only measures and leaves nothing out. */
export type ElisionKind = 'real' | 'shadow';

interface OfElision {
  readonly elision: ElisionKind;
}

/**
 * A batch: what one request was the first to leave out, as the marks of outputs and exchanges. An output counts only if
 * its item's index is below `before`.
 */
export interface LeftOut {
  readonly before: number;
  readonly marks: readonly string[];
}

/** The decisions about a conversation's cache lifetime after its pauses; see afterPause. */
export interface LongCache {
  /** True if svc asks for an hour now. */
  readonly isLong: boolean;
  /** The number of pauses that the long lifetime has covered since the provider last wrote the whole prefix. */
  readonly bridged: number;
  /** True if the hour was switched off for good: the provider did not use the cache, or refused the marks. */
  readonly isOver: boolean;
}

type RefusedChange = 'recall' | 'shortening' | 'clearing';

interface OfChange {
  readonly change: RefusedChange;
}

/** The address of each kind of entry. The comments say what an entry states. */
interface Addresses {
  /** The block that this conversation used. */
  readonly 'own-block': AtOwnItem;
  /** The block that the first conversation with this beginning got. */
  readonly 'shared-block': AtItem;
  /**
   * A block, by the item that carried it and by a mark of its text, form and space (PlacedMark). The entry of a
   * thinking block names blocks in this way, so svc finds them even if the conversation's name or space changes later.
   */
  readonly 'placed-block': Owner & { readonly fingerprint: string; readonly mark: string };
  /**
   * The block in front of one particular answer. Conversations with the same beginning mostly have different answers.
   */
  readonly 'answered-block': AtAnswer;
  /** The provider refused a change, in a conversation with a name from the client. */
  readonly refusal: ConversationOwner & OfChange;
  /** The provider refused a change, in a conversation to which the client gave no name. */
  readonly 'refusal-at': AtItem & OfChange;
  /** The answer to this exchange was cut short. */
  readonly 'cut-answer': AtItem;
  /** The batch that this conversation, or the first conversation with this beginning, made at this item. */
  readonly 'own-batch': AtOwnItem & OfElision;
  readonly 'shared-batch': AtItem & OfElision;
  /** Some conversation with this beginning has batches. Without this entry svc need not look them up by item. */
  readonly 'batch-mark': AtItem & OfElision;
  /** Whether the conversation's tools and system prompt are cached for an hour. */
  readonly 'long-cache': ConversationOwner;
  /**
   * When a recent request of the conversation came, to this process or another. The entry is written at most once a
   * minute, so the last request may be up to a minute later.
   */
  readonly 'last-request': ConversationOwner;
  /** A thinking block that svc relayed, by its thoughtId. */
  readonly thought: Owner & { readonly thought: string };
  /**
   * This conversation has thinking that is bound to its prefix. `fingerprint`: that of its first item, because after a
   * compaction the conversation begins with another item.
   */
  readonly bound: ConversationOwner & { readonly fingerprint: string };
  /** What svc's hooks have done in a session. `fingerprint` is the name of the note. */
  readonly 'hook-note': AtOwnItem;
  /** Which process answers an event of a session, if the client runs two hooks for it. */
  readonly 'hook-claim': AtOwnItem;
}

/** The content of each kind of entry. */
interface Facts {
  readonly 'own-block': BlockFact;
  readonly 'shared-block': BlockFact;
  readonly 'answered-block': BlockFact;
  readonly 'placed-block': BlockFact;
  readonly refusal: unknown;
  readonly 'refusal-at': unknown;
  readonly 'cut-answer': unknown;
  readonly 'own-batch': { readonly leftOut: LeftOut };
  readonly 'shared-batch': { readonly leftOut: LeftOut };
  readonly 'batch-mark': unknown;
  readonly 'long-cache': LongCache;
  readonly 'last-request': unknown;
  readonly thought: ThoughtFact;
  readonly bound: unknown;
  readonly 'hook-note': { readonly note: string };
  readonly 'hook-claim': { readonly note: string };
}

type LedgerKind = keyof Addresses;

/** The kinds of entries that have a block. */
export type BlockKind = 'own-block' | 'shared-block' | 'answered-block' | 'placed-block';

export type AddressOf<Kind extends LedgerKind> = {
  readonly [Each in Kind]: { readonly kind: Each } & Addresses[Each];
}[Kind];

export type EntryOf<Kind extends LedgerKind> = {
  readonly [Each in Kind]: AddressOf<Each> &
    Facts[Each] & {
      readonly at: number;
      /** True if the entry replaces an earlier one, even of WRITTEN_ONCE, after the provider refused a change. */
      readonly replaces?: true;
    };
}[Kind];

export type LedgerAddress = AddressOf<LedgerKind>;

/** `at`: milliseconds since 1970. */
export type LedgerEntry = EntryOf<LedgerKind>;

/**
 * Kinds of which the first entry stays, unless a later one has `replaces`. Most of them say what was sent, and other
 * conversations may read them too. Of the claims of two hooks for one event, the first counts.
 */
const WRITTEN_ONCE: ReadonlySet<LedgerKind> = new Set([
  'shared-block',
  'answered-block',
  'placed-block',
  'cut-answer',
  'own-batch',
  'shared-batch',
  'batch-mark',
  'hook-claim',
]);

export function isWrittenOnce({ kind }: LedgerAddress): boolean {
  return WRITTEN_ONCE.has(kind);
}

/** The key of the row that marks when texts were last forgotten. No entry has it: keys of entries contain a colon. */
export const FORGOTTEN_KEY = 'forgotten';

/**
 * Returns the key of an address. Only the last part may contain a colon: the key of a conversation. So two addresses
 * never share a key.
 */
export function keyOf(address: LedgerAddress): string {
  const key = keyInTenant(address);
  return address.tenant === LOCAL_TENANT ? key : `t:${withoutColon(address.tenant)}:${key}`;
}

/** Returns a key of a conversation that is unique among all tenants, for caches in memory. */
export function conversationKeyOf({ tenant, conversation }: ConversationOwner): string {
  return `${withoutColon(tenant)}:${conversation}`;
}

/** Returns a key of a space that is unique among all tenants, for caches in memory. */
export function spaceKeyOf({ tenant, space }: SpaceOwner): string {
  return `${withoutColon(tenant)}:${withoutColon(space)}`;
}

function keyInTenant(address: LedgerAddress): string {
  switch (address.kind) {
    case 'own-block':
      return `e:${address.fingerprint}:${address.conversation}`;
    case 'shared-block':
      return `l:${address.fingerprint}:${withoutColon(address.scope)}`;
    case 'answered-block':
      return `a:${address.fingerprint}:${address.answer}:${withoutColon(address.scope)}`;
    case 'placed-block':
      return `p:${address.fingerprint}:${address.mark}`;
    case 'refusal':
      return `${REFUSAL_TAGS[address.change]}:${address.conversation}`;
    case 'refusal-at':
      return `${REFUSAL_TAGS[address.change]}-at:${address.fingerprint}:${withoutColon(address.scope)}`;
    case 'cut-answer':
      return `cut:${address.fingerprint}:${withoutColon(address.scope)}`;
    case 'own-batch':
      return `o${ELISION_TAGS[address.elision]}:${address.fingerprint}:${address.conversation}`;
    case 'shared-batch':
      return `${ELISION_TAGS[address.elision]}:${address.fingerprint}:${withoutColon(address.scope)}`;
    case 'batch-mark':
      return `m${ELISION_TAGS[address.elision]}:${address.fingerprint}:${withoutColon(address.scope)}`;
    case 'long-cache':
      return `long-cache:${address.conversation}`;
    case 'last-request':
      return `seen:${address.conversation}`;
    case 'thought':
      return `thought:${address.thought}`;
    case 'bound':
      return `bound:${address.fingerprint}:${address.conversation}`;
    case 'hook-note':
      return `hook:${address.fingerprint}:${address.conversation}`;
    case 'hook-claim':
      return `hook-claim:${address.fingerprint}:${address.conversation}`;
  }
}

const ELISION_TAGS: Readonly<Record<ElisionKind, string>> = { real: 'x', shadow: 'y' };

const REFUSAL_TAGS: Readonly<Record<RefusedChange, string>> = {
  recall: 'refused',
  shortening: 'refused-shortening',
  clearing: 'refused-clearing',
};

function withoutColon(text: string): string {
  return /[%:]/.test(text) ? text.replaceAll('%', '%25').replaceAll(':', '%3A') : text;
}

/** Characters of a mark. They hold 96 bits, so that svc does not expect two blocks or items with the same mark. */
const MARK_CHARS = 16;

/** Returns the mark of a fingerprint or a digest: its first characters, as a ThoughtFact has them. */
export function markOf(hash: string): string {
  return hash.slice(0, MARK_CHARS);
}

/** Why the ledger did not answer. `late`: it exceeded the deadline. `unavailable`: it could not be read. */
export type LedgerMiss = 'late' | 'unavailable';

/** The entries that a ledger found at the requested addresses. */
export class FoundEntries {
  /** Undefined if the answer is complete. Otherwise why the ledger may have more entries at these addresses. */
  readonly missing: LedgerMiss | undefined;
  readonly #entries: ReadonlyMap<string, LedgerEntry>;
  /**
   * The fingerprints of the entries, by kind. Most of the thousands of addresses of a request have no entry, and this
   * shows it faster than building their keys.
   */
  readonly #fingerprints = new Map<LedgerKind, Set<string>>();

  constructor(entries: Iterable<LedgerEntry>, missing?: LedgerMiss) {
    this.missing = missing;
    const byKey = new Map<string, LedgerEntry>();
    for (const entry of entries) {
      byKey.set(keyOf(entry), entry);
      if (!('fingerprint' in entry)) continue;
      const ofKind = this.#fingerprints.get(entry.kind) ?? new Set();
      this.#fingerprints.set(entry.kind, ofKind.add(entry.fingerprint));
    }
    this.#entries = byKey;
  }

  get<Kind extends LedgerKind>(
    address: LedgerAddress & { readonly kind: Kind },
  ): EntryOf<Kind> | undefined {
    const entry = this.#at(address);
    return entry !== undefined && isOfKind(entry, address.kind) ? entry : undefined;
  }

  has(address: LedgerAddress): boolean {
    return this.#at(address) !== undefined;
  }

  #at(address: LedgerAddress): LedgerEntry | undefined {
    const isAbsent =
      'fingerprint' in address &&
      this.#fingerprints.get(address.kind)?.has(address.fingerprint) !== true;
    return isAbsent ? undefined : this.#entries.get(keyOf(address));
  }
}

function isOfKind<Kind extends LedgerKind>(
  entry: LedgerEntry,
  kind: Kind,
): entry is EntryOf<Kind> & LedgerEntry {
  return entry.kind === kind;
}

/** How long a refusal counts, in milliseconds. Later another model or account may accept the change. */
const REFUSAL_MS = 3_600_000;
/** The number of newest prompts that svc looks up for refusals: more than a person types in an hour. */
const REFUSAL_PROMPTS = 64;

/** The conversation in which the provider refused a change. */
export interface RefusalPlace extends ConversationOwner, ScopeOwner {
  /** True if the client states the conversation's id; see conversationKey. */
  readonly isStated: boolean;
}

type RefusalAddress = AddressOf<'refusal' | 'refusal-at'>;

/**
 * Returns the addresses of refusals that count for this request, newest first. If the client states no id, a refusal is
 * recorded at a prompt, so that it does not count for other conversations with the same beginning. The addresses are
 * then those of the newest REFUSAL_PROMPTS prompts.
 */
export function refusalAddresses(
  view: RequestView,
  place: RefusalPlace,
  change: RefusedChange,
): readonly RefusalAddress[] {
  const { tenant, scope, conversation } = place;
  if (place.isStated) return [{ kind: 'refusal', change, tenant, conversation }];
  const addresses: RefusalAddress[] = [];
  let at = view.items.at(-1)?.soFar.humans;
  for (; at !== undefined && addresses.length < REFUSAL_PROMPTS; at = at.before) {
    const fingerprint = view.items[at.index]?.fingerprint;
    if (fingerprint === undefined) continue;
    addresses.push({ kind: 'refusal-at', change, tenant, scope, fingerprint });
  }
  return addresses;
}

/** Returns the entry that records a refusal at the first of the addresses; none if there is no address. */
export function refusalEntries(
  addresses: readonly RefusalAddress[],
  at: number,
): readonly EntryOf<'refusal' | 'refusal-at'>[] {
  return addresses.slice(0, 1).map((address) => ({ ...address, at }));
}

export function isRefused(
  addresses: readonly RefusalAddress[],
  found: FoundEntries,
  now: number,
): boolean {
  return addresses.some((address) => {
    const entry = found.get(address);
    return entry !== undefined && now - entry.at < REFUSAL_MS;
  });
}
