/**
 * Identifies items and conversations: equal fingerprints mean the same conversation so far.
 * A digest covers an item's content, but not what a client may rewrite between two requests:
 * - Cache marks, and whether a content is a string or a list of one text. Claude Code moves its mark to the newest
 *   message, and turns the list with the old mark back into a string.
 * - The form of a Responses input: a string, a message, or a message that states its type; and the order of a message's
 *   role and content. SDKs change between them.
 * - White space between values.
 * - Thinking. A client may leave old thinking out, and the conversation stays the same.
 * Everything else counts, in the client's order and spelling: 2^53+1 differs from 2^53, and a character differs from
 * its escape.
 */
import { hash } from 'node:crypto';
import {
  firstElement,
  firstMember,
  isSpace,
  keyIs,
  type MemberHead,
  nextElement,
  nextMember,
  opensList,
  opensObject,
  opensString,
  skipSpace,
  stringEnd,
  valueEnd,
  type Span,
} from '../bytes/json-scan.ts';

// Content that is a string is hashed as a list with one text block: the string is put between these bytes.
const BLOCK_OPEN = Buffer.from('[{"type":"text","text":');
const BLOCK_CLOSE = Buffer.from('}]');

// A Responses message is hashed as Codex sends it: with its type, and its content as a list.
const MESSAGE_OPEN = Buffer.from('{"type":"message","role":');
const MESSAGE_CONTENT = Buffer.from(',"content":');
const COMMA = Buffer.from(',');
const COLON = Buffer.from(':');
const OBJECT_CLOSE = Buffer.from('}');
const INPUT_OPEN = Buffer.from('[{"type":"input_text","text":');
const OUTPUT_OPEN = Buffer.from('[{"type":"output_text","text":');

// A Responses `input` string is hashed as the message that clients later send back for it.
const TEXT_INPUT_OPEN = Buffer.concat([
  MESSAGE_OPEN,
  Buffer.from('"user"'),
  MESSAGE_CONTENT,
  INPUT_OPEN,
]);
const TEXT_INPUT_CLOSE = Buffer.concat([BLOCK_CLOSE, OBJECT_CLOSE]);

/** Cache marks: Anthropic's, and OpenAI's since GPT-5.6 (its prompt caching guide, 2026-09). Clients move both. */
const MARKS = ['cache_control', 'prompt_cache_breakpoint'] as const;

/**
 * Blocks of an Anthropic message that are signed and bound to what precedes them: thinking, and the text between it and
 * a connector's call (@anthropic-ai/sdk 1.14.0, `input_transformations` of a beta message, read 2026-11-30).
 */
export const THINKING_TYPES: ReadonlySet<string> = new Set([
  'thinking',
  'redacted_thinking',
  'connector_text',
]);

/**
 * Members with the thinking of a Chat Completions message. In order: DeepSeek and Qwen; OpenRouter and vLLM; the signed
 * thinking of OpenRouter; that of LiteLLM.
 */
export const REASONING_MEMBERS = [
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'thinking_blocks',
] as const;

/** Members of an item or of a content block that are left out of the digest. */
const UNCOUNTED: readonly string[] = [...MARKS, ...REASONING_MEMBERS];

/**
 * Returns the base64url sha256 of the content of the item at `span`, which must be valid JSON. `hasTypedMessages`: a
 * message may state its type, and its text parts may be `input_text` or `output_text`.
 */
export function digestItem(bytes: Buffer, span: Span, hasTypedMessages = false): string {
  const writer = new CanonicalWriter(bytes, hasTypedMessages);
  writer.writeItem(span.start);
  return hash('sha256', writer.take(), 'base64url');
}

/** Returns the digest of a Responses `input` that is one string. */
export function digestTextInput(bytes: Buffer, span: Span): string {
  const text = bytes.subarray(span.start, span.end);
  return hash('sha256', Buffer.concat([TEXT_INPUT_OPEN, text, TEXT_INPUT_CLOSE]), 'base64url');
}

/** Returns an item's fingerprint. `previous`: that of the item before; '' for the first item, and for a compaction. */
export function chainFingerprint(previous: string, digest: string): string {
  return hash('sha256', previous + digest, 'base64url');
}

/** Collects the bytes that are hashed. Adjacent bytes of the body become one piece; a single piece is not copied. */
class CanonicalWriter {
  readonly #bytes: Buffer;
  readonly #hasTypedMessages: boolean;
  readonly #pieces: Uint8Array[] = [];
  #start = 0;
  #end = 0;

  constructor(bytes: Buffer, hasTypedMessages: boolean) {
    this.#bytes = bytes;
    this.#hasTypedMessages = hasTypedMessages;
  }

  take(): Uint8Array {
    this.#flush();
    const [first, ...others] = this.#pieces;
    return first !== undefined && others.length === 0 ? first : Buffer.concat(this.#pieces);
  }

  writeItem(start: number): void {
    if (!opensObject(this.#bytes, start)) {
      this.#writeCompact(start);
      return;
    }
    const message = this.#hasTypedMessages ? readMessage(this.#bytes, start) : undefined;
    if (message === undefined) this.#writeBlock(start);
    else this.#writeMessage(message);
  }

  #writeMessage({ role, content, others }: Message): void {
    const bytes = this.#bytes;
    this.#insert(MESSAGE_OPEN);
    this.#writeCompact(role);
    this.#insert(MESSAGE_CONTENT);
    const isAnswer = keyIs(bytes, spanOf(bytes, role), 'assistant');
    this.#writeContent(content, isAnswer ? OUTPUT_OPEN : INPUT_OPEN);
    for (const { key, valueStart } of others) {
      this.#insert(COMMA);
      this.#keep(key.start, key.end);
      this.#insert(COLON);
      this.#writeCompact(valueStart);
    }
    this.#insert(OBJECT_CLOSE);
  }

  /** Writes an item or a content block without its members of UNCOUNTED. In deeper objects, such a member is data. */
  #writeBlock(open: number): number {
    const bytes = this.#bytes;
    this.#keepOne(open);
    let end = open + 1;
    let isFirst = true;
    let member = firstMember(bytes, open);
    while (member !== undefined) {
      const { key, valueStart } = member;
      if (isUncounted(bytes, key)) {
        end = valueEnd(bytes, valueStart);
      } else {
        if (!isFirst) this.#keepOne(skipSpace(bytes, end));
        isFirst = false;
        this.#keep(key.start, key.end);
        this.#keepOne(skipSpace(bytes, key.end));
        const isContent = keyIs(bytes, key, 'content');
        end = isContent ? this.#writeContent(valueStart) : this.#writeCompact(valueStart);
      }
      member = nextMember(bytes, end);
    }
    const close = skipSpace(bytes, end);
    this.#keepOne(close);
    return close + 1;
  }

  /** Writes a content without thinking blocks. A string becomes a list with one block, which begins with `opening`. */
  #writeContent(start: number, opening = BLOCK_OPEN): number {
    const bytes = this.#bytes;
    if (opensString(bytes, start)) {
      const end = stringEnd(bytes, start);
      this.#insert(opening);
      this.#keep(start, end);
      this.#insert(BLOCK_CLOSE);
      return end;
    }
    if (!opensList(bytes, start)) return this.#writeCompact(start);
    this.#keepOne(start);
    let end = start + 1;
    let isFirst = true;
    let at = firstElement(bytes, start);
    while (at !== -1) {
      if (isThinkingBlock(bytes, at)) {
        end = valueEnd(bytes, at);
      } else {
        if (!isFirst) this.#keepOne(skipSpace(bytes, end));
        isFirst = false;
        end = opensObject(bytes, at) ? this.#writeBlock(at) : this.#writeCompact(at);
      }
      at = nextElement(bytes, end);
    }
    const close = skipSpace(bytes, end);
    this.#keepOne(close);
    return close + 1;
  }

  /** Writes a value without the spaces between its parts. */
  #writeCompact(start: number): number {
    const bytes = this.#bytes;
    const end = valueEnd(bytes, start);
    let at = start;
    while (at < end) {
      const from = at;
      at = opensString(bytes, at) ? stringEnd(bytes, at) : at + 1;
      if (!isSpace(bytes[from])) this.#keep(from, at);
    }
    return end;
  }

  #keepOne(at: number): void {
    this.#keep(at, at + 1);
  }

  #keep(start: number, end: number): void {
    if (start !== this.#end) {
      this.#flush();
      this.#start = start;
    }
    this.#end = end;
  }

  #insert(piece: Uint8Array): void {
    this.#flush();
    this.#pieces.push(piece);
  }

  #flush(): void {
    if (this.#end > this.#start) this.#pieces.push(this.#bytes.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}

function isUncounted(bytes: Buffer, key: Span): boolean {
  return UNCOUNTED.some((name) => keyIs(bytes, key, name));
}

function isThinkingBlock(bytes: Buffer, start: number): boolean {
  let member = opensObject(bytes, start) ? firstMember(bytes, start) : undefined;
  while (member !== undefined && !keyIs(bytes, member.key, 'type')) {
    member = nextMember(bytes, valueEnd(bytes, member.valueStart));
  }
  if (member === undefined || !opensString(bytes, member.valueStart)) return false;
  const type = spanOf(bytes, member.valueStart);
  return [...THINKING_TYPES].some((name) => keyIs(bytes, type, name));
}

/** An item with role and content whose type is `message` or missing. */
interface Message {
  /** Offsets at which the values begin. */
  readonly role: number;
  readonly content: number;
  /** The other members, without those of UNCOUNTED. */
  readonly others: readonly MemberHead[];
}

function readMessage(bytes: Buffer, open: number): Message | undefined {
  let [type, role, content] = [-1, -1, -1];
  const others: MemberHead[] = [];
  let member = firstMember(bytes, open);
  while (member !== undefined) {
    const { key, valueStart } = member;
    if (type === -1 && keyIs(bytes, key, 'type')) type = valueStart;
    else if (role === -1 && keyIs(bytes, key, 'role')) role = valueStart;
    else if (content === -1 && keyIs(bytes, key, 'content')) content = valueStart;
    else if (!isUncounted(bytes, key)) others.push(member);
    member = nextMember(bytes, valueEnd(bytes, valueStart));
  }
  if (role === -1 || content === -1) return undefined;
  const isMessage = type === -1 || keyIs(bytes, spanOf(bytes, type), 'message');
  return isMessage ? { role, content, others } : undefined;
}

function spanOf(bytes: Buffer, start: number): Span {
  return { start, end: valueEnd(bytes, start) };
}
