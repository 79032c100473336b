import type { ConversationPlace, Placement } from '../core/recall/injections.ts';
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
 * Caches the last bodies of a few conversations, so that svc parses the next body only from where it differs. Without
 * the cached body svc parses all of it, with the same result.
 */

// Bound on cached views, because every request is compared with every view. One user's agents and sub-agents seldom
// work on more conversations at the same time.
const VIEWS_MAX = 16;

// Bound on the bytes of cached bodies: 16 of 1.5 MB. A conversation close to a window of 200,000 tokens has about 1 MB.
// With the facts that svc reads of these bodies, the idle process stays within 110 MB. A longer body is not cached.
const BYTES_MAX = 24 * 1024 * 1024;

export class Conversations {
  readonly states = new ConversationStates();
  /** Cached views, newest first. */
  #views: readonly RequestView[] = [];

  /** The estimated bytes of memory that the cached bodies and the states take. */
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

/** Bytes of memory that the facts about one item take, beside the item's own bytes. Measured with texts of 2 kB. */
const FACT_BYTES = 1_600;

/** Returns the estimated bytes of memory that a view takes, with the facts about its items. */
export function heldBytes({ bytes, items }: RequestView): number {
  return bytes.length + items.length * FACT_BYTES;
}

// Bytes that are compared first. Two different texts hardly ever have so many equal bytes at the same offset.
const PROBE_BYTES = 64;

/**
 * Says whether two bodies may have more than their first `at` bytes in common. It compares a few bytes, because
 * comparing megabytes with every view would take long.
 */
function agreeAt(at: number, one: Buffer, other: Buffer): boolean {
  const end = Math.min(at + PROBE_BYTES, one.length, other.length);
  return at < end && one.compare(other, at, end, at, end) === 0;
}

// The number of last items that may differ from the earlier body of a conversation: the client may remove some, or move
// its cache mark.
const UNSETTLED_ITEMS = 4;

/**
 * Says whether the new view continues the conversation of the earlier one, and so replaces it in the cache. A sub-agent
 * has only the beginning in common with its parent, and must not replace the parent's view.
 */
function continues(view: RequestView, earlier: RequestView): boolean {
  const settled = Math.max(0, earlier.items.length - UNSETTLED_ITEMS);
  return view.items[settled] === earlier.items[settled];
}

/**
 * Everything that this process keeps in memory about one conversation. It is a cache: if it is dropped, svc reads the
 * ledger and the memory again, or does work twice. Each comment says what would be missing ("Without it").
 * Some facts belong to no conversation. Views of recent bodies (Conversations, above) are found by their bytes. Which
 * outputs the memory has (shortener.ts) and has proven (possession.ts) is the same for all forks. Facts about an item
 * (outputs.ts, shortener.ts, recall.ts) are dropped with the item.
 */
export class ConversationState {
  /**
   * The recalled texts (blocks) in the requests of each of the last prompts, by the ledger's key of the prompt. Without
   * it: every round of a tool loop would read the ledger for every prompt of the history.
   */
  readonly blocks = new Recent<string, KnownBlocks>(PROMPTS_MAX);
  /**
   * What the last requests left out, by the ledger's key of the entry 'batch-mark'. Without it: after one late answer
   * of the ledger a request would contain these texts again, and the provider would have to write its cache again.
   */
  readonly batches = new Recent<string, readonly LeftOut[]>(OPENINGS_MAX);
  /**
   * The exchanges that are stored, by the fingerprint of their first item. Without it: every request would make the
   * records of the whole history again.
   */
  readonly keptExchanges = new Recent<string, true>(EXCHANGES_MAX);
  /**
   * The items up to which everything is stored, by fingerprint. Without it: every request would check all exchanges of
   * its history, though none is new.
   */
  readonly keptHistories = new Recent<string, true>(HISTORIES_MAX);
  /**
   * The ledger's generation when `keptExchanges` and `keptHistories` were filled. Without it: after the store was
   * replaced, texts that it lost would never be stored again.
   */
  keptIn: number | undefined;
  /**
   * The newest question and its record, made in the first round. Without it: svc would make the record again at the end
   * of the exchange, while the client waits for its last byte.
   */
  question: KnownQuestion | undefined;
  /**
   * The state of meter() after the last request. Without it: the next request would be priced as if its cache were
   * cold.
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
   * cold.
   */
  lastSeenAt: number | undefined;
  /**
   * A lower bound of the milliseconds between the last request to an earlier process and the first one to this process.
   * Undefined if no earlier process served the conversation. Without it: a cache miss after a restart would not be
   * seen.
   */
  resumedAfterMs: number | undefined;
  /**
   * When the ledger's entry 'last-request' was written, by the monotonic clock. Without it: every request would write
   * one, though one a minute is enough.
   */
  notedAt: number | undefined;
  /**
   * Whether svc has checked, for an earlier request, what may be left out. Then the old texts of that request are
   * stored or will be. Without it: the first request with a long history would read all of it, though the memory most
   * likely has nothing of it.
   */
  wasRead = false;
  /**
   * The fingerprint of the first item, if the conversation is known to have bound thinking. A compacted conversation
   * has another first item. Without it: a conversation whose client has dropped its thinking would seem unbound while
   * the ledger is late.
   */
  boundFrom: string | undefined;
  /**
   * The fingerprint of the last item of the latest request. It shows that a request is sent again. Without it: svc
   * would search for the same tool result once more; see second-look.ts.
   */
  newest: string | undefined;
  /** Digests of the latest requests. Without it: the request log could not say why the provider's cache missed. */
  sent: PrefixHistory | undefined;
  /**
   * Who first changed the prefix that thinking is bound to; undefined if unknown. Without it: the log could not say why
   * the provider dropped thinking.
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

/** Measured bytes of memory of the state of a conversation with one exchange. */
const STATE_BYTES = 2_048;
/** Bytes of memory of a fingerprint in a map. */
const NAME_BYTES = 150;
/** Bytes of a character in a string that has characters beyond Latin-1. */
const CHARACTER_BYTES = 2;

// Bound on prompts whose blocks are remembered. Every round of a tool loop has the same prompt, and users seldom go
// back.
const PROMPTS_MAX = 8;
// Bound on beginnings with remembered batches. A conversation gets another one by a compaction or a rewind.
const OPENINGS_MAX = 4;
// Bound on stored exchanges. A history may have some thousand; when all are stored, they are cleared.
const EXCHANGES_MAX = 10_000;
// Bound on stored histories. If the user goes back further than these, svc stores the exchanges once more.
const HISTORIES_MAX = 64;
// Bound on conversations with a state of some kilobytes. One user's agents work on a few dozen a day.
const CONVERSATIONS_MAX = 1_024;

/** The blocks in the requests of a prompt. They name items by their index, so that no body stays in memory. */
export interface KnownBlocks {
  /** The ledger's generation when the blocks were placed. If it is another one now, some may have been forgotten. */
  readonly generation: number;
  readonly blocks: readonly KnownBlock[];
  /** True if the newest thinking was made without svc. No block may stand in front of that thinking. */
  readonly isForeign: boolean;
  /** True if a second look may still follow in this tool loop. */
  readonly mayLook: boolean;
}

export interface KnownBlock extends Omit<Placement, 'item' | 'isNew'> {
  readonly index: number;
  /** The fingerprint of the item at `index`. */
  readonly fingerprint: string;
}

/** A question, the recalled blocks of its request, and the record that captureHuman() makes of them. */
export interface KnownQuestion {
  readonly humanText: string;
  readonly blocks: string;
  readonly record: RecordText | undefined;
}

export type PrefixChanger = 'client' | 'svc';

export interface KnownLongCache {
  readonly state: LongCache | undefined;
  /** True if the newest request came after a pause that the long-lived cache entry should survive. */
  readonly isBridging: boolean;
}

/** The states of all conversations. The least recently used one is dropped first. */
export class ConversationStates {
  /** States, from the least to the most recently used. */
  readonly #states = new Map<string, WeighedState>();
  /** States whose size may have changed since it was last computed. */
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
  /** The size with which this state counts in the sum of all states. */
  bytes: number;
}

/** What svc has read of a request: its content, its client, its conversation and the space of its memories. */
export interface Reading {
  readonly view: RequestView;
  readonly identity: RequestIdentity;
  readonly place: ConversationPlace;
  /** Spaces that the memories of this project had earlier. Recall searches them too. */
  readonly olderSpaces: readonly string[];
  /**
   * The folder or space that the client states; undefined once svc has found its project, or if svc searches for none.
   */
  readonly unknownPlace: Place | undefined;
  /** The state of the conversation in this process. */
  readonly state: ConversationState;
  /** The branch that is checked out, or else the one that the client states. */
  readonly branch: string | undefined;
  /** The folder in which the client works, if it is on this machine. */
  readonly workplace: Workplace | undefined;
  /** True if the provider stores the history, or items of it. Then svc adds no new block and leaves out nothing. */
  readonly hasProviderState: boolean;
  /** True if the request may use no memory: no space is allowed, or the user switched memory off for the project. */
  readonly hasNoSpace?: true;
  /** True if the request lacks the beginning of its conversation, because the provider stores it. */
  readonly hasProviderHistory: boolean;
  /** True if the request asks for the longest window of its model. */
  readonly asksForLongWindow: boolean;
}
