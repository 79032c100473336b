import type { Span } from '../bytes/json-scan.ts';

/**
 * A typed view of a request body, whose bytes stay the truth. Nothing here owns text that is
 * forwarded; edits are made on `bytes` by span.
 */

export type ItemRole = 'user' | 'assistant' | 'system' | 'tool' | 'other';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
}

/** The task that a client's own instruction, not a person's, gives the model in this request. */
export type ClientOrder = 'compaction' | 'side';

/**
 * The facts about one element of `messages` or `input`, read once from its parsed JSON. They depend
 * on the element and the dialect alone, never on its neighbours. So they can be cached by position
 * as long as the bytes up to its end stay the same.
 */
export interface ItemTraits {
  readonly role: ItemRole;
  /** The person's text, client wrappers removed; '' when nothing was typed here. */
  readonly humanText: string;
  /** Visible assistant text; '' for reasoning, tool calls and everything else. */
  readonly assistantText: string;
  readonly toolCalls: readonly ToolCall[];
  /**
   * Ids of the calls that this item answers. A tool that the provider runs itself answers its call
   * in the same item: then the id is in both lists.
   */
  readonly toolResultIds: readonly string[];
  /** Thinking, encrypted reasoning or a provider's compaction: bytes that must stay as they are. */
  readonly hasReasoning: boolean;
  /** The names of its signed thinking, in their order; see thoughtId. */
  readonly thoughts: readonly string[];
  /** It holds thinking and nothing else. A client may leave it out later, so no fingerprint counts it. */
  readonly isThought?: true | undefined;
  /** A reference to an item that only the provider holds (`item_reference`). */
  readonly isReference: boolean;
  /** The person stopped the assistant here: what it had said so far is not a whole answer. */
  readonly isInterruption: boolean;
  /** It replaces the history before it, and clients repeat that history's typed texts. */
  readonly isSummary?: true | undefined;
  /** The person's text came inside a tool's output, where a file could write it too. */
  readonly isUnverified?: true | undefined;
  /** An output ends with a frame in which Claude Code puts what the person types meanwhile. */
  readonly holdsFrame?: true | undefined;
  /** The project folder that the client states in this item's text, when it does. */
  readonly workingFolder?: string | undefined;
  /** The folder in a part in which some clients describe their environment. CONTRADICTED: two such parts differ. */
  readonly place?: string | undefined;
  /** In a user message: the client that writes its environment in this form. */
  readonly statedBy?: string | undefined;
  /** The git branch that the client states in this item's text, when it does. */
  readonly branch?: string | undefined;
  /** The client's own order in this item: summarise the history, name the chat, suggest a reply. */
  readonly clientOrder?: ClientOrder | undefined;
}

export interface Item extends ItemTraits, Span {
  /** base64url sha256 of what the item says: thinking, cache marks and string-or-one-block form do not count. */
  readonly digest: string;
  /** base64url sha256 over the digests up to and including this item: the conversation so far. */
  readonly fingerprint: string;
  /** Estimated tokens of the item's bytes. */
  readonly tokens: number;
  readonly soFar: SoFar;
}

/**
 * Facts about the conversation up to and including an item. They are kept on the item, so that a
 * request which adds two items to a thousand reads two of them, not a thousand.
 */
export interface SoFar {
  /** Estimated tokens of the items. */
  readonly tokens: number;
  /** The longest lifetime of the prompt cache that a mark asks for, in milliseconds; 0 without one. */
  readonly cacheMs: number;
  /** The person's first text; '' before there is one. */
  readonly firstHumanText: string;
  /** Stated in the first system message. CONTRADICTED: another one before the first answer states another. */
  readonly systemFolder: string | undefined;
  /** The same of the folder in a part in which clients describe their environment. */
  readonly systemPlace: string | undefined;
  /** Stated first in a user message before the model had answered anything, with the client that states it so. */
  readonly userFolder: StatedFolder | undefined;
  /** Stated first. */
  readonly branch: string | undefined;
  /** The order in the first item of role 'system', if it gives one. */
  readonly systemOrder: ClientOrder | undefined;
  readonly hasSystem: boolean;
  /** An item refers to one that only the provider holds. */
  readonly hasReference: boolean;
  /** Items with human text, the newest first. */
  readonly humans: ItemChain | undefined;
  /** Items in which a text of svc's hooks may stand, the newest first. */
  readonly hookMarks: ItemChain | undefined;
  /** An item has an output that ends with a frame; see ItemTraits. */
  readonly holdsFrame: boolean;
  /** How many items have human text. */
  readonly humanCount: number;
  /** Characters that persons and assistants wrote. */
  readonly textChars: number;
  /** The exchange that the item belongs to. */
  readonly exchange: ExchangeStart;
}

export interface StatedFolder {
  readonly folder: string;
  readonly statedBy: string;
}

export interface ItemChain {
  /** Index of the item. */
  readonly index: number;
  readonly before: ItemChain | undefined;
}

export interface ExchangeStart {
  /** Counts from 0. */
  readonly number: number;
  /** Index of its first item. */
  readonly start: number;
  /** A person has typed something in it. */
  readonly hasHuman: boolean;
  /** The model has said, thought or called something in it. */
  readonly isAnswered: boolean;
}

/** The body without its conversation. `value` is the parsed body with the list emptied. */
export interface Shell {
  readonly value: Readonly<Record<string, unknown>>;
  /** Estimated tokens of everything outside the list: system, tools, settings. */
  readonly tokens: number;
}

export interface RequestView {
  readonly dialect: Dialect;
  /** Typed texts were read from frames at the end of tool outputs; undefined where there is no frame. */
  readonly readsFrames: boolean | undefined;
  readonly bytes: Buffer;
  /** The list's own span, brackets included; for a Responses `input` string, the string's. */
  readonly list: Span;
  /** True when `input` is a plain string: then `items` holds one item whose span is that string. */
  readonly isTextInput: boolean;
  readonly items: readonly Item[];
  readonly shell: Shell;
  /** Estimated input tokens of the whole request. */
  readonly tokens: number;
}

/** The purpose of a request. Memory acts on 'main' alone. */
export type RequestKind = 'main' | 'subagent' | 'side' | 'compaction' | 'count';

/** The client of a request, its purpose and its conversation. */
export interface RequestIdentity {
  /** Short name of the client program: 'claude-code', 'codex', 'opencode', …; 'unknown' otherwise. */
  readonly client: string;
  /** svc can separate the client's own texts from typed ones. */
  readonly isKnown: boolean;
  readonly kind: RequestKind;
  /** The client's own conversation id, or '' when it states none. */
  readonly session: string;
  /** Where `session` was read. A cache key may be a label that many conversations share. */
  readonly sessionFrom: 'header' | 'metadata' | 'cache-key' | 'nowhere';
  /** Id of the sub-agent that shares its parent's session id, or ''. */
  readonly agent: string;
}

/**
 * The names of the API formats of clients and providers. A name is also the `apiStyle` of an
 * upstream: svc never translates, so the client's dialect picks the upstream. The descriptors under
 * `src/core/dialects/` contain all differences between dialects.
 */
export const DIALECTS = [
  'anthropic_messages',
  'openai_responses',
  'openai_chat_completions',
] as const;

export type Dialect = (typeof DIALECTS)[number];
