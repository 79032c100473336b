import type { ExitCode } from '../cli-error.ts';
import type { Check } from './doctor-checks.ts';
import { count } from '../listing.ts';
import { type Colors, printable, type Terminal } from '../terminal.ts';

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
    for (const check of checks) terminal.out(checkText(check, terminal.colors));
    const warnings = checks.filter(({ level }) => level === 'warning').length;
    terminal.note(`${count(problems, 'problem')}, ${count(warnings, 'warning')}.`);
  }
  return problems === 0 ? 0 : 1;
}

function checkText({ level, subject, found, fix }: Check, colors: Colors): string {
  const color = { ok: colors.green, warning: colors.yellow, problem: colors.red }[level];
  const line = printable(`${subject}: ${found}`);
  const mend = fix === undefined ? '' : `\n         ${printable(fix)}`;
  return `${color(level.padEnd(7))}  ${line}${mend}`;
}
