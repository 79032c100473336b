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
 * Remembers the last body of each conversation, so that the next one is read from where it differs.
 *
 * A cache and nothing more: whatever is forgotten here is read again, with the same result.
 */

// One person’s agents at work side by side, sub-agents included. Every view is looked at for every
// request, so more of them also cost more.
const VIEWS_MAX = 16;

// A conversation close to a window of 200,000 tokens is about 1 MB: the limit holds all 16 of them
// at 1.5 MB. The facts read of a body take memory besides; idle, the whole process stays within 110
// MB.
const BYTES_MAX = 24 * 1024 * 1024;

export class Conversations {
  readonly states = new ConversationStates();
  /** The newest first. */
  #views: readonly RequestView[] = [];

  /** An estimate of the memory that is remembered here. */
  get bytes(): number {
    return this.#views.reduce((sum, view) => sum + heldBytes(view), this.states.bytes);
  }

  /** Forgets everything. */
  clear(): void {
    this.#views = [];
    this.states.clear();
  }

  /** The view of a decoded body, as viewSteps() in core/request/request-view.ts reads it. */
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

/** Measured: the facts that svc reads of an item take so much beside its bytes, with texts of 2 kB. */
const FACT_BYTES = 1_600;

/** The memory that a view takes, with the facts that are read of its items. */
export function heldBytes({ bytes, items }: RequestView): number {
  return bytes.length + items.length * FACT_BYTES;
}

// Two texts that differ are hardly ever alike for so long at the same place.
const PROBE_BYTES = 64;

/**
 * A cheap test before megabytes are compared: bodies that share more than `at` bytes agree at `at`
 * too. A conversation that is continued, forked and worked on by sub-agents has many views that
 * begin alike.
 */
function agreeAt(at: number, one: Buffer, other: Buffer): boolean {
  const end = Math.min(at + PROBE_BYTES, one.length, other.length);
  return at < end && one.compare(other, at, end, at, end) === 0;
}

// A step adds a call and its results, and a client may take the last one back or mark it again.
const UNSETTLED_ITEMS = 4;

/**
 * Whether the earlier view is of no more use. Its last items may have changed, Claude Code moves a
 * mark in there. A sub-agent shares no more than the beginning with its parent, and must not push it
 * out.
 */
function continues(view: RequestView, earlier: RequestView): boolean {
  const settled = Math.max(0, earlier.items.length - UNSETTLED_ITEMS);
  return view.items[settled] === earlier.items[settled];
}

/**
 * Everything that this process remembers of one conversation. It is a cache: svc finds again in the
 * ledger, the request log or the memory what is forgotten here, and the result is the same.
 *
 * Some things are kept for the whole process instead, because they belong to no conversation. The
 * views of recent bodies (Conversations, below) are found by their bytes. Forks of a conversation share
 * the outputs that the memory holds (shortener.ts) and has proven (possession.ts). Facts read of an item
 * (shortener.ts, recall.ts) live exactly as long as the item.
 */
export class ConversationState {
  /**
   * The blocks that each of the last prompts carried, by the ledger's key of the prompt. A tool loop repeats them in
   * every round. Without it: every round reads the ledger for every prompt of the history.
   */
  readonly blocks = new Recent<string, KnownBlocks>(PROMPTS_MAX);
  /**
   * The batches that the last requests left out, by the key of their mark. Without it: a ledger that is late once
   * would bring all of them back, and the provider's cache would be written anew.
   */
  readonly batches = new Recent<string, readonly LeftOut[]>(OPENINGS_MAX);
  /**
   * The exchanges that are in the outbox, by the fingerprint of their first item. Without it: every request would
   * mask and offer the whole history again.
   */
  readonly keptExchanges = new Recent<string, true>(EXCHANGES_MAX);
  /**
   * The items up to which everything is in the outbox, by fingerprint. Without it: every request would look at all
   * exchanges of its history, though none of them is new.
   */
  readonly keptHistories = new Recent<string, true>(HISTORIES_MAX);
  /**
   * The ledger's generation in which the two above were noted. Without it: after a store was replaced, what it held
   * would never be stored again.
   */
  keptIn: number | undefined;
  /**
   * The newest question and its record. Without it: the question is masked with its first answer and once more with
   * its last one, while the client waits for its last byte.
   */
  question: KnownQuestion | undefined;
  /** What its last request cost, here and direct. Without it: the next one is priced as if its cache were cold. */
  metered: MeterState | undefined;
  /**
   * Tokens of the longest of its requests that the provider has answered. Without it: a window that is published
   * too small would end all batches.
   */
  acceptedTokens = 0;
  /**
   * Whether its cache marks ask for an hour, as the ledger has it. Without it: every request would wait for the
   * ledger once more.
   */
  longCache: KnownLongCache | undefined;
  /**
   * When its last request came, by the monotonic clock. Without it: svc cannot say that the provider's cache is cold,
   * which is when leaving texts out costs nothing.
   */
  lastSeenAt: number | undefined;
  /**
   * Milliseconds since its last request, at least, at the first request that this process served. Undefined where no
   * earlier process served one. Without it: a cache miss after a restart would not be seen.
   */
  resumedAfterMs: number | undefined;
  /** When the ledger last noted that. Without it: every request would write a row, where one a minute is enough. */
  notedAt: number | undefined;
  /**
   * An earlier request of it was looked at, so its outputs are stored or on their way. Without it: a long history is
   * read at first sight, and its request waits for that in vain.
   */
  wasRead = false;
  /**
   * The first item of the history that is known to hold bound thinking, by fingerprint: a compacted one has another
   * first item. Without it: a client that leaves old thinking out would look unbound while the ledger is late.
   */
  boundFrom: string | undefined;
  /** The fingerprint of its latest request, answered or not. Without it: a repeated request would get a second look. */
  newest: string | undefined;
  /** Its latest requests as digests. Without it: the log cannot say who changed what the provider had cached. */
  sent: PrefixHistory | undefined;
  /**
   * Who first changed what its thoughts are bound to; undefined where nobody is known to. Without it: the log would
   * count thoughts that the client lost as lost by svc.
   */
  prefixChangedBy: PrefixChanger | undefined;

  /** An estimate of the memory that it takes. */
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

/** Measured: the state of a conversation of one exchange. */
const STATE_BYTES = 2_048;
/** A fingerprint and its place in a map. */
const NAME_BYTES = 150;
/** A text that is not all Latin takes two a character. */
const CHARACTER_BYTES = 2;

// A person goes back a few prompts at most, and a prompt is asked about once a round.
const PROMPTS_MAX = 8;
// Clients that compact or rewind change how a conversation begins.
const OPENINGS_MAX = 4;
// They are forgotten when all of a history is kept; a history that is read in may have some thousand.
const EXCHANGES_MAX = 10_000;
// A person who goes back further has the exchanges before that point offered once more.
const HISTORIES_MAX = 64;
// Some kilobytes each. A person's agents work on a few dozen conversations a day.
const CONVERSATIONS_MAX = 1_024;

/** Blocks and the index of their items, without the body of the items. */
export interface KnownBlocks {
  /** The ledger's value when they were placed. If it has changed, some blocks may be forgotten. */
  readonly generation: number;
  readonly blocks: readonly KnownBlock[];
  /** The newest thinking was made without svc, and the ledger had no block to take back in front of it. */
  readonly isForeign: boolean;
  /** svc has not looked a second time in this tool loop, and may do so. */
  readonly mayLook: boolean;
}

export interface KnownBlock {
  readonly index: number;
  readonly block: string;
  readonly form: 'text' | 'part';
  readonly tokens: number;
}

/** A text, the blocks that its request carried, and the record that captureHuman() makes of the two. */
export interface KnownQuestion {
  readonly humanText: string;
  readonly blocks: string;
  readonly record: RecordText | undefined;
}

export type PrefixChanger = 'client' | 'svc';

export interface KnownLongCache {
  readonly state: LongCache | undefined;
  /** Its newest request came after a pause that the long lifetime should have bridged. */
  readonly isBridging: boolean;
}

/** The states of all conversations. The least recently used one is dropped first. */
export class ConversationStates {
  /** The longest unused first. */
  readonly #states = new Map<string, WeighedState>();
  /** States that may have grown since they were weighed. */
  readonly #touched = new Set<WeighedState>();
  #bytes = 0;

  /** An estimate of the memory that all of them take. */
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
  /** Its part of the sum. */
  bytes: number;
}

/** A request that svc understands: what it says, who asks, and where its memories belong. */
export interface Reading {
  readonly view: RequestView;
  readonly identity: RequestIdentity;
  readonly place: ConversationPlace;
  /** Spaces in which the same project was kept before. */
  readonly olderSpaces: readonly string[];
  /** The folder or the space that the client states, where its project is not known yet. */
  readonly unknownPlace: Place | undefined;
  /** The state of the conversation in this process. */
  readonly state: ConversationState;
  /** The branch that is checked out; else the one that the client states. */
  readonly branch: string | undefined;
  /** The folder in which the client works, where it is on this machine. */
  readonly workplace: Workplace | undefined;
  /** History, or items of it, are kept at the provider: nothing new may be put in or left out. */
  readonly hasProviderState: boolean;
  /** The request may use memory in no space, or the person switched it off for the project: its mode is off. */
  readonly hasNoSpace?: true;
  /** The request does not begin where its conversation does. */
  readonly hasProviderHistory: boolean;
  /** The request asks for the longest window that its model has. */
  readonly asksForLongWindow: boolean;
}
