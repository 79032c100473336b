import { Buffer } from 'node:buffer';
import type { TextRole } from '../memory/reference.ts';
import { closed, eitherOf, type Infer, listOf, oneOf, text } from './shape.ts';

/**
 * The content that a memory service stores, digests and proves: visible text only. The shapes forbid other members, so
 * a record has no member for reasoning or tool arguments.
 */

/** Bound on the canonical bytes of one record. */
export const RECORD_BYTES_MAX = 1_048_576;

const MESSAGES_MAX = 64;
const TEXTS_MAX = 256;
const NOTE_TEXTS_MAX = 16;

const exchangeRecord = closed({
  k: oneOf('exchange'),
  v: oneOf(1),
  m: listOf(
    closed({ r: oneOf('user', 'assistant'), t: listOf(text(), { min: 1, max: TEXTS_MAX }) }),
    { min: 1, max: MESSAGES_MAX },
  ),
});

const toolOutputRecord = closed({
  k: oneOf('tool_output'),
  v: oneOf(1),
  t: listOf(text(), { min: 1, max: TEXTS_MAX }),
});

const noteRecord = closed({
  k: oneOf('note'),
  v: oneOf(1),
  t: listOf(text(), { min: 1, max: NOTE_TEXTS_MAX }),
});

export const contentRecord = eitherOf(exchangeRecord, toolOutputRecord, noteRecord);

export type ExchangeRecord = Infer<typeof exchangeRecord>;
export type ToolOutputRecord = Infer<typeof toolOutputRecord>;
export type NoteRecord = Infer<typeof noteRecord>;
export type ContentRecord = ExchangeRecord | ToolOutputRecord | NoteRecord;

/** Returns the text and the speaker of a record with one text; undefined if it has several texts. */
export function textOfRecord(record: ContentRecord): { role: TextRole; said: string } | undefined {
  if (record.k === 'exchange') {
    const [message, ...others] = record.m;
    const [said, ...more] = message?.t ?? [];
    if (message === undefined || said === undefined || others.length + more.length > 0) {
      return undefined;
    }
    return { role: message.r, said };
  }
  const [said, ...more] = record.t;
  if (said === undefined || more.length > 0) return undefined;
  return { role: record.k === 'tool_output' ? 'tool' : 'user', said };
}

/** Parses the canonical bytes of a stored record. They are not checked again, because only checked bytes are stored. */
export function recordOfBytes(bytes: Uint8Array): ContentRecord {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only checked records are stored.
  return JSON.parse(Buffer.from(bytes).toString('utf8')) as ContentRecord;
}
