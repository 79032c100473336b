import { countLines } from '../bytes/lines.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import { isErrorLine } from '../recall/second-look.ts';

/**
 * Cuts the middle out of a long output before it is sent for the first time. The first and the last lines stay, as do
 * lines in between that report an error, with their numbers. A pure function of the output.
 */

/** An output of so many tokens is sent whole: below it a cut saves less than a second reading costs. */
export const CUT_TOKENS_MIN = 4_000;
/** The end of a build or a test says how it went, and gets more room than its beginning. */
const HEAD_TOKENS = 300;
const TAIL_TOKENS = 700;
/** Of a thousand lines that fail for one reason a few say all. */
const ERRORS_MAX = 20;
const ERROR_CHARS = 200;

/** `command` reads the whole text. Undefined where a line is longer than the room: only whole lines can be read again. */
export function cutOutput(text: string, command: string): string | undefined {
  if (estimateTextTokens(text) <= CUT_TOKENS_MIN) return undefined;
  const lines = text.split('\n');
  const head = countFitting(lines, HEAD_TOKENS);
  const tail = countFitting(lines.toReversed(), TAIL_TOKENS);
  if (head === 0 || tail === 0 || head + tail >= lines.length) return undefined;
  const end = lines.length - tail;
  const middle = lines.slice(head, end);
  const errors = middle
    .flatMap((line, at) => (isErrorLine(line) ? [`${head + at + 1}: ${line.trim()}`] : []))
    .slice(0, ERRORS_MAX)
    .map((line) => line.slice(0, ERROR_CHARS));
  const tokens = estimateTextTokens(middle.join('\n'));
  const said = `svc left out lines ${head + 1} to ${end} of ${countLines(text)}, about ${tokens} tokens. To read them: ${command} --lines ${head + 1}-${Math.min(end, head + PART_LINES)}, or with --grep PATTERN`;
  const found = errors.length === 0 ? [] : ['Lines in it that report an error:', ...errors];
  return [
    ...lines.slice(0, head),
    `[${said}.]`,
    ...found,
    '[The end of the output:]',
    ...lines.slice(end),
  ].join('\n');
}

/** About as much as comes back at once. */
const PART_LINES = 100;

/** How many of the first lines have room. */
function countFitting(lines: readonly string[], tokensMax: number): number {
  let tokens = 0;
  const over = lines.findIndex((line) => {
    tokens += estimateTextTokens(`${line}\n`);
    return tokens > tokensMax;
  });
  return over === -1 ? lines.length : over;
}
