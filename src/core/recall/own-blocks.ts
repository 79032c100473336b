import { createHmac } from 'node:crypto';
import type { Span } from '../bytes/json-scan.ts';

/**
 * Marks a recalled block so that svc recognises its own, and takes such blocks out of a text. The
 * mark is made with a local secret and from the block alone. So the same block always has the same
 * bytes, and a person may write `<svc-memory` without losing a word.
 */

const FENCE = '<svc-memory';
const CLOSE = '</svc-memory>';

// 37 bits: guessing one gains nothing, since a marked text is only left out of a memory. Small
// letters alone take half the tokens of a mark in base64.
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const MARK_CHARS = 8;
const MARKED = /<svc-memory id="([a-z]{8})"/g;

/** The most tokens that the mark takes. */
export const MARK_TOKENS = 9;

// Twice the longest block that settings allow; and more blocks than a text can repeat by chance.
const BLOCK_CHARS_MAX = 65_536;
const MARKS_MAX = 64;

/** How svc knows its own blocks in a text. */
export interface OwnBlocks {
  /** The secret of the marks; '' knows none. */
  readonly key: string;
  /** Blocks that the ledger holds for the request, whatever release wrote them. */
  readonly blocks: readonly string[];
}

export const NO_BLOCKS: OwnBlocks = { key: '', blocks: [] };

/** A key derived from the local token, which itself never leaves the machine. */
export function blockKeyOf(localToken: string): string {
  return createHmac('sha256', localToken).update('svc recalled blocks 1').digest('base64url');
}

export function markBlock(block: string, key: string): string {
  return `${FENCE} id="${markOf(block, key)}"${block.slice(FENCE.length)}`;
}

/**
 * The text without svc's own blocks. A blank stays, so that what is left on both sides cannot join
 * to a new block.
 */
export function withoutOwnBlocks(text: string, { key, blocks }: OwnBlocks): string {
  if (!text.includes(FENCE)) return text;
  let rest = text;
  for (const block of blocks) if (block !== '') rest = rest.replaceAll(block, () => ' ');
  return (key === '' ? rest : withoutMarked(rest, key)).trim();
}

/** The line of a block in front of the earlier sessions that it names. */
export const SESSIONS_LINE = 'Earlier sessions here:';
/**
 * The head of the quotes of an exchange: its reference, and its day if that differs from the
 * previous one.
 */
export const EXCHANGE_HEAD =
  /^(?:\d{4}-\d\d-\d\d )?(m_[a-z2-7]+)(?: \((?:global|files changed since)\))?:$/gm;

/** Whether a block says what earlier exchanges said; a brief alone only names sessions. */
export function tellsExchanges(block: string): boolean {
  return !block.includes(`\n${SESSIONS_LINE}\n`) || block.search(EXCHANGE_HEAD) !== -1;
}

function withoutMarked(text: string, key: string): string {
  const kept: string[] = [];
  let from = 0;
  for (const { start, end } of markedIn(text, key)) {
    kept.push(text.slice(from, start));
    from = end;
  }
  kept.push(text.slice(from));
  return kept.join(' ');
}

/** The blocks in the text that have a mark of this key. */
export function markedBlocks(text: string, key: string): readonly string[] {
  return markedIn(text, key).map(({ start, end }) => text.slice(start, end));
}

function markedIn(text: string, key: string): readonly Span[] {
  const found: Span[] = [];
  let from = 0;
  let count = 0;
  for (const { 0: opening, 1: mark = '', index } of text.matchAll(MARKED)) {
    if (index < from) continue;
    count += 1;
    if (count > MARKS_MAX) break;
    const region = text.slice(index, index + BLOCK_CHARS_MAX);
    const close = region.indexOf(CLOSE);
    if (close === -1) continue;
    const block = FENCE + region.slice(opening.length, close + CLOSE.length);
    if (markOf(block, key) !== mark) continue;
    from = index + close + CLOSE.length;
    found.push({ start: index, end: from });
  }
  return found;
}

function markOf(block: string, key: string): string {
  const code = createHmac('sha256', key).update(block).digest().subarray(0, MARK_CHARS);
  return Array.from(code, (byte) => LETTERS[byte % LETTERS.length]).join('');
}
