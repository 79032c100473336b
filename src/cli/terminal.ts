import type { WriteStream } from 'node:tty';
import picocolors from 'picocolors';
import { wrapped } from './text-table.ts';

/**
 * The only place that prints. stdout is for machines: the requested output and nothing else. stderr
 * is for people. Printed text can never steer a screen: control and bidirectional characters are
 * shown, not sent.
 */

/** The members of a stream that the terminal needs; process.stdout and process.stderr have them. */
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
  /** For what goes to stdout. */
  readonly colors: Colors;
  /** For what goes to stderr. */
  readonly noteColors: Colors;

  constructor({ stdout, stderr, environment }: TerminalOptions) {
    this.#stdout = stdout;
    this.#stderr = stderr;
    // https://no-color.org: present and not empty.
    const isPlain = Boolean(environment['NO_COLOR']) || environment['TERM'] === 'dumb';
    this.colors = picocolors.createColors(!isPlain && stdout.isTTY === true);
    this.noteColors = picocolors.createColors(!isPlain && stderr.isTTY === true);
  }

  /** True when a person looks at stdout. */
  get isWatched(): boolean {
    return this.#stdout.isTTY === true;
  }

  /** True when a person looks at stderr. */
  get areNotesWatched(): boolean {
    return this.#stderr.isTTY === true;
  }

  /** Characters in a line of stderr; `fallback` without a screen. */
  noteColumns(fallback: number): number {
    return this.#stderr.columns ?? fallback;
  }

  /** Characters in a line of stdout; `fallback` without a screen. */
  columns(fallback: number): number {
    return this.#stdout.columns ?? fallback;
  }

  /** Lines of stdout's screen; `fallback` without a screen. */
  rows(fallback: number): number {
    return this.#stdout.rows ?? fallback;
  }

  /** The whole screen for a live view; what was on it comes back with `leaveScreen`. */
  enterScreen(): void {
    this.#stdout.write('\u001b[?1049h\u001b[?25l');
  }

  /** Every line is printable and no wider than the screen already. */
  paint(lines: readonly string[]): void {
    const text = lines.map((line) => `${line}\u001b[K`).join('\r\n');
    this.#stdout.write(`\u001b[H${text}\u001b[J`);
  }

  leaveScreen(): void {
    this.#stdout.write('\u001b[?25h\u001b[?1049l');
  }

  /** A line of the answer, byte for byte: only for what svc itself made. */
  out(line: string): void {
    this.#stdout.write(`${line}\n`);
  }

  /** A line of the answer that a screen breaks between words; all but the first begin with `indent`. */
  row(line: string, indent = ''): void {
    for (const part of wrapped(line, this.columns(Infinity), indent)) this.out(part);
  }

  json(value: unknown): void {
    this.out(JSON.stringify(value, undefined, 2));
  }

  /** Stored text: exact for a pipe, harmless for a screen. Nothing is added to it in a pipe. */
  outText(text: string): void {
    this.#stdout.write(this.isWatched ? `${printable(text)}\n` : text);
  }

  /** Text for a person; on a screen its lines are broken between words. */
  outWrapped(text: string): void {
    this.#stdout.write(`${broken(text, this.#stdout)}\n`);
  }

  note(line: string): void {
    this.#stderr.write(`${broken(printable(line), this.#stderr)}\n`);
  }

  /**
   * The progress of a long command, on one line that the next one replaces; nothing without a
   * screen.
   */
  progress(text: string): void {
    if (this.#stderr.isTTY === true) this.#stderr.write(`\r${oneLine(text, 78)}\u001b[K`);
  }

  /** Takes the line of `progress` away. */
  progressDone(): void {
    if (this.#stderr.isTTY === true) this.#stderr.write('\r\u001b[K');
  }

  /** A line for people whose colours are there already; every piece was made printable before. */
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

/** Broken between words on a screen, which itself would break in the middle of one. */
function broken(text: string, { isTTY, columns }: Output, before = 0): string {
  if (isTTY !== true || columns === undefined) return text;
  // A label before the first line counts, and is no part of what is printed here.
  const label = '-'.repeat(before);
  const lines = text.split('\n').flatMap((line) => {
    const indent = /^ */.exec(line)?.[0] ?? '';
    return wrapped(label + line, columns, indent)
      .join('\n')
      .slice(before);
  });
  return lines.join('\n');
}

// Controls but tab and line feed, and everything that turns or hides text; not the joiners, which
// some scripts and emoji are written with.
const UNPRINTABLE = /(?![\t\n\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** The same text with every character that a screen would act on replaced by U+FFFD. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, '\ufffd');
}

/** The beginning of the text on one line of at most `charsMax` characters. */
export function oneLine(text: string, charsMax: number): string {
  // A stored tool output may have megabytes; blanks are rarely more than half of a text's start.
  const start = text.slice(0, charsMax * 4);
  const characters = Array.from(printable(start).replaceAll(/\s+/g, ' ').trim());
  if (characters.length <= charsMax && start.length === text.length) return characters.join('');
  return `${characters.slice(0, charsMax - 1).join('')}…`;
}
