import { Recent } from '../core/bytes/recent.ts';
import {
  conversationKeyOf,
  type ConversationOwner,
  type LeftOut,
  type LongCache,
} from '../core/ledger/entries.ts';
import type { RecordText } from '../core/memory/record.ts';
import type { MeterState } from '../core/shortening/meter.ts';

/**
 * Everything that this process remembers of one conversation. It is a cache: svc finds again in the
 * ledger, the request log or the memory what is forgotten here, and the result is the same.
 *
 * Some things are kept for the whole process instead, because they belong to no conversation. The
 * views of recent bodies (conversations.ts) are found by their bytes. Forks of a conversation share
 * the outputs that the memory holds (output-keeper.ts) and has proven (possession.ts). Facts read of an item (held-digests.ts,
 * read-items.ts) live exactly as long as the item.
 */
export class ConversationState {
  /** The blocks that each of the last prompts carried: its tool loop repeats them in every round. */
  readonly blocks = new Recent<string, KnownBlocks>(PROMPTS_MAX);
  /** The batches that the last requests found, by the address of their mark: for a ledger that is late. */
  readonly batches = new Recent<string, readonly LeftOut[]>(OPENINGS_MAX);
  /** Exchanges that were kept, by the fingerprint of their first item. */
  readonly keptExchanges = new Recent<string, true>(EXCHANGES_MAX);
  /** Everything up to these items was kept, by fingerprint. */
  readonly keptHistories = new Recent<string, true>(HISTORIES_MAX);
  /** The ledger's generation in which they were kept. */
  keptIn: number | undefined;
  /** The newest question as it was kept. */
  question: KnownQuestion | undefined;
  /** The cost of its last request, for the price of the next one. */
  metered: MeterState | undefined;
  /** Tokens of the longest of its requests that the provider has answered. */
  acceptedTokens = 0;
  longCache: KnownLongCache | undefined;
  /** When its last request came, by the monotonic clock. */
  lastSeenAt: number | undefined;
  /** When the ledger last noted that. */
  notedAt: number | undefined;
  /** An earlier request of it was read for what may leave: its outputs are stored, or on their way. */
  wasRead = false;
  /** The first item of a history that is known to hold bound thinking, by fingerprint: a compacted one has another first item. */
  boundFrom: string | undefined;

  prefix: KnownPrefix | undefined;
  /** Who first changed what its thoughts are bound to; undefined where that is not known, or did not happen. */
  prefixChangedBy: PrefixChanger | undefined;

  /** An estimate of the memory that it takes. */
  get bytes(): number {
    const names = this.keptExchanges.size + this.keptHistories.size;
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

/** The part of a conversation that its newest thought is bound to. */
export interface KnownPrefix {
  /** Items of the newest request, and the fingerprint of the last of them. */
  readonly count: number;
  readonly fingerprint: string;
  /** Hash of the settings that are bound too. */
  readonly settings: string;
}

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
