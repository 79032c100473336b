import type { Dialect } from '../../../src/core/conversation/view.ts';
import { type BodyList, readBodyList } from '../../clients/support/body-list.ts';

/**
 * Judges a forwarded body by the client's: what was added, what was left out, and nothing else. It
 * reads bytes and JSON by itself, so that the product does not judge its own work.
 */

/** An output of the client that left, and what stands in its place. */
export interface Stub {
  readonly text: string;
  readonly stub: string;
}

/** What became of one item of the client. */
export type Fate =
  | { readonly kind: 'kept'; readonly said: string; readonly stubs: readonly Stub[] }
  | { readonly kind: 'left'; readonly value: unknown };

export interface Judged {
  /** What each item of the client says, without the marks that clients move. */
  readonly client: readonly string[];
  readonly fates: readonly Fate[];
  /** The index of the item with which the two newest exchanges begin. */
  readonly newest: number;
  /** How many results of tools have a block. */
  readonly looks: number;
}

/** Throws where the body is not the client's with priced and told changes. */
export function judgeBody(dialect: Dialect, client: Buffer, forwarded: Buffer): Judged {
  JSON.parse(forwarded.toString());
  const own = listOf(dialect, client);
  const other = listOf(dialect, forwarded);
  if (!own.head.equals(other.head))
    throw new Error('invalid body: the part before the items changed');
  if (!own.tail.equals(other.tail))
    throw new Error('invalid body: the part behind the items changed');
  const fates = fatesOf(own.items, other.items);
  const newest = newestExchanges(own.items);
  expectWholeExchanges(fates, newest);
  const ids = callIds(own.items);
  const forwardedIds = callIds(other.items);
  if (ids !== forwardedIds) throw new Error(`invalid body: calls ${ids} became ${forwardedIds}`);
  const looks = other.items.filter((item) => hasLook(parsed(item))).length;
  return { client: own.items.map((item) => sayings(parsed(item))), fates, newest, looks };
}

function listOf(dialect: Dialect, body: Buffer): BodyList {
  return readBodyList(body, dialect === 'openai_responses' ? 'input' : 'messages');
}

/** From the end, where nothing ever leaves. Answers are unique, so an item has one partner at most. */
function fatesOf(client: readonly Buffer[], forwarded: readonly Buffer[]): readonly Fate[] {
  const fates: Fate[] = [];
  let next = forwarded.length - 1;
  for (const item of client.toReversed()) {
    const other = forwarded[next];
    const value = parsed(item);
    const stubs: Stub[] = [];
    const isKept = other !== undefined && isSameBut(value, parsed(other), stubs);
    fates.push(
      isKept ? { kind: 'kept', said: sayings(parsed(other)), stubs } : { kind: 'left', value },
    );
    if (isKept) next -= 1;
  }
  if (next !== -1) {
    throw new Error(
      `invalid body: not the client's item: ${forwarded[next]?.toString().slice(0, 400)}`,
    );
  }
  return fates.toReversed();
}

const STUB = '[svc left out this ';
const BLOCK = /^<svc-memory [^]*<\/svc-memory>$/;
const NOTE = /\[svc left out \d+ earlier exchanges? (?:of this conversation|here)[^\]]*\]/;
const INSERTED = new RegExp(`^(?:\\n\\n(?:${NOTE.source}|<svc-memory [^]*?</svc-memory>))+$`);

const LOOK = /\n\n<svc-memory [^]*<\/svc-memory>$/;

/** Whether the item answers a call with a text that ends with a block. */
function hasLook(value: unknown): boolean {
  const texts = isRecord(value) ? [value['output'], value['content']] : [];
  const isAnswer = isRecord(value) && ('output' in value || value['role'] === 'tool');
  if (isAnswer) return texts.some((text) => typeof text === 'string' && LOOK.test(text));
  const parts: readonly unknown[] =
    isRecord(value) && Array.isArray(value['content']) ? value['content'] : [];
  return parts.some(
    (part) =>
      isRecord(part) &&
      part['type'] === 'tool_result' &&
      typeof part['content'] === 'string' &&
      LOOK.test(part['content']),
  );
}

/** Equal but for what svc may do to an item: a stub for a text, a block or a note behind one. */
function isSameBut(client: unknown, forwarded: unknown, stubs: Stub[]): boolean {
  if (typeof client === 'string' && typeof forwarded === 'string') {
    if (client === forwarded) return true;
    if (forwarded.startsWith(client)) return INSERTED.test(forwarded.slice(client.length));
    if (!forwarded.startsWith(STUB)) return false;
    // A block that was in the output is behind the stub.
    const stub = forwarded.replace(LOOK, '');
    stubs.push({ text: client, stub });
    return true;
  }
  if (Array.isArray(client) && Array.isArray(forwarded)) {
    // After a compaction of the provider, the client itself has blocks that svc once added.
    const own = [...client];
    const isRest = forwarded.every((part: unknown) => {
      if (own.length === 0 || !isSameBut(own[0], part, stubs)) return isAdded(part);
      own.shift();
      return true;
    });
    return isRest && own.length === 0;
  }
  if (!isRecord(client) || !isRecord(forwarded)) return client === forwarded;
  const names = Object.keys(client);
  if (names.join() !== Object.keys(forwarded).join()) return false;
  return names.every(
    (name) =>
      isSameBut(client[name], forwarded[name], stubs) ||
      (name === 'content' && isWrapped(client[name], forwarded[name])),
  );
}

/**
 * A block that another client's list carried as a part goes back as a part, so that the provider's cache
 * holds. The string of this client is then the part in front of it, with a note if exchanges have left.
 */
function isWrapped(client: unknown, forwarded: unknown): boolean {
  if (typeof client !== 'string' || !Array.isArray(forwarded)) return false;
  const parts: readonly unknown[] = forwarded;
  const [own, ...added] = parts;
  const isOwn =
    isRecord(own) && Object.keys(own).join() === 'type,text' && isSameBut(client, own['text'], []);
  return isOwn && added.length > 0 && added.every(isAdded);
}

function isAdded(part: unknown): boolean {
  if (!isRecord(part) || typeof part['text'] !== 'string') return false;
  return BLOCK.test(part['text']) || part['text'].replace(NOTE, '') === '';
}

/** The index of the item with which the two newest exchanges begin. */
function newestExchanges(items: readonly Buffer[]): number {
  const prompts = items.flatMap((item, at) => (isPrompt(parsed(item)) ? [at] : []));
  return prompts.at(-2) ?? 0;
}

/** A message of the person; the results of tools have the same role in one dialect. */
function isPrompt(value: unknown): boolean {
  return isRecord(value) && value['role'] === 'user' && callIds([bytesOf(value)]) === '';
}

function bytesOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** Only a prompt with its plain answer leaves, only both of them, and never of the two newest exchanges. */
function expectWholeExchanges(fates: readonly Fate[], newest: number): void {
  const left = fates.flatMap((fate, at) =>
    fate.kind === 'left' ? [{ at, value: fate.value }] : [],
  );
  for (const [index, { at, value }] of left.entries()) {
    const isFirst = index % 2 === 0;
    const before = left[index - 1]?.at;
    const role = isRecord(value) ? value['role'] : undefined;
    const fits = role === (isFirst ? 'user' : 'assistant') && (isFirst || before === at - 1);
    if (!fits || at >= newest || callIds([bytesOf(value)]) !== '') {
      throw new Error(`invalid body: item ${at} is gone: ${JSON.stringify(value).slice(0, 300)}`);
    }
  }
  if (left.length % 2 === 1) throw new Error('invalid body: half an exchange is gone');
}

/** All ids of calls and results, in their order. */
function callIds(items: readonly Buffer[]): string {
  const ids: string[] = [];
  for (const item of items) {
    JSON.parse(item.toString(), (name, value: unknown) => {
      const isCall = name === 'tool_use_id' || name === 'call_id' || name === 'tool_call_id';
      if (isCall || (name === 'id' && typeof value === 'string' && value.startsWith('call_'))) {
        ids.push(`${name}=${String(value)}`);
      }
      return value;
    });
  }
  return ids.join(' ');
}

/** What an item says: cache marks, and whether one text is a list, do not count. */
function sayings(value: unknown): string {
  return JSON.stringify(value, (name, inner: unknown) => {
    if (name === 'cache_control') return undefined;
    if (name === 'type' && inner === 'input_text') return 'text';
    return name === 'content' && typeof inner === 'string'
      ? [{ type: 'text', text: inner }]
      : inner;
  });
}

/** The texts of an exchange's item. */
export function textsIn(value: unknown): readonly string[] {
  const content = isRecord(value) ? value['content'] : undefined;
  if (typeof content === 'string') return [content];
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  return parts.flatMap((part) =>
    isRecord(part) && typeof part['text'] === 'string' ? [part['text']] : [],
  );
}

const STUB_NOTE = / \[svc keeps every output that it left out[^\]]*\]/;

/** Without the two notes that move when a batch leaves. */
export function withoutNotes(said: string): string {
  return said
    .replace(STUB_NOTE, '')
    .replace(new RegExp(`\\\\n\\\\n${NOTE.source}`), '')
    .replace(new RegExp(`,\\{"type":"(?:input_)?text","text":"${NOTE.source}"\\}`), '');
}

function parsed(item: Buffer): unknown {
  return JSON.parse(item.toString());
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
