import type { RequestView } from '../conversation/view.ts';

/**
 * The entries of the ledger: facts about a conversation that svc needs again, each with an address. The port
 * (ports/ledger.ts) says how they are stored.
 */

/** The owner of all entries of a proxy on a user's own machine. */
export const LOCAL_TENANT = 'local';

interface Owner {
  /** The owner: `LOCAL_TENANT`, or a customer of a hosted proxy. */
  readonly tenant: string;
}

/**
 * The client's own name for where it works: the header x-svc-memory-space or the folder that it states, never the
 * project or space that svc derives from them. So an address stays the same when a project is found late, changes
 * its origin, or its space is renamed.
 */
export interface ScopeOwner extends Owner {
  readonly scope: string;
}

export interface SpaceOwner extends Owner {
  readonly space: string;
}

export interface ConversationOwner extends Owner {
  /** The key of the conversation. It contains the scope if the client gives the conversation no name. */
  readonly conversation: string;
}

/** An item, shared by every conversation with the same words so far: a fork, a resume, a rewind. */
interface AtItem extends ScopeOwner {
  /** Fingerprint of the conversation up to and including an item. */
  readonly fingerprint: string;
}

interface AtOwnItem extends ConversationOwner {
  readonly fingerprint: string;
}

/** A human item with its answer, which no other conversation has. */
interface AtAnswer extends AtItem {
  /**
   * Fingerprint of the conversation up to the first item of the answer. Until a request has brought that item:
   * `spokenAnswer` of the answer.
   */
  readonly answer: string;
}

/** A placed block, or an empty one if svc decided to place none. */
export interface BlockFact {
  /** The block's text; '' if the recall found nothing worth saying. */
  readonly block: string;
  readonly form: 'text' | 'part';
  /** The space that the block quotes. A key that may not read that space never gets the block. */
  readonly space: string;
  readonly quoted?: readonly QuotedRecord[];
  /**
   * True if the decision was taken back, because no request with this block was accepted. svc decides about the
   * prompt again.
   */
  readonly isOpen?: true;
}

/** A stored text: its reference `m_…` and its space. */
export interface QuotedRecord {
  readonly ref: string;
  readonly space: string;
}

/** A block in front of a thought. */
export interface PlacedMark {
  /** The first characters of the fingerprint of the item with the block; see markOf. */
  readonly item: string;
  /** The first characters of the digest of the block's text. */
  readonly block: string;
}

/** What svc knows about a thinking block that it relayed. */
export interface ThoughtFact {
  /** True if the model bound this thinking, or an earlier thinking of the conversation, to its prefix. */
  readonly isBound: boolean;
  /** Fingerprint of the conversation up to the last item before the thinking that no model made. */
  readonly behind: string;
  /** True if earlier batches were left out of its request. */
  readonly isShortened: boolean;
  /**
   * The marks of the items that had a batch in its request; see markOf. Only these batches apply in front of it,
   * because a fork may add batches at other items later. Undefined if they are not known.
   */
  readonly batches?: readonly string[] | undefined;
  /** The texts that these batches name, and that its request nevertheless had whole; see backMark. */
  readonly whole?: readonly string[] | undefined;
  readonly blocks: readonly PlacedMark[];
}

/** 'shadow': shadow mode leaves nothing out, so its batches are kept apart from real ones. */
export type ElisionKind = 'real' | 'shadow';

interface OfElision {
  readonly elision: ElisionKind;
}

/** What a batch left out: outputs before an item, and exchanges by their marks. */
export interface LeftOut {
  readonly before: number;
  readonly marks: readonly string[];
}

/** The decisions about a conversation's cache lifetime after its pauses; see afterPause. */
export interface LongCache {
  /** True if the marks ask for an hour now. */
  readonly isLong: boolean;
  /** Pauses that the long lifetime covered since its entry was last written. */
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
  /** The block that the first conversation with these words got. */
  readonly 'shared-block': AtItem;
  /** The block in front of one particular answer. The answer tells apart conversations with the same beginning. */
  readonly 'answered-block': AtAnswer;
  /** The provider refused a change, in a conversation with a name from the client. */
  readonly refusal: ConversationOwner & OfChange;
  /** The provider refused a change, in a conversation to which the client gave no name. */
  readonly 'refusal-at': AtItem & OfChange;
  /** The answer to this exchange was cut short. */
  readonly 'cut-answer': AtItem;
  readonly 'own-batch': AtOwnItem & OfElision;
  readonly 'shared-batch': AtItem & OfElision;
  /** The conversations with this beginning have batches. Most have none, and then need no look-up by item. */
  readonly 'batch-mark': AtItem & OfElision;
  /** Whether the conversation's tools and system prompt are cached for an hour. */
  readonly 'long-cache': ConversationOwner;
  /** When the conversation's last request came to any process; written once a minute. */
  readonly 'last-request': ConversationOwner;
  /** A thinking block that svc relayed, by its thoughtId. */
  readonly thought: Owner & { readonly thought: string };
  /**
   * This conversation, which began with this item, holds thinking that is bound to its prefix. After a compaction
   * the conversation begins with another item.
   */
  readonly bound: ConversationOwner & { readonly fingerprint: string };
  /** What svc's hooks have done in a session; `fingerprint` names the note. */
  readonly 'hook-note': AtOwnItem;
  /** Which process answers an event of a session, if the client runs two hooks for it. */
  readonly 'hook-claim': AtOwnItem;
}

/** The content of each kind of entry. */
interface Facts {
  readonly 'own-block': BlockFact;
  readonly 'shared-block': BlockFact;
  readonly 'answered-block': BlockFact;
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

export type AddressOf<Kind extends LedgerKind> = {
  readonly [Each in Kind]: { readonly kind: Each } & Addresses[Each];
}[Kind];

export type EntryOf<Kind extends LedgerKind> = {
  readonly [Each in Kind]: AddressOf<Each> &
    Facts[Each] & {
      readonly at: number;
      /** True if the entry replaces an earlier one, even one that is written once: its change was refused. */
      readonly replaces?: true;
    };
}[Kind];

export type LedgerAddress = AddressOf<LedgerKind>;

/** `at`: milliseconds since 1970. */
export type LedgerEntry = EntryOf<LedgerKind>;

/** Kinds that are written once, because other conversations share them: what was sent must not change. */
const WRITTEN_ONCE: ReadonlySet<LedgerKind> = new Set([
  'shared-block',
  'answered-block',
  'cut-answer',
  'own-batch',
  'shared-batch',
  'batch-mark',
  'hook-claim',
]);

export function isWrittenOnce({ kind }: LedgerAddress): boolean {
  return WRITTEN_ONCE.has(kind);
}

/**
 * Returns the key of an address. Fingerprints have one length, scopes and tenants contain no colon, and the
 * conversation comes last, so two addresses never share a key.
 */
export function keyOf(address: LedgerAddress): string {
  const key = keyInTenant(address);
  return address.tenant === LOCAL_TENANT ? key : `t:${withoutColon(address.tenant)}:${key}`;
}

/** Names a conversation uniquely among all tenants, for caches in memory. */
export function conversationKeyOf({ tenant, conversation }: ConversationOwner): string {
  return `${withoutColon(tenant)}:${conversation}`;
}

/** Names a space uniquely among all tenants, for caches in memory. */
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
  return text.includes(':') ? text.replaceAll('%', '%25').replaceAll(':', '%3A') : text;
}

/** Characters of a mark: 96 bits, enough to tell the blocks of one conversation apart. */
const MARK_CHARS = 16;

/** Shortens a fingerprint or a digest for a ThoughtFact. */
export function markOf(hash: string): string {
  return hash.slice(0, MARK_CHARS);
}

/** Why the ledger did not answer. `late`: it exceeded the deadline. `unavailable`: it could not be read. */
export type LedgerMiss = 'late' | 'unavailable';

/** The entries that a ledger found at the requested addresses. */
export class FoundEntries {
  /** Why the ledger may have further entries at these addresses; undefined if the answer is complete. */
  readonly missing: LedgerMiss | undefined;
  readonly #entries: ReadonlyMap<string, LedgerEntry>;
  /**
   * Fingerprints of the items with entries, by kind, for a fast test: thousands of addresses are looked up, few have
   * entries, and comparing a fingerprint is much faster than building a key.
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

/** How long a refusal counts: after an hour another provider, model or account may accept the change. */
const REFUSAL_MS = 3_600_000;
/** Bound on newest prompts that are looked up for refusals: nobody types more in that hour. */
const REFUSAL_PROMPTS = 64;

/** Identifies the conversation for which a kind of change is off, because the provider refused a changed request. */
export interface RefusalPlace extends ConversationOwner, ScopeOwner {
  /** True if the client names its conversation; otherwise the key was derived from the first words. */
  readonly isStated: boolean;
}

type RefusalAddress = AddressOf<'refusal' | 'refusal-at'>;

/**
 * Returns the addresses of refusals that hold for this request. A conversation without an id is identified by its
 * prompts, so that one with the same beginning does not inherit its refusals.
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

/** Returns the ledger entries of a refusal at the newest prompt. */
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
