/**
 * Finds the tool outputs of a request: the text of each, the call that it answers, and the offsets of its text in the
 * body. So svc can replace only the text, and call and result remain a pair.
 * It finds only outputs that are exactly one text. Others (pictures, several parts, parts with other members) stay as
 * they are.
 */
import { callsOf, pathIn, dialectOf } from '../dialects/dialects.ts';
import { asText, parseJson } from '../bytes/json-fields.ts';
import {
  elementsOf,
  firstMember,
  memberValue,
  nextMember,
  opensList,
  opensObject,
  opensString,
  parseSpan,
  stringPrefixEnd,
  valueEnd,
  type Span,
} from '../bytes/json-scan.ts';
import { isWellFormed } from '../memory-api/canonical.ts';
import { referenceOf, REFERENCES, textDigest } from '../memory/reference.ts';
import { textOf, type Edit } from '../plan/item-edits.ts';
import { toolTextLength } from '../conversation/human-text.ts';
import { Pace, type Steps } from '../bytes/steps.ts';
import { type Gist, gistOf, isStub, stubOf, writeNote } from './stubs.ts';
import { estimateTokens, estimateTextTokens } from '../bytes/tokens.ts';
import type { Item, RequestView } from '../conversation/view.ts';

/** The facts about an output that depend only on its item. */
interface ItemOutput {
  readonly callId: string;
  /** The bytes that a stub replaces: those of `text` only, inside the quotes of a JSON string. */
  readonly content: Span;
  /** The tool's text. Reminders that the client appended do not belong to it, and stay in the request. */
  readonly text: string;
  /** The textDigest() of the text, by which the memory finds the output. */
  readonly digest: string;
  /** Estimated tokens of the content. */
  readonly tokens: number;
  /** The facts about the text that a stub states. */
  readonly gist: Gist;
  /** True if the memory can store the text unchanged; secrets are not looked for yet. See isStorable(). */
  readonly isStorable: boolean;
  /** True if the client wrote this text instead of the tool's output; see CLIENT_STUBS. */
  readonly isClientStub: boolean;
}

interface ItemCall {
  readonly id: string;
  /** The tool's name; '' if the item has no call with this id. */
  readonly tool: string;
  /** The file that the call names; '' if it names none. */
  readonly path: string;
  /** The references (`m_…`) in the call's arguments: with these the model reads left-out outputs again. */
  readonly references: readonly string[];
}

/** The calls and outputs of one item. They depend only on its bytes, so they can be cached by item. */
interface ItemTools {
  readonly calls: readonly ItemCall[];
  readonly outputs: readonly ItemOutput[];
}

export interface ToolOutput extends ItemOutput {
  /** The beginning of the digest. Batches in the ledger name the output by it. */
  readonly mark: string;
  /** The index of its item. */
  readonly item: number;
  /** The tool's name; '' if the request does not contain the call. */
  readonly tool: string;
  /** How often the model has read the text again by its reference, up to this output; see ReadCounts. */
  readonly timesRead: number;
  /** True if the client itself replaced the output, or later refers to it instead of repeating it (see UNCHANGED). */
  readonly isClients: boolean;
}

const NO_TOOLS: ItemTools = { calls: [], outputs: [] };

/**
 * Cached by item, because the next request of the conversation has the same items. Reading an output of 10 kB takes
 * 250 us.
 */
const TOOLS = new WeakMap<Item, ItemTools>();

export function itemTools(view: RequestView, item: Item): ItemTools {
  const known = TOOLS.get(item);
  if (known !== undefined) return known;
  const tools = readItemTools(view, item);
  TOOLS.set(item, tools);
  return tools;
}

/** Reads the items before `end` into the cache of itemTools() in steps, because a long history takes a second. */
export function* itemToolsSteps(view: RequestView, end = view.items.length): Steps<void> {
  const pace = new Pace();
  for (const item of view.items.slice(0, end)) {
    if (!hasTools(item) || TOOLS.has(item)) continue;
    itemTools(view, item);
    if (pace.isDue(item.end - item.start)) yield;
  }
}

function readItemTools(view: RequestView, item: Item): ItemTools {
  if (view.isTextInput || !opensObject(view.bytes, item.start)) return NO_TOOLS;
  const callsTools = item.toolCalls.length > 0;
  // A tool that the provider ran has call and result in one assistant item; svc does not change it.
  const answers = item.toolResultIds.length > 0 && item.role !== 'assistant';
  if (!callsTools && !answers) return NO_TOOLS;
  return {
    calls: callsTools
      ? callsOf(view, item).map(({ id, tool, fields, text }) => {
          return { id, tool, path: pathIn(fields), references: text.match(REFERENCES) ?? [] };
        })
      : [],
    outputs: answers ? readOutputs(view, item) : [],
  };
}

/** The beginning of the text that Claude Code writes instead of a file if an earlier output has the same file. */
const UNCHANGED = 'File unchanged since last read';

/** Beginnings of the texts that clients write instead of an output. */
const CLIENT_STUBS: readonly string[] = [
  UNCHANGED,
  '[Old tool result content cleared',
  'Old tool result content cleared',
];

function readOutputs(view: RequestView, item: Item): readonly ItemOutput[] {
  const { bytes, dialect } = view;
  const places = dialectOf(dialect).resultPlaces(bytes, item);
  return places.flatMap(({ open, idName, textName }) => {
    const id = memberValue(bytes, open, idName);
    const value = memberValue(bytes, open, textName);
    const text = value === undefined ? undefined : onlyText(bytes, value);
    const callId = id === undefined ? '' : asText(parseSpan(bytes, id));
    if (text === undefined || callId === '') return [];
    if (text.end - text.start > WRITTEN_BYTES_MAX) return [];
    const whole = asText(parseSpan(bytes, text));
    const said = whole.slice(0, toolTextLength(whole));
    const content = bytesOf(bytes, text, said, said.length === whole.length);
    if (content === undefined) return [];
    const digest = textDigest('tool', said);
    const tokens = estimateTokens(bytes, content.start, content.end);
    const isClientStub = CLIENT_STUBS.some((start) => said.startsWith(start));
    const output = { callId, content, text: said, digest, tokens, isClientStub };
    return [{ ...output, gist: gistOf(said), isStorable: isStorable(said) }];
  });
}

/** Returns the span of `said`, the beginning of the string at `text`; undefined if its bytes decode to another text. */
function bytesOf(bytes: Buffer, text: Span, said: string, isWhole: boolean): Span | undefined {
  const start = text.start + 1;
  if (isWhole) return { start, end: text.end - 1 };
  const end = stringPrefixEnd(bytes, text.start, said.length);
  // Invalid UTF-8 is decoded to other characters, whose byte length differs.
  const written = parseJson(`"${bytes.toString('utf8', start, end)}"`);
  return written === said ? { start, end } : undefined;
}

// Longest output, in characters, that may be left out. Clients cut outputs at 30,000 to 100,000 characters. Searching a
// longer one for secrets would block all streams too long.
const TEXT_CHARS_MAX = 128 * 1024;

// Longest output in bytes of JSON, where an escaped character has at most six bytes. A longer output is not decoded.
const WRITTEN_BYTES_MAX = 6 * TEXT_CHARS_MAX + 2;

/** Says whether a memory can store and prove a text unchanged. It does not look for secrets, which takes longer. */
export function isStorable(text: string): boolean {
  if (text.length > TEXT_CHARS_MAX || isStub(text)) return false;
  return !/<private>/i.test(text) && isWellFormed(text);
}

/** Returns the span of the content if it is a string, or of the text of a list's only part; else undefined. */
function onlyText(bytes: Buffer, content: Span): Span | undefined {
  if (opensString(bytes, content.start)) return content;
  if (!opensList(bytes, content.start)) return undefined;
  const [part, ...others] = elementsOf(bytes, content);
  if (part === undefined || others.length > 0) return undefined;
  const text = textOf(bytes, { start: part, end: content.end });
  return text !== undefined && countMembers(bytes, part) === 2 ? text : undefined;
}

function countMembers(bytes: Buffer, open: number): number {
  let count = 0;
  let member = firstMember(bytes, open);
  while (member !== undefined) {
    count += 1;
    member = nextMember(bytes, valueEnd(bytes, member.valueStart));
  }
  return count;
}

// Characters of `mark`. With 72 bits two different outputs of a conversation hardly have the same mark.
const MARK_CHARS = 12;

/** Returns the outputs of a request that are one text each, in order. */
export function outputsOf(view: RequestView, items = view.items): readonly ToolOutput[] {
  const calls = new Map<string, ItemCall>();
  const counts = new ReadCounts();
  const listed: ToolOutput[] = [];
  // For each output of `listed`, the file that its call names.
  const paths: string[] = [];
  let isReferring = false;
  for (const [at, item] of items.entries()) {
    if (!hasTools(item)) continue;
    const tools = itemTools(view, item);
    for (const call of tools.calls) calls.set(call.id, call);
    for (const output of tools.outputs) {
      const call = calls.get(output.callId);
      // Name every member, because V8 takes some 60 times as long for object spread of thousands of outputs.
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
 * Returns all outputs except those of the newest item. The model has not seen these yet, so they are never left out.
 * svc reads them after it has sent the request, unless one of them refers to an earlier output.
 */
export function seenOutputsOf(view: RequestView): readonly ToolOutput[] {
  const { items, bytes } = view;
  const newest = items.at(-1);
  if (newest === undefined) return [];
  // If the newest item refers to an earlier output, read it too.
  const isReferring = bytes.subarray(newest.start, newest.end).includes(UNCHANGED);
  if (!isReferring) return outputsOf(view, items.slice(0, -1));
  return outputsOf(view).filter(({ item }) => item < items.length - 1);
}

function hasTools({ toolCalls, toolResultIds }: Item): boolean {
  return toolCalls.length > 0 || toolResultIds.length > 0;
}

/** Marks the outputs to which a later UNCHANGED refers. They must stay, because the model finds the file in them. */
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
 * Counts how often left-out texts were read again by their references. The count at an output depends only on the items
 * up to it, so it is the same in every later request.
 */
class ReadCounts {
  /** The counts, by the reference with which a text was first left out. */
  readonly #times = new Map<string, number>();
  /** For the reference of an output that repeats a left-out text: the reference with which that text first left. */
  readonly #origins = new Map<string, string>();

  /** Returns how often an output's text was read again, this time included. `references`: those in its call. */
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
 * Counts the calls with which the model read one of these left-out outputs again. Only the newest round counts, so that
 * each call counts once: in the request that brings its result.
 */
export function countReadings(view: RequestView, elided: readonly ToolOutput[]): number {
  const { items } = view;
  const references = new Set(elided.map(({ digest }) => referenceOf(digest)));
  // Begin at the newest item of the assistant: a client may add a note of its own after the results.
  const calling = items.findLastIndex(({ role }) => role === 'assistant');
  const answered = new Set(items.slice(calling + 1).flatMap((item) => item.toolResultIds));
  if (answered.size === 0) return 0;
  let count = 0;
  for (let at = calling; (items[at]?.toolCalls.length ?? 0) > 0; at -= 1) {
    const item = items[at];
    const calls = item === undefined ? [] : itemTools(view, item).calls;
    count += calls.filter(
      (call) => answered.has(call.id) && call.references.some((one) => references.has(one)),
    ).length;
  }
  return count;
}

/** A tool output that is left out is replaced by a stub: one line, which says what was left out (see stubs.ts). */

export interface Replacement {
  readonly output: ToolOutput;
  readonly text: string;
  /** The escaped text for the inside of a JSON string. */
  readonly bytes: Uint8Array;
  /** Estimated tokens by which the request is shorter. */
  readonly saved: number;
}

/** Where the model can read left-out texts again, besides with svc's own commands. The first stub names it. */
export interface NoteStyle {
  /** The folder with the left-out texts as files; undefined if there is none. */
  readonly outputFolder: string | undefined;
  /** The URL, without the reference, at which a service returns texts; undefined on a user's own machine. */
  readonly objectsUrl?: string | undefined;
}

/** Returns the tokens that leaving out this output saves in every request. */
export function savedTokens(output: ToolOutput): number {
  return Math.max(0, output.tokens - stubOf(output).tokens);
}

/** Returns the stubs in the order of the body. The first one also tells the model how to read left-out texts. */
export function replacementsOf(
  elided: readonly ToolOutput[],
  { outputFolder, objectsUrl }: NoteStyle,
): readonly Replacement[] {
  const inOrder = elided.toSorted((one, other) => one.content.start - other.content.start);
  return inOrder.map((output, at) => {
    const stub = stubOf(output);
    if (at > 0) return { output, text: stub.text, bytes: stub.bytes, saved: savedTokens(output) };
    const text = `${stub.text}${writeNote(outputFolder, objectsUrl)}`;
    const bytes = Buffer.from(JSON.stringify(text).slice(1, -1));
    return { output, text, bytes, saved: Math.max(0, output.tokens - estimateTextTokens(text)) };
  });
}

/** Returns the edits that replace the text of each output by its stub. */
export function elisionEdits(replacements: readonly Replacement[]): readonly Edit[] {
  return replacements.map(({ output: { content }, bytes }) => {
    return { start: content.start, end: content.end, bytes };
  });
}
