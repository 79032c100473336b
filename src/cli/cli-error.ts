import type { FileError } from '../adapters/files/file-error.ts';
import type { Terminal } from './terminal.ts';
import type { MemoryError } from '../core/errors.ts';

/** 0: success. 1: failed, or problems found. 2: wrong usage. 130: interrupted. */
export type ExitCode = 0 | 1 | 2 | 130;

/**
 * An error that ends a command. The message says what happened and why, the hint what the user can do next. Neither
 * contains a secret, or a part of the command line that may be one.
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

export function memoryFailure({ reason, message }: MemoryError): CliError {
  return new CliError(`The memory cannot answer (${reason}). ${message}`, 'Check with: svc doctor');
}

/** Prints the error that ended a command, and returns the exit code. */
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
  // The message of an unexpected error may quote anything, so print only its kind and the system's code.
  const kind = error instanceof Error ? error.name : 'unknown error';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'EMFILE' || code === 'ENFILE') {
    terminal.error(`The system lets svc open no more files (${code}).`);
    terminal.note('  Raise the limit, then run it again: ulimit -n 1024');
    return 1;
  }
  const cause = /^E[A-Z\d]{2,15}$/.test(code) ? `${kind} ${code}` : kind;
  terminal.error(`An unexpected error stopped this command (${cause}).`);
  terminal.note('  Run svc doctor, and report this with what you did.');
  return 1;
}

/** Says whether an error has this class. It compares names, because each bundle has its own copy of the class. */
function isNamed<T extends Error>(error: unknown, name: T['name']): error is T {
  return error instanceof Error && error.name === name;
}
