import type { ExitCode } from '../cli-error.ts';
import type { Check } from './doctor-checks.ts';
import { count } from '../listing.ts';
import { printable, type Terminal } from '../terminal.ts';
import { wrapped } from '../text-table.ts';

/** The final report of both doctors: a line for each check, and its remedy below. */

export interface CheckReport {
  readonly checks: readonly Check[];
  /** For the JSON alone: the facts that were looked at. */
  readonly facts: Readonly<Record<string, string>>;
  readonly isJson: boolean;
}

/** Exit code 1 when there is a problem; warnings are none. */
export function reportChecks({ checks, facts, isJson }: CheckReport, terminal: Terminal): ExitCode {
  const problems = checks.filter(({ level }) => level === 'problem').length;
  if (isJson) terminal.json({ ok: problems === 0, ...facts, checks });
  else {
    for (const line of checks.flatMap((check) => checkLines(check, terminal))) terminal.out(line);
    const warnings = checks.filter(({ level }) => level === 'warning').length;
    terminal.note(`${count(problems, 'problem')}, ${count(warnings, 'warning')}.`);
  }
  return problems === 0 ? 0 : 1;
}

const LEVEL_COLUMNS = 7;
/** Nothing is below the level: found and fix are one column. */
const INDENT = ' '.repeat(LEVEL_COLUMNS + 2);

function checkLines({ level, subject, found, fix }: Check, terminal: Terminal): readonly string[] {
  const { colors } = terminal;
  const columns = terminal.columns(Infinity);
  const color = { ok: colors.green, warning: colors.yellow, problem: colors.red }[level];
  const text = wrapped(INDENT + printable(`${subject}: ${found}`), columns, INDENT);
  const mend = fix === undefined ? [] : wrapped(INDENT + printable(fix), columns, INDENT);
  const [first = '', ...rest] = text;
  const head = color(level.padEnd(LEVEL_COLUMNS));
  return [`${head}${first.slice(LEVEL_COLUMNS)}`, ...rest, ...mend];
}
