/**
 * The entries of the ledger: each fact that svc must know again about a conversation, with the address
 * under which it is found. The port (ports/ledger.ts) says how they are kept.
 */

/** The owner of all entries of a proxy on its user's own machine. */
export const LOCAL_TENANT = 'local';

export interface SpaceOwner {
  /** The owner: `LOCAL_TENANT`, or a customer of a hosted proxy. */
  readonly tenant: string;
  readonly space: string;
}

export interface ConversationOwner extends SpaceOwner {
  /** The conversation's key. */
  readonly conversation: string;
}

/** A place that every conversation with the same words so far shares: a fork, a resume, a rewind. */
interface AtItem extends SpaceOwner {
  /** Fingerprint of the conversation up to and including an item. */
  readonly fingerprint: string;
}

interface AtOwnItem extends ConversationOwner {
  readonly fingerprint: string;
}

/** A person's item together with the answer that followed it, which no other conversation got. */
interface AtAnswer extends AtItem {
  /**
   * Fingerprint of the conversation up to the first item that the model said. Until a request has
   * brought that item: `spokenAnswer` of the answer.
   */
  readonly answer: string;
}

/** A recall may be placed for good, or be decided against with an empty block. */
export interface BlockFact {
  /** '' when the recall found nothing worth saying. */
  readonly block: string;
  readonly form: 'text' | 'part';
  /** Blocks of earlier items are left out from here on. */
  readonly dropsEarlier: boolean;
}

/** Shadow mode leaves nothing out, so its batches are kept apart. */
export type ElisionKind = 'real' | 'shadow';

interface OfElision {
  readonly elision: ElisionKind;
}

/** Outputs before an item, and exchanges, by their marks. */
export interface LeftOut {
  readonly before: number;
  readonly marks: readonly string[];
}

/** The decisions about a conversation's cache after its pauses; see afterPause. */
export interface LongCache {
  /** The marks ask for an hour now. */
  readonly isLong: boolean;
  /** Pauses that the long lifetime bridged since its entry was last written. */
  readonly bridged: number;
  /** Taken back for good: the provider did not serve it, or did not take it. */
  readonly isOver: boolean;
}

/** The change that a provider refused. */
export type RefusedChange = 'recall' | 'shortening';

interface OfChange {
  readonly change: RefusedChange;
}

/** Where each kind of entry is found. */
interface Addresses {
  /** The block that this conversation used. */
  readonly 'own-block': AtOwnItem;
  /** The block that the first conversation with these words used. */
  readonly 'shared-block': AtItem;
  /** The block in front of this very answer: it separates conversations that only begin alike. */
  readonly 'answered-block': AtAnswer;
  /** The provider refused a change to a conversation that the client names. */
  readonly refusal: ConversationOwner & OfChange;
  /** The provider refused a change to a conversation without a name. */
  readonly 'refusal-at': AtItem & OfChange;
  /** The answer to this exchange was cut short. */
  readonly 'cut-answer': AtItem;
  readonly 'own-batch': AtOwnItem & OfElision;
  readonly 'shared-batch': AtItem & OfElision;
  /** Conversations that begin so have batches. Most have none, and need not be looked up by item. */
  readonly 'batch-mark': AtItem & OfElision;
  /** Whether its tools and system prompt are cached for an hour. */
  readonly 'long-cache': ConversationOwner;
  /** A request of it came, in whichever process: noted once a minute. */
  readonly 'last-request': ConversationOwner;
}

/** The further facts of each kind of entry. */
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
}

export type LedgerKind = keyof Addresses;

export type AddressOf<Kind extends LedgerKind> = {
  readonly [Each in Kind]: { readonly kind: Each } & Addresses[Each];
}[Kind];

export type EntryOf<Kind extends LedgerKind> = {
  readonly [Each in Kind]: AddressOf<Each> & Facts[Each] & { readonly at: number };
}[Kind];

export type LedgerAddress = AddressOf<LedgerKind>;

/** `at`: milliseconds since 1970. */
export type LedgerEntry = EntryOf<LedgerKind>;

/** Entries that other conversations share are written once: what one was sent stays what it was. */
const WRITTEN_ONCE: ReadonlySet<LedgerKind> = new Set([
  'shared-block',
  'answered-block',
  'cut-answer',
  'own-batch',
  'shared-batch',
  'batch-mark',
]);

export function isWrittenOnce({ kind }: LedgerAddress): boolean {
  return WRITTEN_ONCE.has(kind);
}

/**
 * The key of an address. Fingerprints have one length, spaces and tenants are written without a colon,
 * and a conversation comes last, so two addresses never share a key. Rows of earlier releases have the
 * same keys; they know no tenant but the local one.
 */
export function keyOf(address: LedgerAddress): string {
  const key = keyInTenant(address);
  return address.tenant === LOCAL_TENANT ? key : `t:${withoutColon(address.tenant)}:${key}`;
}

/** Names a conversation among those of all tenants, for what a process remembers about it. */
export function conversationKeyOf({ tenant, space, conversation }: ConversationOwner): string {
  return `${withoutColon(tenant)}:${withoutColon(space)}:${conversation}`;
}

/** Names a space among those of all tenants, for what a process remembers about its texts. */
export function spaceKeyOf({ tenant, space }: SpaceOwner): string {
  return `${withoutColon(tenant)}:${withoutColon(space)}`;
}

function keyInTenant(address: LedgerAddress): string {
  const space = withoutColon(address.space);
  switch (address.kind) {
    case 'own-block':
      return `e:${address.fingerprint}:${space}:${address.conversation}`;
    case 'shared-block':
      return `l:${address.fingerprint}:${space}`;
    case 'answered-block':
      return `a:${address.fingerprint}:${address.answer}:${space}`;
    case 'refusal':
      return `${REFUSAL_TAGS[address.change]}:${space}:${address.conversation}`;
    case 'refusal-at':
      return `${REFUSAL_TAGS[address.change]}-at:${address.fingerprint}:${space}`;
    case 'cut-answer':
      return `cut:${address.fingerprint}:${space}`;
    case 'own-batch':
      return `o${ELISION_TAGS[address.elision]}:${address.fingerprint}:${space}:${address.conversation}`;
    case 'shared-batch':
      return `${ELISION_TAGS[address.elision]}:${address.fingerprint}:${space}`;
    case 'batch-mark':
      return `m${ELISION_TAGS[address.elision]}:${address.fingerprint}:${space}`;
    case 'long-cache':
      return `long-cache:${space}:${address.conversation}`;
    case 'last-request':
      return `seen:${space}:${address.conversation}`;
  }
}

const ELISION_TAGS: Readonly<Record<ElisionKind, string>> = { real: 'x', shadow: 'y' };

const REFUSAL_TAGS: Readonly<Record<RefusedChange, string>> = {
  recall: 'refused',
  shortening: 'refused-shortening',
};

function withoutColon(text: string): string {
  return text.includes(':') ? text.replaceAll('%', '%25').replaceAll(':', '%3A') : text;
}
