import type { FileError } from '../adapters/files/file-error.ts';
import type { Terminal } from './terminal.ts';
import type { MemoryError } from '../core/errors.ts';

/** 0 ok, 1 failed or problems found, 2 wrong usage, 130 interrupted. */
export type ExitCode = 0 | 1 | 2 | 130;

/**
 * A command that cannot continue. Each line says what happened and why, the hint what to do next. No
 * line ever holds a secret, nor anything from the command line that could be one.
 */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly lines: readonly string[];
  readonly hint: string;
  readonly exitCode: 1 | 2;

  constructor(lines: string | readonly string[], hint: string, exitCode: 1 | 2 = 1) {
    const all = typeof lines === 'string' ? [lines] : lines;
    super(all.join('\n'));
    this.lines = all;
    this.hint = hint;
    this.exitCode = exitCode;
  }
}

/** Tells a person that the memory failed, and why. */
export function memoryFailure({ reason, message }: MemoryError): CliError {
  return new CliError(`The memory cannot answer (${reason}). ${message}`, 'Check with: svc doctor');
}

/** Prints what stopped a command, and says with which code the program ends. */
export function reportError(error: unknown, terminal: Terminal): 1 | 2 {
  if (isNamed<CliError>(error, 'CliError')) {
    for (const line of error.lines) terminal.error(line);
    terminal.note(`  ${error.hint}`);
    return error.exitCode;
  }
  if (isNamed<FileError>(error, 'FileError')) {
    terminal.error(error.message);
    terminal.note(`  ${error.hint}`);
    return 1;
  }
  if (isNamed<MemoryError>(error, 'MemoryError'))
    return reportError(memoryFailure(error), terminal);
  // An unexpected error: its message may quote anything, so svc shows only its kind.
  const kind = error instanceof Error ? error.name : 'unknown error';
  terminal.error(`An unexpected error stopped this command (${kind}).`);
  terminal.note('  Run svc doctor, and report this with what you did.');
  return 1;
}

/** By name: code that is loaded later is a bundle of its own, with classes of its own. */
function isNamed<T extends Error>(error: unknown, name: T['name']): error is T {
  return error instanceof Error && error.name === name;
}
