/**
 * Takes secrets and private passages out of a text before it is stored, indexed or sent to the
 * memory side. It never sees what goes to the provider: that text stays the client's own.
 *
 * Pure, one pass a rule, linear in the length of the text. Masking a masked text changes nothing:
 * - no rule can match a mask or reach across one: brackets are in none of its characters;
 * - a secret is eaten to the end of its run of letters and digits, so that what follows a mask is
 *   never the beginning of another secret that was hidden in the first one.
 */

import { SECRET_NAME, SECRET_RULES, type SecretRule } from './secret-rules.ts';

/**
 * Characters. A longer text is one mask as a whole: a megabyte in one message is a file and no
 * memory, reading it takes tens of milliseconds from every stream in the process, and a window's
 * edge could cut a secret in two.
 */
export const MASKED_CHARS_MAX = 1 << 20;

export interface MaskedText {
  readonly text: string;
  /** How many secrets were found. Not zero: the text is not what was said, and must not replace it. */
  readonly masked: number;
}

/** The text with `[masked: kind]` in place of every secret. */
export function maskSecrets(text: string): MaskedText {
  if (text.length > MASKED_CHARS_MAX) return { text: maskOf('oversized-text'), masked: 1 };
  let result: MaskedText = { text, masked: 0 };
  const runs = findLongRuns(text);
  const hasName = SECRET_NAME.test(text);
  for (const rule of SECRET_RULES) {
    if (rule.needs === 'run' && !hasMatch(rule.pattern, runs)) continue;
    if (rule.needs === 'name' && !hasName) continue;
    const { text: maskedText, masked } = applyRule(result.text, rule);
    result = { text: maskedText, masked: result.masked + masked };
  }
  return result;
}

/**
 * The text without what stands between `<private>` and `</private>`. Tags may be nested; one that
 * is never closed holds everything after it. A blank stays, so that what is left on both sides
 * cannot join to a new tag.
 */
export function stripPrivate(text: string): string {
  let depth = 0;
  let kept = '';
  let keptFrom = 0;
  for (const tag of text.matchAll(/<(\/?)private>/gi)) {
    const isClosing = tag[1] === '/';
    if (isClosing && depth === 0) continue;
    if (!isClosing && depth === 0) kept += `${text.slice(keptFrom, tag.index)} `;
    depth += isClosing ? -1 : 1;
    keptFrom = tag.index + tag[0].length;
  }
  return depth === 0 ? kept + text.slice(keptFrom) : kept;
}

/** Whether some of the text is never to be kept. */
export function hasPrivate(text: string): boolean {
  return /<private>/i.test(text);
}

/** The shortest vendor format has 15 characters. */
const LONG_RUN_CHARS = 15;

/** By character code: may stand inside a vendor's format. */
const IS_RUN_CODE = Uint8Array.from({ length: 128 }, (_, code) =>
  /[\w.:/+-]/.test(String.fromCharCode(code)) ? 1 : 0,
);

/**
 * The long unbroken runs, a line each. In prose and code they are few, and looking for fifty vendors'
 * formats in them alone takes a third of the time. A pattern for runs took ten times as long as this.
 */
function findLongRuns(text: string): string {
  const runs: string[] = [];
  let start = 0;
  for (let at = 0; at <= text.length; at += 1) {
    // Past the end there is no code, and so no run.
    if (IS_RUN_CODE[text.charCodeAt(at)] === 1) continue;
    if (at - start >= LONG_RUN_CHARS) runs.push(text.slice(start, at));
    start = at + 1;
  }
  return runs.join('\n');
}

function hasMatch(pattern: RegExp, text: string): boolean {
  pattern.lastIndex = 0;
  return pattern.test(text);
}

const WORD_REST = /[\w-]*/y;

/** Characters of a candidate that a rule may judge. */
const JUDGED_CHARS = 64;

function applyRule(text: string, rule: SecretRule): MaskedText {
  const { pattern } = rule;
  const endOfRest = restReader(text, rule.rest ?? WORD_REST);
  const endOfQuoted = restReader(text, rule.quotedRest ?? rule.rest ?? WORD_REST);
  let kept = '';
  let keptFrom = 0;
  let masked = 0;
  pattern.lastIndex = 0;
  for (let found = pattern.exec(text); found !== null; found = pattern.exec(text)) {
    const context = found.groups?.['keep'] ?? '';
    const start = found.index + context.length;
    const headEnd = pattern.lastIndex;
    const endOf = rule.findEnd ?? (/["'`]$/.test(context) ? endOfQuoted : endOfRest);
    const end = endOf(headEnd, text);
    const isSecret = end !== undefined && accepts(text, rule, { context, start, end });
    // A refused head is short, so looking again from its second character stays linear.
    pattern.lastIndex = isSecret ? end : found.index + 1;
    if (!isSecret) continue;
    kept += text.slice(keptFrom, start) + maskOf(rule.kind);
    keptFrom = end;
    masked += 1;
  }
  return masked === 0 ? { text, masked } : { text: kept + text.slice(keptFrom), masked };
}

/**
 * Where the run of `rest` that goes on at an index ends. A run is read once, however many refused
 * heads lie in it: otherwise `password=password=…` would cost the square of its length.
 */
function restReader(text: string, rest: RegExp): (from: number) => number {
  let runEnd = -1;
  return (from) => {
    if (from <= runEnd) return runEnd;
    rest.lastIndex = from;
    rest.test(text);
    runEnd = rest.lastIndex;
    return runEnd;
  };
}

interface Place {
  readonly context: string;
  readonly start: number;
  readonly end: number;
}

function accepts(text: string, rule: SecretRule, { context, start, end }: Place): boolean {
  if (rule.accepts === undefined) return true;
  const secret = text.slice(start, Math.min(end, start + JUDGED_CHARS));
  return rule.accepts({ context, secret, next: text.charAt(end) });
}

function maskOf(kind: string): string {
  return `[masked: ${kind}]`;
}
