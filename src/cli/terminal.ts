import type { WriteStream } from 'node:tty';
import picocolors from 'picocolors';
import { wrapped } from './text-table.ts';

/**
 * Prints the output of commands, except what `svc mcp` and `svc hook` write for a program. stdout has only what the
 * command was asked for, often for a program; stderr has messages for people. In text that svc did not make, control
 * characters and those that change the direction of text are replaced, so that the text cannot control a screen. JSON,
 * and stored texts in a pipe or a file, stay exact.
 */

/** The members of process.stdout and process.stderr that Terminal uses. */
export type Output = Pick<WriteStream, 'write'> & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

export interface TerminalOptions {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export type Colors = ReturnType<typeof picocolors.createColors>;

export class Terminal {
  readonly #stdout: Output;
  readonly #stderr: Output;
  readonly colors: Colors;
  readonly noteColors: Colors;

  constructor({ stdout, stderr, environment }: TerminalOptions) {
    this.#stdout = stdout;
    this.#stderr = stderr;
    // NO_COLOR counts if it is set and not empty: https://no-color.org.
    const isPlain = Boolean(environment['NO_COLOR']) || environment['TERM'] === 'dumb';
    this.colors = picocolors.createColors(!isPlain && stdout.isTTY === true);
    this.noteColors = picocolors.createColors(!isPlain && stderr.isTTY === true);
  }

  /** True if stdout is a terminal, so that a user sees what is printed there. */
  get isWatched(): boolean {
    return this.#stdout.isTTY === true;
  }

  /** True if stderr is a terminal, so that a user sees what is printed there. */
  get areNotesWatched(): boolean {
    return this.#stderr.isTTY === true;
  }

  /** Returns how many characters fit into a line of stderr; `fallback` without a screen. */
  noteColumns(fallback: number): number {
    return widthOf(this.#stderr) ?? fallback;
  }

  /** Returns how many characters fit into a line of stdout; `fallback` without a screen. */
  columns(fallback: number): number {
    return widthOf(this.#stdout) ?? fallback;
  }

  /** Returns the lines of stdout's screen; `fallback` without a screen. */
  rows(fallback: number): number {
    return this.#stdout.rows ?? fallback;
  }

  /** Shows the terminal's alternate screen and hides the cursor, for a live view. leaveScreen() undoes both. */
  enterScreen(): void {
    this.#stdout.write('\u001b[?1049h\u001b[?25l');
  }

  /** Draws the lines on the alternate screen. They must be printable and no wider than the screen. */
  paint(lines: readonly string[]): void {
    const text = lines.map((line) => `${line}\u001b[K`).join('\r\n');
    this.#stdout.write(`\u001b[H${text}\u001b[J`);
  }

  leaveScreen(): void {
    this.#stdout.write('\u001b[?25h\u001b[?1049l');
  }

  /** Prints a line on stdout without replacing a character. In text that svc did not make, the caller must do that. */
  out(line: string): void {
    this.#stdout.write(`${line}\n`);
  }

  /** Prints a line on stdout, wrapped between words on a screen. All lines but the first begin with `indent`. */
  row(line: string, indent = ''): void {
    for (const part of wrapped(line, this.columns(Infinity), indent)) this.out(part);
  }

  json(value: unknown): void {
    this.out(JSON.stringify(value, undefined, 2));
  }

  /** Prints a stored text on stdout: exactly into a pipe or file; on a screen with unprintable characters replaced. */
  outText(text: string): void {
    this.#stdout.write(this.isWatched ? `${printable(text)}\n` : text);
  }

  /** Prints a text for people on stdout, wrapped between words on a screen. */
  outWrapped(text: string): void {
    this.#stdout.write(`${broken(text, this.#stdout)}\n`);
  }

  note(line: string): void {
    this.#stderr.write(`${broken(printable(line), this.#stderr)}\n`);
  }

  /** Shows progress in one line of stderr, which the next call replaces. Prints nothing without a screen. */
  progress(text: string): void {
    if (this.#stderr.isTTY === true) this.#stderr.write(`\r${oneLine(text, 78)}\u001b[K`);
  }

  /** Removes the line of progress(). */
  progressDone(): void {
    if (this.#stderr.isTTY === true) this.#stderr.write('\r\u001b[K');
  }

  /** Prints a line on stderr that already has colours; every part must be printable. */
  noteColored(line: string): void {
    this.#stderr.write(`${line}\n`);
  }

  warn(line: string): void {
    const text = broken(printable(line), this.#stderr, 'warning: '.length);
    this.#stderr.write(`${this.noteColors.yellow('warning:')} ${text}\n`);
  }

  error(line: string): void {
    const text = broken(printable(line), this.#stderr, 'svc: '.length);
    this.#stderr.write(`${this.noteColors.red('svc:')} ${text}\n`);
  }
}

/** Returns the characters in a line; undefined if they are unknown. A serial terminal may report 0. */
function widthOf({ columns }: Output): number | undefined {
  return columns === 0 ? undefined : columns;
}

/** Wraps a text between words, because a screen would break a line inside a word. */
function broken(text: string, output: Output, before = 0): string {
  const columns = widthOf(output);
  if (output.isTTY !== true || columns === undefined) return text;
  // The caller prints a label of `before` characters in front. Hyphens stand for it while the lines are wrapped.
  const label = '-'.repeat(before);
  const lines = text.split('\n').flatMap((line) => {
    const indent = /^ */.exec(line)?.[0] ?? '';
    return wrapped(label + line, columns, indent)
      .join('\n')
      .slice(before);
  });
  return lines.join('\n');
}

// Matches control characters except tab and line feed, and characters that reverse or hide text. It does not match
// joiners, which some scripts and emojis need.
const UNPRINTABLE = /(?![\t\n\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Replaces every character that would control a screen by U+FFFD. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, '\ufffd');
}

/** Returns the beginning of a text as one line of at most `charsMax` characters. */
export function oneLine(text: string, charsMax: number): string {
  // Cut the text first, because a stored tool output may have megabytes. Four times `charsMax` is enough unless three
  // quarters are spaces, which the next line joins.
  const start = text.slice(0, charsMax * 4);
  const characters = Array.from(printable(start).replaceAll(/\s+/g, ' ').trim());
  if (characters.length <= charsMax && start.length === text.length) return characters.join('');
  return `${characters.slice(0, charsMax - 1).join('')}…`;
}
