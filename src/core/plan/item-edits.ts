/**
 * Finds the edits that add a block of text to an item. The item's own bytes never change.
 * - A block is appended to the item's string, or it is a new part at the end of the item's list. A part before a tool
 *   result would make the provider refuse the message.
 * - A part after a tool result would make the model end its answer early (Anthropic, "Handling stop reasons", read on
 *   24 November 2026). So such a block is appended to the result's text.
 * - A new block does not change the form: a string stays a string. A block that was sent before is sent in the same
 *   form again, even if the client has changed the message's form. Claude Code turns a list of one part into a string
 *   when it moves its cache mark. Then svc makes the string a list again, and the block is its second part as before.
 */
import { Buffer } from 'node:buffer';
import {
  elementsOf,
  memberValue,
  opensList,
  opensObject,
  opensString,
  parseSpan,
  valueEnd,
  type Span,
} from '../bytes/json-scan.ts';
import { dialectOf } from '../dialects/dialects.ts';
import type { Item, RequestView } from '../conversation/view.ts';

/** The types of a content part that is a text. */
export const TEXT_TYPES: ReadonlySet<unknown> = new Set(['text', 'input_text', 'output_text']);

/** The form of a block. 'text': appended to the item's string. 'part': a content part of its own. */
export type ContentForm = 'text' | 'part';

interface Insertion {
  readonly block: string;
  /** The form in which the block was first sent. Later requests repeat that form. */
  readonly form: ContentForm;
}

/** Returns the form that suits the item as the client wrote it; undefined if the item takes no block. */
export function contentForm(view: RequestView, item: Item): ContentForm | undefined {
  if (view.isTextInput) return 'text';
  if (endsWithResult(view, item)) return takesBlock(view, item) ? 'text' : undefined;
  const content = contentOf(view.bytes, item);
  if (content === undefined) return undefined;
  if (opensString(view.bytes, content.start)) return 'text';
  return opensList(view.bytes, content.start) ? 'part' : undefined;
}

/** Returns the edits that add the block at the end of the item; none if the item takes no block. */
export function insertBlock(view: RequestView, item: Item, insertion: Insertion): readonly Edit[] {
  const { bytes } = view;
  if (view.isTextInput) return [appendText(item, insertion.block)];
  if (insertion.form === 'text' && item.toolResultIds.length > 0) {
    const result = resultText(view, item);
    return result === undefined ? [] : [appendText(result, insertion.block)];
  }
  const content = contentOf(bytes, item);
  if (content === undefined) return [];
  const part = `${partOpening(view)}${JSON.stringify(insertion.block)}}`;
  if (opensString(bytes, content.start)) {
    return insertion.form === 'text'
      ? [appendText(content, insertion.block)]
      : [insertAt(content.start, `[${partOpening(view)}`), insertAt(content.end, `},${part}]`)];
  }
  if (!opensList(bytes, content.start)) return [];
  const last = lastElement(bytes, content);
  const text = insertion.form === 'text' && last !== undefined ? textOf(bytes, last) : undefined;
  if (text !== undefined) return [appendText(text, insertion.block)];
  return last === undefined
    ? [insertAt(content.start + 1, part)]
    : [insertAt(last.end, `,${part}`)];
}

/** Says whether a block can be appended to the text of the item's last tool result. */
export function takesBlock(view: RequestView, item: Item): boolean {
  const text = resultText(view, item);
  const said = text === undefined ? undefined : parseSpan(view.bytes, text);
  return typeof said === 'string' && !JSON_TEXT.test(said);
}

/** Matches what may be JSON, or lines of it. svc adds no block to such a text: a program that parses it would fail. */
const JSON_TEXT = /^\s*[[{"][^]*[\]}"]\s*$/;

/**
 * Returns the text of the item's last tool result: its string, or its last text part. Undefined if it has none, or if
 * one of its parts is not plain; see isPlainPart.
 */
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

/** Says whether a part is a picture or a text without citations. A result with another part gets no block. */
function isPlainPart(bytes: Buffer, part: Span): boolean {
  if (!opensObject(bytes, part.start)) return false;
  const isCited = memberValue(bytes, part.start, 'citations') !== undefined;
  return PLAIN_PARTS.has(typeOf(bytes, part)) && !isCited;
}

const PLAIN_PARTS: ReadonlySet<unknown> = new Set([
  ...TEXT_TYPES,
  'image',
  'input_image',
  'image_url',
]);

/** Says whether the item is a tool result, or a list of parts that ends with one. */
function endsWithResult({ bytes, dialect }: RequestView, item: Item): boolean {
  if (item.toolResultIds.length === 0 || item.role === 'assistant') return false;
  const place = dialectOf(dialect).resultPlaces(bytes, item).at(-1);
  if (place === undefined || place.open === item.start) return place !== undefined;
  const content = contentOf(bytes, item);
  return content !== undefined && lastElement(bytes, content)?.start === place.open;
}

/** Returns the beginning of a text part. Clients write the type before the text. */
function partOpening(view: RequestView): string {
  return `{"type":"${dialectOf(view.dialect).textPartType}","text":`;
}

/** Appends a block to a string, after a blank line. */
function appendText(text: Span, block: string): Edit {
  return insertAt(text.end - 1, JSON.stringify(`\n\n${block}`).slice(1, -1));
}

export function insertAt(at: number, json: string): Edit {
  return { start: at, end: at, bytes: Buffer.from(json) };
}

function contentOf(bytes: Buffer, item: Item): Span | undefined {
  return opensObject(bytes, item.start) ? memberValue(bytes, item.start, 'content') : undefined;
}

/** Returns the string of a text part; undefined for other parts. */
export function textOf(bytes: Buffer, part: Span): Span | undefined {
  if (!opensObject(bytes, part.start)) return undefined;
  const text = memberValue(bytes, part.start, 'text');
  if (text === undefined || !opensString(bytes, text.start)) return undefined;
  return TEXT_TYPES.has(typeOf(bytes, part)) ? text : undefined;
}

function typeOf(bytes: Buffer, part: Span): unknown {
  const type = memberValue(bytes, part.start, 'type');
  return type === undefined ? undefined : parseSpan(bytes, type);
}

function lastElement(bytes: Buffer, list: Span): Span | undefined {
  const start = elementsOf(bytes, list).at(-1);
  return start === undefined ? undefined : { start, end: valueEnd(bytes, start) };
}

/** Replaces a span by `bytes`. An edit with an empty span inserts, and one with empty bytes deletes. */
export interface Edit extends Span {
  readonly bytes: Uint8Array;
}

/**
 * Applies edits to a body and returns it as pieces, in order, none empty. It does not copy the bytes outside the edits:
 * the pieces are views into the body, with the new bytes in between. Without edits it returns the body itself. Edits
 * may come in any order. Insertions at the same offset stay in the given order. Throws RangeError if edits overlap or
 * lie outside the body.
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
