/**
 * Says how many tokens the pictures, documents and sounds of an item are. Providers bill them by their
 * own rules, so the length of their base64 says nothing: a screenshot of 190,000 characters is 1,600 tokens.
 */
import type { Buffer } from 'node:buffer';
import { asList, asRecord, asText, type Fields } from '../bytes/json-fields.ts';
import { pictureSize } from '../bytes/picture-size.ts';
import type { Dialect } from '../conversation/dialect.ts';
import { dialectOf } from '../dialects/dialects.ts';

export interface Media {
  /** Its bytes in base64, as in the body; '' if the body only names it. */
  readonly payload: string;
  readonly tokens: number;
}

const NONE: readonly Media[] = [];

// A PDF page is 1,500 to 3,000 tokens by Anthropic's guide. Their number is compressed in the
// file, so each document counts as a short one of three pages.
const DOCUMENT_TOKENS = 6_000;
// OpenAI bills a token for each 100 ms of sound. How long it lasts is not read: a minute.
const AUDIO_TOKENS = 600;
// Qwen and others sample pictures from it: about three of the largest.
const VIDEO_TOKENS = 4_800;

/** The parts of an item beside text, in the order of the body. `value` is its parsed JSON. */
export function mediaIn(dialect: Dialect, value: unknown): readonly Media[] {
  const item = asRecord(value);
  const made = item['type'] === 'image_generation_call' ? asText(item['result']) : '';
  if (made !== '') return [{ payload: made, tokens: pictureTokens(dialect, made, '') }];
  const { content, output } = item;
  const parts = Array.isArray(content) ? content : Array.isArray(output) ? output : [output];
  return mediaOf(dialect, parts);
}

function mediaOf(dialect: Dialect, parts: readonly unknown[]): readonly Media[] {
  let found: Media[] | undefined;
  for (const value of parts) {
    const media = mediaOfPart(dialect, asRecord(value));
    if (media.length > 0) (found ??= []).push(...media);
  }
  return found ?? NONE;
}

function mediaOfPart(dialect: Dialect, part: Fields): readonly Media[] {
  switch (part['type']) {
    case 'tool_result':
      return mediaOf(dialect, asList(part['content']));
    case 'image':
    case 'image_url':
    case 'input_image':
    case 'computer_screenshot': {
      const { payload, detail } = pictureOf(part);
      return [{ payload, tokens: pictureTokens(dialect, payload, detail) }];
    }
    case 'document':
      return documentOf(dialect, part);
    case 'file':
    case 'input_file': {
      const data = asRecord(part['file'])['file_data'] ?? part['file_data'];
      return [{ payload: base64In(asText(data)), tokens: DOCUMENT_TOKENS }];
    }
    case 'input_audio': {
      const data = asRecord(part['input_audio'])['data'] ?? part['data'];
      return [{ payload: base64In(asText(data)), tokens: AUDIO_TOKENS }];
    }
    case 'video_url': {
      const url = asText(asRecord(part['video_url'])['url']);
      return [{ payload: base64In(url), tokens: VIDEO_TOKENS }];
    }
  }
  return NONE;
}

/** A document of plain text is text, and one of parts is its parts. */
function documentOf(dialect: Dialect, part: Fields): readonly Media[] {
  const source = asRecord(part['source']);
  if (source['type'] === 'text') return NONE;
  if (source['type'] === 'content') return mediaOf(dialect, asList(source['content']));
  return [{ payload: base64In(asText(source['data'])), tokens: DOCUMENT_TOKENS }];
}

function pictureOf(part: Fields): { readonly payload: string; readonly detail: string } {
  const image = part['image_url'];
  const { url, detail } = asRecord(image);
  const data = asRecord(part['source'])['data'] ?? url ?? image;
  return { payload: base64In(asText(data)), detail: asText(detail ?? part['detail']) };
}

const BASE64_MARK = ';base64,';
// A data URL names its type first: longer than this is no type.
const URL_HEAD_CHARS = 256;

/** The base64 of a data URL, or of a bare payload; '' for the address of something elsewhere. */
function base64In(text: string): string {
  if (!text.startsWith('data:')) return text.includes('://') ? '' : text;
  const mark = text.slice(0, URL_HEAD_CHARS).indexOf(BASE64_MARK);
  return mark === -1 ? '' : text.slice(mark + BASE64_MARK.length);
}

function pictureTokens(dialect: Dialect, payload: string, detail: string): number {
  const size = payload === '' ? undefined : pictureSize(payload);
  return dialectOf(dialect).pictureTokens(size, detail);
}

// Long enough not to occur elsewhere in an item by chance.
const HEAD_CHARS = 48;
const QUOTE = '"';

/**
 * The place of a payload in these bytes at or after `from`; undefined for a short one, or where it
 * is written otherwise.
 */
export function findPayload(
  bytes: Buffer,
  payload: string,
  from: number,
): { readonly start: number; readonly end: number } | undefined {
  if (payload.length < HEAD_CHARS) return undefined;
  const head = payload.slice(0, HEAD_CHARS);
  const plain = bytes.indexOf(head, from, 'latin1');
  // Some clients escape each slash.
  const start = plain === -1 ? bytes.indexOf(head.replaceAll('/', String.raw`\/`), from) : plain;
  const end = start === -1 ? -1 : bytes.indexOf(QUOTE, start);
  return end === -1 ? undefined : { start, end };
}
