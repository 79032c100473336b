import { createHmac } from 'node:crypto';
import type { Span } from '../bytes/json-scan.ts';

/**
 * Marks the recalled texts (blocks) that svc adds to requests, and removes marked blocks from texts. The mark is
 * computed from a local secret and the block. So with one secret the same block has the same bytes, and a text of the
 * user with `<svc-memory` in it is not removed.
 */

const FENCE = '<svc-memory';
const CLOSE = '</svc-memory>';

// A mark has 37 bits. Guessing one gains little: a marked text is left out of the memory, and in the place of a hook's
// text it stops the recall for that prompt. Lower-case letters take half the tokens of base64.
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const MARK_CHARS = 8;
const MARKED = /<svc-memory id="([a-z]{8})"/g;

/** Bound on the tokens of a mark. */
export const MARK_TOKENS = 9;

// Bounds for the search: on the characters of one block, and on the marks in one text. A block has at most 32,768
// tokens, the largest `recalledTokensMax`. In nearly every text a token has fewer than eight characters.
const BLOCK_CHARS_MAX = 262_144;
const MARKS_MAX = 64;

/** The facts by which svc recognises its own blocks in a text. */
export interface OwnBlocks {
  /** The secret from which marks are computed; '': no mark is recognised. */
  readonly key: string;
  /** Blocks that the ledger has for the request, also from other releases of svc. */
  readonly blocks: readonly string[];
}

export const NO_BLOCKS: OwnBlocks = { key: '', blocks: [] };

/** Derives the key of the marks from the local token, which itself never leaves the machine. */
export function blockKeyOf(localToken: string): string {
  return createHmac('sha256', localToken).update('svc recalled blocks 1').digest('base64url');
}

export function markBlock(block: string, key: string): string {
  return `${FENCE} id="${markOf(block, key)}"${block.slice(FENCE.length)}`;
}

/**
 * Returns the text without svc's own blocks. A space replaces each, so that the texts on both sides cannot join to a
 * new block.
 */
export function withoutOwnBlocks(text: string, { key, blocks }: OwnBlocks): string {
  if (!text.includes(FENCE)) return text;
  let rest = text;
  for (const block of blocks) if (block !== '') rest = rest.replaceAll(block, () => ' ');
  return (key === '' ? rest : withoutMarked(rest, key)).trim();
}

/** The line of a block above its list of earlier sessions. */
export const SESSIONS_LINE = 'Earlier sessions here:';
/** Matches the line above an exchange's quotes: its reference, and its day if that differs from the previous one. */
export const EXCHANGE_HEAD =
  /^(?:\d{4}-\d\d-\d\d )?(m_[a-z2-7]+)(?: \((?:global|files changed since)\))?:$/gm;

/** Says whether a block is more than a list of sessions: it has no such list, or quotes an exchange too. */
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

/** Returns the blocks in the text whose mark was computed with this key. */
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
