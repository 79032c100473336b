import type { Span } from '../bytes/json-scan.ts';

/**
 * A parsed view of a request body. The bytes are authoritative: no text of the view is forwarded, and edits are byte
 * ranges of `bytes`.
 */

export type ItemRole = 'user' | 'assistant' | 'system' | 'tool' | 'other';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
}

/** A task that the client itself, not the user, gives the model in this request. */
export type ClientOrder = 'compaction' | 'side';

/**
 * The facts about one element of `messages` or `input`, read from its parsed JSON. They depend on the element, the
 * dialect and `readsFrames` of the view, never on the element's neighbours. So the next request takes the facts over if
 * these three are the same.
 */
export interface ItemTraits {
  readonly role: ItemRole;
  /** The user's text without the client's wrappers; '' if nothing was typed here. */
  readonly humanText: string;
  /** Visible assistant text; '' for reasoning, tool calls and everything else. */
  readonly assistantText: string;
  readonly toolCalls: readonly ToolCall[];
  /**
   * Ids of the calls that this item answers. A tool that the provider runs may answer its call in the same item. In
   * that case the call's id is in `toolCalls` too.
   */
  readonly toolResultIds: readonly string[];
  /** True if the item has thinking, encrypted reasoning or a provider's compaction: bytes that must not change. */
  readonly hasReasoning: boolean;
  /** The ids of the item's signed thinking, in order; see thoughtId. */
  readonly thoughts: readonly string[];
  /** True if the item has only thinking. A client may leave it out later, so fingerprints skip it. */
  readonly isThought?: true | undefined;
  /** True if the item is a reference to an item that only the provider has (`item_reference`). */
  readonly isReference: boolean;
  /** True if the user stopped the assistant here, so that the text so far is incomplete. */
  readonly isInterruption: boolean;
  /**
   * True if the item has the provider's own compaction. The provider reads nothing before such an item, so a client may
   * change or leave out earlier items, and fingerprints begin anew here.
   */
  readonly isCompaction?: true | undefined;
  /** True if the item replaces the history before it. It may repeat that history's typed texts. */
  readonly isSummary?: true | undefined;
  /** True if the user's text was inside a tool's output, so that it may be the text of a file. */
  readonly isUnverified?: true | undefined;
  /** True if a tool output ends with the reminder in which Claude Code sends what the user typed during the call. */
  readonly holdsFrame?: true | undefined;
  readonly workingFolder?: string | undefined;
  /** The folder in the part of a system message that describes the environment. CONTRADICTED: two parts differ. */
  readonly place?: string | undefined;
  /** If a user message states a folder: the client whose environment block begins as in this message. */
  readonly statedBy?: string | undefined;
  readonly branch?: string | undefined;
  readonly clientOrder?: ClientOrder | undefined;
}

export interface Item extends ItemTraits, Span {
  /** base64url sha256 of the item's content, without what clients may rewrite; see fingerprint.ts. */
  readonly digest: string;
  /**
   * base64url sha256 over the digests from the newest compaction, or else the first item, up to this item: the
   * conversation so far.
   */
  readonly fingerprint: string;
  /** Estimated tokens of the item's bytes. */
  readonly tokens: number;
  readonly soFar: SoFar;
}

/**
 * Facts about the conversation up to and including an item. Each item keeps them, so that the next request computes
 * them only for its new items.
 */
export interface SoFar {
  /** Estimated tokens of the items. */
  readonly tokens: number;
  /** The longest cache lifetime that a mark states, in milliseconds; 0 if no mark states one. */
  readonly cacheMs: number;
  /** The user's first text; '' if the user has typed none yet. */
  readonly firstHumanText: string;
  /**
   * The folder in the first system message. CONTRADICTED: a later one, before the first answer, names another folder.
   */
  readonly systemFolder: string | undefined;
  /** The folder in the first system message's part about the environment. CONTRADICTED: as for `systemFolder`. */
  readonly systemPlace: string | undefined;
  /** The first folder in a user message before any answer, with the client that writes this form. */
  readonly userFolder: StatedFolder | undefined;
  /** True if the conversation begins with the summary of an earlier one. */
  readonly beginsWithSummary: boolean;
  /**
   * In a conversation that begins with a summary, the folder in an environment of Claude Code after the first answer.
   * CONTRADICTED: two such folders differ.
   */
  readonly latePlace: string | undefined;
  /** The first git branch that an item states. System messages after the first one do not count. */
  readonly branch: string | undefined;
  /** The client's order in the first item of role 'system', if any. */
  readonly systemOrder: ClientOrder | undefined;
  readonly hasSystem: boolean;
  /** True if an item refers to another item that only the provider has. */
  readonly hasReference: boolean;
  /** Items with human text, newest first. */
  readonly humans: ItemChain | undefined;
  /** Items that may contain a text of svc's hooks, newest first. */
  readonly hookMarks: ItemChain | undefined;
  /** True if `holdsFrame` is true for an item; see ItemTraits. */
  readonly holdsFrame: boolean;
  readonly humanCount: number;
  /** Characters that users and assistants wrote. */
  readonly textChars: number;
  readonly exchange: ExchangeStart;
}

export interface StatedFolder {
  readonly folder: string;
  readonly statedBy: string;
}

/** A linked list of items, newest first. */
export interface ItemChain {
  readonly index: number;
  readonly before: ItemChain | undefined;
}

export interface ExchangeStart {
  /** The number of the exchange, counted from 0. */
  readonly number: number;
  /** Index of the exchange's first item. */
  readonly start: number;
  /** True if a user has typed something in the exchange. */
  readonly hasHuman: boolean;
  /** True if the model has answered, thought or called a tool in the exchange. */
  readonly isAnswered: boolean;
}

/** A body without its conversation. `value` is the parsed body with an empty list in place of the conversation. */
export interface Shell {
  readonly value: Readonly<Record<string, unknown>>;
  /** Estimated tokens of everything outside the list: system prompt, tools, settings. */
  readonly tokens: number;
}

export interface RequestView {
  readonly dialect: Dialect;
  /** Says whether a user's words in reminders behind tool outputs count as typed; undefined if no item has any. */
  readonly readsFrames: boolean | undefined;
  readonly bytes: Buffer;
  /** The span of the list, brackets included; for a Responses `input` string, the string's span. */
  readonly list: Span;
  /** True if `input` is a plain string. Then `items` holds one item with that span. */
  readonly isTextInput: boolean;
  readonly items: readonly Item[];
  readonly shell: Shell;
  /** Estimated input tokens of the whole request. */
  readonly tokens: number;
}

/** The purpose of a request. svc recalls and captures only for 'main'. */
export type RequestKind = 'main' | 'subagent' | 'side' | 'compaction' | 'count';

/** The client of a request, its purpose and its conversation. */
export interface RequestIdentity {
  /** Short name of the client program: 'claude-code', 'codex', 'opencode', …; 'unknown' otherwise. */
  readonly client: string;
  /** True if svc can distinguish this client's own texts from typed ones. */
  readonly isKnown: boolean;
  readonly kind: RequestKind;
  /** The client's own conversation id; '' if it states none. */
  readonly session: string;
  /** Where the request states `session`. A cache key may be a label that many conversations share. */
  readonly sessionFrom: 'header' | 'metadata' | 'cache-key' | 'nowhere';
  /** Id of a sub-agent that shares its parent's session id; '' otherwise. */
  readonly agent: string;
}

/**
 * The API formats of clients and providers. A name is also the `apiStyle` of an upstream: svc never translates, so
 * the client's dialect chooses the upstream. The descriptors under `src/core/dialects/` state how they differ.
 */
export type Dialect = 'anthropic_messages' | 'openai_responses' | 'openai_chat_completions';
