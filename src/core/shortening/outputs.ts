/**
 * Finds the tool outputs of a request: the text of each, the call that it answers, and the place of
 * its text in the body. So the text alone can be replaced, and the pair of call and result stays.
 *
 * An output that is not exactly one text (pictures, several parts, parts with fields of their own)
 * has no text here and is therefore never touched.
 */
import { callsOf, pathIn, dialectOf } from '../dialects/dialects.ts';
import { asText, parseJson as parseText } from '../bytes/json-fields.ts';
import {
  elementsOf,
  firstMember,
  memberValue,
  nextMember,
  opensList,
  opensObject,
  opensString,
  parseJson,
  stringPrefixEnd,
  valueEnd,
  type Span,
} from '../bytes/json-scan.ts';
import { referenceOf, REFERENCES, textDigest } from '../memory/reference.ts';
import { toolTextLength } from '../conversation/end-reminders.ts';
import { type Gist, gistOf, isStub } from './stubs.ts';
import { estimateTokens } from '../bytes/tokens.ts';
import type { Item, RequestView } from '../conversation/view.ts';

/** The facts about one output that its own item shows. */
interface ItemOutput {
  readonly callId: string;
  /**
   * The bytes that are replaced when the output is elided: those of `text` and no others, inside the
   * quotes of a JSON string.
   */
  readonly content: Span;
  /** The tool's text. Reminders that the client appended to it stay in the request. */
  readonly text: string;
  /** base64url sha256 of `tool`, a line end and the text: the key under which the memory holds it. */
  readonly digest: string;
  /** Estimated tokens of the content. */
  readonly tokens: number;
  /** The facts about the text that a stub states. */
  readonly gist: Gist;
  /**
   * The memory may store the text unchanged: it holds nothing private, and every character has
   * UTF-8 bytes.
   */
  readonly isStorable: boolean;
  /** The client put this in the place of what the tool said. */
  readonly isClientStub: boolean;
}

/** The facts about a call that shortening needs. */
interface ItemCall {
  readonly id: string;
  /** The tool's name; '' for what is no call. */
  readonly tool: string;
  /** The file that it names; '' when none. */
  readonly path: string;
  /** References of elided outputs that it mentions: it reads them again. */
  readonly references: readonly string[];
}

/** The calls and outputs of one item. Depends on the item's bytes alone, so it can be kept with it. */
export interface ItemTools {
  readonly calls: readonly ItemCall[];
  readonly outputs: readonly ItemOutput[];
}

/** An output in its request. */
export interface ToolOutput extends ItemOutput {
  /** The beginning of its digest, under which the ledger names it. */
  readonly mark: string;
  /** Index of the item that holds it. */
  readonly item: number;
  /** The tool's name; '' when the request does not hold the call. */
  readonly tool: string;
  /** How often, up to here, its text was read again by a reference after it had left; see ReadCounts. */
  readonly timesRead: number;
  /** The client itself put something in the output's place, or refers to it further on. */
  readonly isClients: boolean;
}

const NO_TOOLS: ItemTools = { calls: [], outputs: [] };

/** Reads the calls and outputs of one item. */
export function readItemTools(view: RequestView, item: Item): ItemTools {
  if (view.isTextInput || !opensObject(view.bytes, item.start)) return NO_TOOLS;
  const callsTools = item.toolCalls.length > 0;
  // A tool that the provider ran itself has call and result in one assistant item: svc leaves it
  // alone.
  const answers = item.toolResultIds.length > 0 && item.role !== 'assistant';
  if (!callsTools && !answers) return NO_TOOLS;
  return {
    calls: callsTools ? readCalls(view, item) : [],
    outputs: answers ? readOutputs(view, item) : [],
  };
}

/** The client refers to an earlier output of the same file. */
const UNCHANGED = 'File unchanged since last read';

/**
 * Texts that clients write in the place of an output. The first refers to an earlier output, which
 * must stay.
 */
const CLIENT_STUBS: readonly string[] = [
  UNCHANGED,
  '[Old tool result content cleared',
  'Old tool result content cleared',
];

// --- calls

function readCalls(view: RequestView, item: Item): readonly ItemCall[] {
  return callsOf(view, item).map(({ id, tool, fields, text }) => {
    return { id, tool, path: pathIn(fields), references: text.match(REFERENCES) ?? [] };
  });
}

// --- outputs

function readOutputs(view: RequestView, item: Item): readonly ItemOutput[] {
  const { bytes, dialect } = view;
  const places = dialectOf(dialect).resultPlaces(bytes, item);
  return places.flatMap(({ open, idName, textName }) => {
    const id = memberValue(bytes, open, idName);
    const value = memberValue(bytes, open, textName);
    const text = value === undefined ? undefined : onlyText(bytes, value);
    const callId = id === undefined ? '' : asText(parseJson(bytes, id)?.value);
    if (text === undefined || callId === '') return [];
    if (text.end - text.start > WRITTEN_BYTES_MAX) return [];
    const whole = asText(parseJson(bytes, text)?.value);
    const said = whole.slice(0, toolTextLength(whole));
    const content = bytesOf(bytes, text, { said, isWhole: said.length === whole.length });
    if (content === undefined) return [];
    const digest = textDigest('tool', said);
    const tokens = estimateTokens(bytes, content.start, content.end);
    const isClientStub = CLIENT_STUBS.some((start) => said.startsWith(start));
    const output = { callId, content, text: said, digest, tokens, isClientStub };
    return [{ ...output, gist: gistOf(said), isStorable: isStorable(said) }];
  });
}

/** The bytes inside the string `text` that write `said`, its beginning; undefined where none do. */
function bytesOf(
  bytes: Buffer,
  text: Span,
  { said, isWhole }: { readonly said: string; readonly isWhole: boolean },
): Span | undefined {
  const start = text.start + 1;
  if (isWhole) return { start, end: text.end - 1 };
  const end = stringPrefixEnd(bytes, text.start, said.length);
  // Bytes that are no UTF-8 are read as other characters: then the two are counted differently.
  const written = parseText(`"${bytes.toString('utf8', start, end)}"`);
  return written === said ? { start, end } : undefined;
}

// Clients cut outputs at 30,000 to 100,000 characters; looking for secrets in more would hold up every
// stream for too long.
const TEXT_CHARS_MAX = 128 * 1024;

// Six bytes a character at most, as an escape: what is longer need not be read to know that it stays.
const WRITTEN_BYTES_MAX = 6 * TEXT_CHARS_MAX + 2;

/** Such a text can be stored unchanged and proven; whether it holds a secret is another question. */
export function isStorable(text: string): boolean {
  if (text.length > TEXT_CHARS_MAX || isStub(text)) return false;
  // Half a surrogate pair has no UTF-8 form: such a text cannot be proven.
  return !/<private>/i.test(text) && !/\p{Surrogate}/u.test(text);
}

/** The string that is the whole content: alone, or in the only part of a list. */
function onlyText(bytes: Buffer, content: Span): Span | undefined {
  if (opensString(bytes, content.start)) return content;
  if (!opensList(bytes, content.start)) return undefined;
  const [part, ...others] = elementsOf(bytes, content);
  if (part === undefined || others.length > 0 || !opensObject(bytes, part)) return undefined;
  const text = memberValue(bytes, part, 'text');
  const isPlain =
    text !== undefined && opensString(bytes, text.start) && countMembers(bytes, part) === 2;
  const type = memberValue(bytes, part, 'type');
  if (!isPlain || type === undefined) return undefined;
  return TEXT_TYPES.has(parseJson(bytes, type)?.value) ? text : undefined;
}

const TEXT_TYPES: ReadonlySet<unknown> = new Set(['text', 'input_text', 'output_text']);

function countMembers(bytes: Buffer, open: number): number {
  let count = 0;
  let member = firstMember(bytes, open);
  while (member !== undefined) {
    count += 1;
    member = nextMember(bytes, valueEnd(bytes, member.valueStart));
  }
  return count;
}

// 72 random bits: two outputs of one conversation never share them, and the text is proven anyway.
const MARK_CHARS = 12;

/** All outputs of a request that are one text, in order. `toolsOf` is readItemTools, or something that remembers it. */
export function outputsOf(
  { items }: Pick<RequestView, 'items'>,
  toolsOf: (item: Item) => ItemTools,
): readonly ToolOutput[] {
  const calls = new Map<string, ItemCall>();
  const counts = new ReadCounts();
  const listed: ToolOutput[] = [];
  // The file that the call of each names.
  const paths: string[] = [];
  let isReferring = false;
  for (const [at, item] of items.entries()) {
    if (!hasTools(item)) continue;
    const tools = toolsOf(item);
    for (const call of tools.calls) calls.set(call.id, call);
    for (const output of tools.outputs) {
      const call = calls.get(output.callId);
      // By name: to spread thousands of outputs takes V8 some 60 times as long.
      listed.push({
        callId: output.callId,
        content: output.content,
        text: output.text,
        digest: output.digest,
        tokens: output.tokens,
        gist: output.gist,
        isStorable: output.isStorable,
        isClientStub: output.isClientStub,
        mark: output.digest.slice(0, MARK_CHARS),
        item: at,
        tool: call?.tool ?? '',
        timesRead: counts.count(call?.references ?? [], output.digest),
        isClients: output.isClientStub,
      });
      paths.push(call?.path ?? '');
      isReferring ||= output.isClientStub && output.text.startsWith(UNCHANGED);
    }
  }
  return isReferring ? markReferred(listed, paths) : listed;
}

/**
 * All outputs but those of the newest item. The model has not seen those yet, so they are never
 * left out, and svc can read them after the request is sent.
 */
export function seenOutputsOf(
  { items, bytes }: RequestView,
  toolsOf: (item: Item) => ItemTools,
): readonly ToolOutput[] {
  const newest = items.at(-1);
  if (newest === undefined) return [];
  // It may refer to an earlier one.
  const isReferring = bytes.subarray(newest.start, newest.end).includes(UNCHANGED);
  if (!isReferring) return outputsOf({ items: items.slice(0, -1) }, toolsOf);
  return outputsOf({ items }, toolsOf).filter(({ item }) => item < items.length - 1);
}

function hasTools({ toolCalls, toolResultIds }: Item): boolean {
  return toolCalls.length > 0 || toolResultIds.length > 0;
}

/**
 * When the client says "unchanged", the model looks at an earlier output of the same file: that
 * output must stay.
 */
function markReferred(
  outputs: readonly ToolOutput[],
  paths: readonly string[],
): readonly ToolOutput[] {
  const referred = new Set<string>();
  const marked = outputs.toReversed().map((output, back) => {
    const path = paths[outputs.length - 1 - back] ?? '';
    if (output.text.startsWith(UNCHANGED)) referred.add(path);
    return path !== '' && referred.has(path) ? { ...output, isClients: true } : output;
  });
  return marked.toReversed();
}

/**
 * Counts how often a left-out text was read again by its reference, output after output. The count at
 * an output depends on what precedes it alone, so it is the same in every later request.
 */
class ReadCounts {
  /** By the reference under which a text left first. */
  readonly #times = new Map<string, number>();
  /** The answer of a reading is a text of its own, and leaves under a reference of its own. */
  readonly #origins = new Map<string, string>();

  /** `references`: those that the output's call names. How often its text has been read, this time too. */
  count(references: readonly string[], digest: string): number {
    if (references.length === 0) {
      return this.#times.size === 0 ? 0 : (this.#times.get(this.#origin(referenceOf(digest))) ?? 0);
    }
    const origins = [...new Set(references.map((reference) => this.#origin(reference)))];
    let most = 0;
    for (const origin of origins) {
      const times = (this.#times.get(origin) ?? 0) + 1;
      this.#times.set(origin, times);
      most = Math.max(most, times);
    }
    const own = referenceOf(digest);
    const [first = own] = origins.filter((origin) => this.#times.get(origin) === most);
    if (first !== own) this.#origins.set(own, first);
    return most;
  }

  #origin(reference: string): string {
    return this.#origins.get(reference) ?? reference;
  }
}

/**
 * How many calls that the end of the request answers have read one of these left-out outputs again.
 * Each call counts in the one request that brings its answer.
 */
export function countReadings(
  items: readonly Item[],
  elided: readonly ToolOutput[],
  toolsOf: (item: Item) => ItemTools,
): number {
  const references = new Set(elided.map(({ digest }) => referenceOf(digest)));
  // A client may add a note of its own behind the answers.
  const calling = items.findLastIndex(({ role }) => role === 'assistant');
  const answered = new Set(items.slice(calling + 1).flatMap((item) => item.toolResultIds));
  if (answered.size === 0) return 0;
  let count = 0;
  for (let at = calling; (items[at]?.toolCalls.length ?? 0) > 0; at -= 1) {
    const item = items[at];
    const calls = item === undefined ? [] : toolsOf(item).calls;
    count += calls.filter(
      (call) => answered.has(call.id) && call.references.some((one) => references.has(one)),
    ).length;
  }
  return count;
}
