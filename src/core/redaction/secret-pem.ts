import { endOfMatch } from './secret-rule.ts';

/**
 * Finds the end of a private key block: after its END line or, if it was cut off, after the last run of characters
 * that looks like key material. Margins, line numbers, quotes, diff marks and escaped line ends may be between the
 * runs. Each character is read a bounded number of times.
 */

/** Least length of a run of key material. Key lines mostly have 64 or 70 characters; a shorter run may be a word. */
const KEY_RUN_CHARS_MIN = 24;
/**
 * Bound on consecutive runs that are no key material. After more of them the block has ended. The headers of an
 * encrypted key (`Proc-Type: 4,ENCRYPTED`, `DEK-Info: …`) are nine runs.
 */
const OTHER_RUNS_MAX = 12;

/**
 * Matches the gap between runs: a line end, a margin, a diff mark. It has no opening bracket, so it is no mask of an
 * earlier masking. Closing brackets may cover a secret that was found before, which may be a part of the key.
 */
const GAP = /(?:\\[nrt]|\]+|[^A-Za-z0-9+/=[\]]){0,40}/y;
const RUN = /[A-Za-z0-9+/=]+/y;
const END_LINE = /END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9]*/y;

/** Returns the index after the block whose BEGIN line ends at `headEnd`; undefined if it contains no key. */
export function findKeyBlockEnd(headEnd: number, text: string): number | undefined {
  let keyEnd: number | undefined;
  let at = headEnd;
  let otherRuns = 0;
  while (otherRuns <= OTHER_RUNS_MAX) {
    const start = endOfMatch(GAP, text, at) ?? at;
    const blockEnd = text.startsWith('-----', start - 5)
      ? endOfMatch(END_LINE, text, start)
      : undefined;
    if (blockEnd !== undefined) return keyEnd === undefined ? undefined : blockEnd;
    const end = endOfMatch(RUN, text, start);
    if (end === undefined) return keyEnd;
    const isKey = end - start >= KEY_RUN_CHARS_MIN;
    const isCutOff = keyEnd !== undefined && end === text.length;
    if (isKey || isCutOff) keyEnd = end;
    otherRuns = isKey ? 0 : otherRuns + 1;
    at = end;
  }
  return keyEnd;
}

const PUTTY_END = /Private-MAC: [0-9a-f]{20,128}/g;
/** Bound on the characters of a PuTTY file: an RSA key of 16,384 bits with a comment has fewer. */
const PUTTY_CHARS_MAX = 24_000;

/** Returns the index after a PuTTY file whose first line contains `headEnd`; after its last key line if it was cut. */
export function findPuttyKeyEnd(headEnd: number, text: string): number | undefined {
  const file = text.slice(headEnd, headEnd + PUTTY_CHARS_MAX);
  const privateAt = file.indexOf('Private-Lines:');
  if (privateAt === -1) return undefined;
  PUTTY_END.lastIndex = privateAt;
  if (PUTTY_END.test(file)) return headEnd + PUTTY_END.lastIndex;
  return findKeyBlockEnd(headEnd + privateAt, text);
}
