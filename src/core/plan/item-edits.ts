/**
 * Says which bytes to insert so that an item carries one more block of text.
 *
 * The item's own bytes are never touched. A block is appended inside its string or added as one
 * more part at the end of its list. It is always at the end, because a part before a tool result
 * makes the provider refuse the message. A part behind a tool result makes the model end its answer
 * early (Anthropic, "Handling stop reasons", read on 24 November 2026), so a block that goes there is appended to the
 * text of the result.
 *
 * A new block never changes the form: a string stays a string. A block that went out before goes
 * back in its first form, whichever form the message has now. Claude Code turns a list of one part
 * into a string when its cache mark leaves it. To the provider that string is the same part, and
 * block and part must follow each other as in the request that it cached. So the string is wrapped.
 */
import { Buffer } from 'node:buffer';
import {
  elementsOf,
  firstElement,
  memberValue,
  nextElement,
  opensList,
  opensObject,
  opensString,
  parseJson,
  valueEnd,
  type Span,
} from '../bytes/json-scan.ts';
import { dialectOf } from '../dialects/dialects.ts';
import type { Item, RequestView } from '../conversation/view.ts';

/** 'text': inside a string that is there. 'part': a content part of its own. */
export type ContentForm = 'text' | 'part';

interface Insertion {
  readonly block: string;
  /** The form in which the block first went to the provider: a later request repeats it. */
  readonly form: ContentForm;
}

/** The form that fits the item as the client wrote it; undefined when it takes no block. */
export function contentForm(view: RequestView, item: Item): ContentForm | undefined {
  if (view.isTextInput) return 'text';
  if (endsWithResult(view, item)) return takesBlock(view, item) ? 'text' : undefined;
  const content = contentOf(view.bytes, item);
  if (content === undefined) return undefined;
  if (opensString(view.bytes, content.start)) return 'text';
  return opensList(view.bytes, content.start) ? 'part' : undefined;
}

/** The edits that add the block at the end of the item; no edits when the item takes no block. */
export function insertBlock(view: RequestView, item: Item, insertion: Insertion): readonly Edit[] {
  const { bytes } = view;
  if (view.isTextInput) return [appendText(item, insertion.block)];
  if (insertion.form === 'text' && item.toolResultIds.length > 0) {
    const result = resultText(view, item);
    return result === undefined ? [] : [appendText(result, insertion.block)];
  }
  const content = contentOf(bytes, item);
  if (content === undefined) return [];
  const part = partWith(view, insertion.block);
  if (opensString(bytes, content.start)) {
    return insertion.form === 'text'
      ? [appendText(content, insertion.block)]
      : wrapText(content, { opening: `[${partOpening(view)}`, closing: `},${part}]` });
  }
  if (!opensList(bytes, content.start)) return [];
  const last = lastElement(bytes, content);
  const text = insertion.form === 'text' && last !== undefined ? textOf(bytes, last) : undefined;
  if (text !== undefined) return [appendText(text, insertion.block)];
  return last === undefined
    ? [insertAt(content.start + 1, part)]
    : [insertAt(last.end, `,${part}`)];
}

/** Whether the last tool result of the item has a text at whose end a block may be. */
export function takesBlock(view: RequestView, item: Item): boolean {
  const text = resultText(view, item);
  const said = text === undefined ? undefined : parseJson(view.bytes, text)?.value;
  return typeof said === 'string' && !JSON_TEXT.test(said);
}

/** Also lines of JSON: what reads them would fail at a block. */
const JSON_TEXT = /^\s*[[{"][^]*[\]}"]\s*$/;

/** The text of the item's last tool result: its string, or its last text part. Undefined where it has none. */
function resultText({ bytes, dialect }: RequestView, item: Item): Span | undefined {
  if (item.role === 'assistant' || item.toolResultIds.length === 0) return undefined;
  const place = dialectOf(dialect).resultPlaces(bytes, item).at(-1);
  if (place === undefined || !opensObject(bytes, place.open)) return undefined;
  const output = memberValue(bytes, place.open, place.textName);
  if (output === undefined) return undefined;
  if (opensString(bytes, output.start)) return output;
  if (!opensList(bytes, output.start)) return undefined;
  let text: Span | undefined;
  for (const start of elementsOf(bytes, output)) {
    const part = { start, end: valueEnd(bytes, start) };
    if (!isPlainPart(bytes, part)) return undefined;
    text = textOf(bytes, part) ?? text;
  }
  return text;
}

/** A text or a picture. References to tools, search results and cited texts are the provider's to read. */
function isPlainPart(bytes: Buffer, part: Span): boolean {
  if (!opensObject(bytes, part.start)) return false;
  const type = memberValue(bytes, part.start, 'type');
  const name = type === undefined ? undefined : parseJson(bytes, type)?.value;
  const isCited = memberValue(bytes, part.start, 'citations') !== undefined;
  return PLAIN_PARTS.has(name) && !isCited;
}

const PLAIN_PARTS: ReadonlySet<unknown> = new Set([
  'text',
  'input_text',
  'output_text',
  'image',
  'input_image',
  'image_url',
]);

/** The item is a tool's result, or a list of parts that ends with one. */
function endsWithResult({ bytes, dialect }: RequestView, item: Item): boolean {
  if (item.toolResultIds.length === 0 || item.role === 'assistant') return false;
  const place = dialectOf(dialect).resultPlaces(bytes, item).at(-1);
  if (place === undefined || place.open === item.start) return place !== undefined;
  const content = contentOf(bytes, item);
  return content !== undefined && lastElement(bytes, content)?.start === place.open;
}

/** A part is written as clients write it: the type first, then the text. */
function partOpening(view: RequestView): string {
  return `{"type":"${dialectOf(view.dialect).textPartType}","text":`;
}

function partWith(view: RequestView, block: string): string {
  return `${partOpening(view)}${JSON.stringify(block)}}`;
}

/** Goes before the closing quote, after a blank line. */
function appendText(text: Span, block: string): Edit {
  return insertAt(text.end - 1, JSON.stringify(`\n\n${block}`).slice(1, -1));
}

function wrapText(text: Span, around: { opening: string; closing: string }): readonly Edit[] {
  return [insertAt(text.start, around.opening), insertAt(text.end, around.closing)];
}

function insertAt(at: number, json: string): Edit {
  return { start: at, end: at, bytes: Buffer.from(json) };
}

function contentOf(bytes: Buffer, item: Item): Span | undefined {
  return opensObject(bytes, item.start) ? memberValue(bytes, item.start, 'content') : undefined;
}

/** The string that a text part says; undefined for every other kind of part. */
function textOf(bytes: Buffer, part: Span): Span | undefined {
  if (!opensObject(bytes, part.start)) return undefined;
  const type = memberValue(bytes, part.start, 'type');
  const text = memberValue(bytes, part.start, 'text');
  if (type === undefined || text === undefined || !opensString(bytes, text.start)) return undefined;
  const name = parseJson(bytes, type)?.value;
  return name === 'text' || name === 'input_text' || name === 'output_text' ? text : undefined;
}

function lastElement(bytes: Buffer, list: Span): Span | undefined {
  let last: Span | undefined;
  let start = firstElement(bytes, list.start);
  while (start !== -1) {
    last = { start, end: valueEnd(bytes, start) };
    start = nextElement(bytes, last.end);
  }
  return last;
}

/** Puts `bytes` in the place of a span. An empty span inserts, empty bytes cut. */
export interface Edit extends Span {
  readonly bytes: Uint8Array;
}

/**
 * Changes a body by cutting and inserting at byte offsets, and returns it as pieces, in order, none of them empty.
 * Bytes outside the edits are never copied or rebuilt: the pieces are views into the very same body, with the new
 * bytes in between. Without edits it is the body itself. Edits may come in any order; those that insert at the same
 * place stay in the order given. Throws RangeError when edits overlap or lie outside the body: the plan is wrong
 * then.
 */
export function applyEdits(body: Buffer, edits: readonly Edit[]): readonly Uint8Array[] {
  if (edits.length === 0) return [body];
  const ordered = edits.toSorted((a, b) => a.start - b.start || a.end - b.end);
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const edit of ordered) {
    if (edit.start < at) throw new RangeError('Two edits overlap, or one starts before the body.');
    if (edit.end < edit.start || edit.end > body.length) {
      throw new RangeError('An edit ends before it starts, or outside the body.');
    }
    pieces.push(body.subarray(at, edit.start), edit.bytes);
    at = edit.end;
  }
  pieces.push(body.subarray(at));
  return pieces.filter((piece) => piece.length > 0);
}
