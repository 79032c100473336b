import type { ConversationPlace } from '../core/recall/injections.ts';
import type { Place } from '../ports/projects.ts';
import type { Workplace } from '../ports/provenance.ts';
import type { RequestIdentity, RequestView } from '../core/conversation/view.ts';
import type { Steps } from '../core/bytes/steps.ts';
import {
  type Earlier,
  isReadAs,
  type ReadAs,
  viewSteps,
  commonPrefix,
} from '../core/request/request-view.ts';
import { Recent } from '../core/bytes/recent.ts';
import {
  conversationKeyOf,
  type ConversationOwner,
  type LeftOut,
  type LongCache,
} from '../core/ledger/entries.ts';
import type { RecordText } from '../core/memory/record.ts';
import type { PrefixHistory } from '../core/meter/cache-miss.ts';
import type { MeterState } from '../core/shortening/meter.ts';

/**
 * Caches the last body of each conversation, so that svc parses the next body only from where it differs. A dropped
 * body is parsed again, with the same result.
 */

// Bound on cached views: the conversations that one user's agents and sub-agents work on at the same time. Every
// request is compared with every view, so more of them cost more.
const VIEWS_MAX = 16;

// Bound on cached bodies. A conversation close to a window of 200,000 tokens is about 1 MB, so 16 of 1.5 MB fit. The
// facts read of a body take memory besides; idle, the whole process stays within 110 MB.
const BYTES_MAX = 24 * 1024 * 1024;

export class Conversations {
  readonly states = new ConversationStates();
  /** Cached views, newest first. */
  #views: readonly RequestView[] = [];

  /** Estimates the memory that the cached bodies take. */
  get bytes(): number {
    return this.#views.reduce((sum, view) => sum + heldBytes(view), this.states.bytes);
  }

  clear(): void {
    this.#views = [];
    this.states.clear();
  }

  /** Parses a decoded body into a view, in steps; see viewSteps() in core/request/request-view.ts. */
  *viewSteps(bytes: Buffer, as: ReadAs): Steps<RequestView | 'too_large' | undefined> {
    const nearest = this.#nearest(bytes, as);
    const view = yield* viewSteps(bytes, as, nearest);
    if (view !== undefined && view !== 'too_large') this.#keep(view, nearest?.previous);
    return view;
  }

  #nearest(bytes: Buffer, as: ReadAs): Earlier | undefined {
    let nearest: Earlier | undefined;
    for (const previous of this.#views) {
      const least = nearest?.shared ?? 0;
      if (!isReadAs(previous, as) || !agreeAt(least, previous.bytes, bytes)) continue;
      const shared = commonPrefix(previous.bytes, bytes);
      if (shared > least) nearest = { previous, shared };
    }
    return nearest;
  }

  #keep(view: RequestView, nearest: RequestView | undefined): void {
    if (view.bytes.length > BYTES_MAX) return;
    const replaced = nearest !== undefined && continues(view, nearest) ? nearest : undefined;
    const views = [view];
    let bytes = view.bytes.length;
    for (const other of this.#views) {
      if (other === replaced) continue;
      bytes += other.bytes.length;
      if (views.length === VIEWS_MAX || bytes > BYTES_MAX) break;
      views.push(other);
    }
    this.#views = views;
  }
}

/** Bytes that the facts of one item take beside its own bytes; measured with texts of 2 kB. */
const FACT_BYTES = 1_600;

/** Returns the memory that a view takes, with the facts that are read of its items. */
export function heldBytes({ bytes, items }: RequestView): number {
  return bytes.length + items.length * FACT_BYTES;
}

// Bytes that are compared first: two different texts are hardly ever equal over this many bytes at the same place.
const PROBE_BYTES = 64;

/**
 * Tests cheaply whether two bodies may share more than `at` bytes, before megabytes are compared. The views of forks
 * and sub-agents begin alike.
 */
function agreeAt(at: number, one: Buffer, other: Buffer): boolean {
  const end = Math.min(at + PROBE_BYTES, one.length, other.length);
  return at < end && one.compare(other, at, end, at, end) === 0;
}

// The number of last items that a client may still change: a step adds a call and its results, and the client may
// remove or re-mark the last ones.
const UNSETTLED_ITEMS = 4;

/**
 * Says whether the new view replaces the earlier one. The last items may differ, because Claude Code moves a cache
 * mark there. A sub-agent shares only the beginning with its parent and must not replace the parent's view.
 */
function continues(view: RequestView, earlier: RequestView): boolean {
  const settled = Math.max(0, earlier.items.length - UNSETTLED_ITEMS);
  return view.items[settled] === earlier.items[settled];
}

/**
 * Everything that this process remembers of one conversation. It is a cache: the ledger, the request log and the
 * memory have the same facts, so dropping it changes no result.
 * Some facts belong to no conversation and are kept for the whole process. Views of recent bodies (Conversations,
 * above) are found by their bytes. Forks share the outputs that the memory holds (shortener.ts) and has proven
 * (possession.ts). Facts read of an item (outputs.ts, shortener.ts, recall.ts) live exactly as long as the item.
 */
export class ConversationState {
  /**
   * The blocks that each of the last prompts carried, by the ledger's key of the prompt. A tool loop repeats them in
   * every round. Without it: every round reads the ledger for every prompt of the history.
   */
  readonly blocks = new Recent<string, KnownBlocks>(PROMPTS_MAX);
  /**
   * The batches that the last requests left out, by the key of their mark. Without it: one late answer of the ledger
   * would bring all of them back, and the provider would have to rewrite its cache.
   */
  readonly batches = new Recent<string, readonly LeftOut[]>(OPENINGS_MAX);
  /**
   * The exchanges that are in the outbox, by the fingerprint of their first item. Without it: every request would
   * mask and offer the whole history again.
   */
  readonly keptExchanges = new Recent<string, true>(EXCHANGES_MAX);
  /**
   * The items up to which everything is in the outbox, by fingerprint. Without it: every request would check all
   * exchanges of its history, though none is new.
   */
  readonly keptHistories = new Recent<string, true>(HISTORIES_MAX);
  /**
   * The ledger's generation when the two fields above were noted. Without it: after the store was replaced, its lost
   * texts would never be stored again.
   */
  keptIn: number | undefined;
  /**
   * The newest question and its record. Without it: the question would be masked again in each round, while the
   * client waits for its last byte.
   */
  question: KnownQuestion | undefined;
  /**
   * The price state after the last request, with svc and direct. Without it: the next request would be priced as if
   * its cache were cold.
   */
  metered: MeterState | undefined;
  /**
   * Tokens of the longest request that the provider has accepted. Without it: a model window that is published too
   * small would end all batches.
   */
  acceptedTokens = 0;
  /**
   * Whether the conversation's cache marks ask for an hour, as the ledger says. Without it: every request would wait
   * for the ledger once more.
   */
  longCache: KnownLongCache | undefined;
  /**
   * When the last request came, by the monotonic clock. Without it: svc would not know when the provider's cache is
   * cold, which is when leaving texts out costs nothing.
   */
  lastSeenAt: number | undefined;
  /**
   * A lower bound of the milliseconds since an earlier process served the conversation, at this process's first
   * request. Undefined if no earlier process did. Without it: a cache miss after a restart would not be seen.
   */
  resumedAfterMs: number | undefined;
  /**
   * When the ledger's note of the last request was written. Without it: every request would write a row, though one
   * a minute is enough.
   */
  notedAt: number | undefined;
  /**
   * Whether an earlier request was read, so that its outputs are stored or queued. Without it: a request with a long
   * history would read all of it, though nothing of it can be stored yet.
   */
  wasRead = false;
  /**
   * The first item of the history that is known to hold bound thinking, by fingerprint; a compacted history has
   * another first item. Without it: a client that drops old thinking would look unbound while the ledger is late.
   */
  boundFrom: string | undefined;
  /** The fingerprint of the latest request. Without it: a repeated request would get a second look. */
  newest: string | undefined;
  /** Digests of the latest requests. Without it: the request log could not say who changed the cached prefix. */
  sent: PrefixHistory | undefined;
  /**
   * Who first changed the prefix that thinking is bound to; undefined if unknown. Without it: the log would blame
   * svc for thinking that the client lost.
   */
  prefixChangedBy: PrefixChanger | undefined;

  get bytes(): number {
    const names = this.keptExchanges.size + this.keptHistories.size + (this.sent?.size ?? 0);
    let texts = 0;
    for (const { blocks } of this.blocks.values()) {
      for (const { block } of blocks) texts += block.length;
    }
    if (this.question !== undefined) {
      texts += this.question.humanText.length + this.question.blocks.length;
    }
    return STATE_BYTES + NAME_BYTES * names + CHARACTER_BYTES * texts;
  }
}

/** Bytes that the state of a conversation with one exchange takes; measured. */
const STATE_BYTES = 2_048;
/** Bytes that a fingerprint takes in a map. */
const NAME_BYTES = 150;
/** Bytes of a character in a string that is not only Latin. */
const CHARACTER_BYTES = 2;

// Bound on remembered prompts. A user goes back a few prompts at most, and each round asks about the same prompt.
const PROMPTS_MAX = 8;
// Bound on remembered beginnings: clients that compact or rewind change how a conversation begins.
const OPENINGS_MAX = 4;
// Bound on single exchanges. They are cleared once a whole history is stored; a history being read in may have some
// thousand.
const EXCHANGES_MAX = 10_000;
// Bound on stored histories. If the user goes back further, the earlier exchanges are offered to the outbox once
// more.
const HISTORIES_MAX = 64;
// Bound on conversations, some kilobytes each. One user's agents work on a few dozen a day.
const CONVERSATIONS_MAX = 1_024;

/** Blocks with the indexes of their items. They do not keep the items' bytes in memory. */
export interface KnownBlocks {
  /** The ledger's generation when the blocks were placed. If it has changed, some of them may have been forgotten. */
  readonly generation: number;
  readonly blocks: readonly KnownBlock[];
  /** True if the newest thinking was made without svc, and the ledger has no block for the part before it. */
  readonly isForeign: boolean;
  /** True if a second look is allowed in this tool loop and has not happened yet. */
  readonly mayLook: boolean;
}

export interface KnownBlock {
  readonly index: number;
  /** The fingerprint of the item there. */
  readonly fingerprint: string;
  readonly block: string;
  readonly form: 'text' | 'part';
  readonly tokens: number;
}

/** A question, the blocks that its request carried, and the record that captureHuman() makes of both. */
export interface KnownQuestion {
  readonly humanText: string;
  readonly blocks: string;
  readonly record: RecordText | undefined;
}

export type PrefixChanger = 'client' | 'svc';

export interface KnownLongCache {
  readonly state: LongCache | undefined;
  /** True if the newest request came after a pause that the long cache lifetime should have covered. */
  readonly isBridging: boolean;
}

/** The states of all conversations. The least recently used one is dropped first. */
export class ConversationStates {
  /** States, from the least to the most recently used. */
  readonly #states = new Map<string, WeighedState>();
  /** States that may have grown since their size was last computed. */
  readonly #touched = new Set<WeighedState>();
  #bytes = 0;

  get bytes(): number {
    for (const weighed of this.#touched) {
      const { bytes } = weighed.state;
      this.#bytes += bytes - weighed.bytes;
      weighed.bytes = bytes;
    }
    this.#touched.clear();
    return this.#bytes;
  }

  of(owner: ConversationOwner): ConversationState {
    const key = conversationKeyOf(owner);
    const weighed = this.#states.get(key) ?? { state: new ConversationState(), bytes: 0 };
    this.#states.delete(key);
    this.#states.set(key, weighed);
    this.#touched.add(weighed);
    if (this.#states.size > CONVERSATIONS_MAX) this.#forgetOldest();
    return weighed.state;
  }

  clear(): void {
    this.#states.clear();
    this.#touched.clear();
    this.#bytes = 0;
  }

  #forgetOldest(): void {
    const [oldest] = this.#states;
    if (oldest === undefined) return;
    const [key, weighed] = oldest;
    this.#states.delete(key);
    this.#touched.delete(weighed);
    this.#bytes -= weighed.bytes;
  }
}

interface WeighedState {
  readonly state: ConversationState;
  /** The bytes of this state that are included in the sum. */
  bytes: number;
}

/** A request as svc understands it: its content, its client, and the space of its memories. */
export interface Reading {
  readonly view: RequestView;
  readonly identity: RequestIdentity;
  readonly place: ConversationPlace;
  /** Spaces that held the memories of this project earlier. */
  readonly olderSpaces: readonly string[];
  /** The folder or space that the client names, while its project is not known yet. */
  readonly unknownPlace: Place | undefined;
  /** The state of the conversation in this process. */
  readonly state: ConversationState;
  /** The branch that is checked out, or else the branch that the client names. */
  readonly branch: string | undefined;
  /** The folder in which the client works, if it is on this machine. */
  readonly workplace: Workplace | undefined;
  /** True if the provider keeps the history, or items of it, so that svc may neither add nor leave out anything. */
  readonly hasProviderState: boolean;
  /** True if the request may use no memory: no space is allowed, or the user switched memory off for the project. */
  readonly hasNoSpace?: true;
  /** True if the request lacks the beginning of its conversation, which the provider keeps. */
  readonly hasProviderHistory: boolean;
  /** True if the request asks for the longest window of its model. */
  readonly asksForLongWindow: boolean;
}
