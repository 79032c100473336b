import { Command, CommanderError } from 'commander';
import { VERSION_AND_BUILD } from '../../core/version.ts';
import { CliError, reportError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { Terminal } from '../terminal.ts';

/**
 * The part that every command line of svc shares: how it is read, how it fails, how it ends. The
 * caller declares the commands.
 */

/** How a command's action reports its exit code; 0 when it does not. `run` ends with its client's. */
export type Finish = (code: number) => void;

/** One sentence for `--help` and for docs/commands.md. */
export const EXIT_CODES =
  'Exit codes: 0 success, 1 failure or problems, 2 wrong usage, 130 interrupted.';

/** Declares commands on the program. */
export type Declare = (program: Command, context: CommandContext, finish: Finish) => void;

/** What the help of a program says besides its commands. */
export interface ProgramWords {
  readonly name: string;
  readonly description: string;
  /** The first commands of a new user, one a line, where the description does not name them. */
  readonly start?: string;
}

const SVC: ProgramWords = {
  name: 'svc',
  description: 'Memory for coding agents: a proxy on this machine between them and their provider.',
};

/** Runs one command line (without node and script) and resolves with the exit code. */
export async function runProgram(
  argv: readonly string[],
  declare: Declare,
  words = SVC,
  abilities: Pick<CommandContext, 'asker' | 'openStore'> = {},
): Promise<number> {
  const { env: environment, stdout, stderr } = process;
  bearBrokenOutput();
  const terminal = new Terminal({ stdout, stderr, environment });
  let code = 0;
  const finish = (end: number): void => {
    code = end;
  };
  const context = contextOf({ ...abilities, terminal, environment });
  const program = emptyProgram(terminal, words);
  declare(program, context, finish);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return code;
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(error, terminal);
    return error.exitCode === 0
      ? 0
      : reportError(usageError(error, `See: ${commandIn(argv, program)} --help`), terminal);
  }
}

// stdin is opened by the command that reads it: one that only runs a client must not touch it.
function contextOf(context: Omit<CommandContext, 'stdin'>): CommandContext {
  return {
    ...context,
    get stdin() {
      return process.stdin;
    },
  };
}

export function emptyProgram(terminal: Terminal, words = SVC): Command {
  return (
    new Command(words.name)
      .description(words.description)
      .version(VERSION_AND_BUILD)
      .exitOverride()
      // On a narrow screen the descriptions are in a narrow column, not behind the edge.
      .configureHelp({ minWidthToWrap: 20 })
      // The arguments after `svc run claude` are the client's.
      .enablePositionalOptions()
      .configureOutput({
        writeOut: (text) => terminal.outWrapped(text.trimEnd()),
        writeErr: (text) => terminal.note(text.trimEnd()),
        // `usageError` prints it, and repeats nothing that could be a secret.
        outputError: () => undefined,
      })
      .addHelpText(
        'after',
        `${words.start === undefined ? '' : `\nStart:\n${words.start}\n`}\n${EXIT_CODES}`,
      )
  );
}

// `svc requests | head` closes the pipe early, which is no failure. A full disk is none either:
// there stderr is the log of a proxy in the background, and a lost log line must not end its
// requests.
function bearBrokenOutput(): void {
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1);
  });
}

/** As much of the line as names commands: `svc memory get`. */
function commandIn(argv: readonly string[], program: Command): string {
  let command = program;
  const names = [program.name()];
  for (const word of argv) {
    const next = command.commands.find((child) => child.name() === word);
    if (next === undefined) break;
    command = next;
    names.push(word);
  }
  return names.join(' ');
}

// Commander repeats the argument it does not know, and that may be a key.
function usageError(error: CommanderError, see: string): CliError {
  const { code, message } = error;
  if (code === 'commander.help') return new CliError('Which command?', see, 2);
  const suggestion = /\(Did you mean .*\)/.exec(message)?.[0] ?? '';
  if (code === 'commander.unknownOption') {
    const flag = /'(--[a-z-]{1,30}|-[a-zA-Z])(?=['=])/.exec(message)?.[1] ?? '';
    const hint = /^--(?:key|token|api-key|provider-key)$/.test(flag)
      ? 'Use --key-env or --key-stdin. A key is never an argument, because other programs can read it there.'
      : `${see} ${suggestion}`.trimEnd();
    return new CliError(`There is no option ${flag}`.trimEnd() + '.', hint, 2);
  }
  if (code === 'commander.unknownCommand') {
    const name = /unknown command '([a-z-]{1,30})'/.exec(message)?.[1] ?? '';
    return new CliError(
      `There is no command ${name}`.trimEnd() + '.',
      `${see} ${suggestion}`.trimEnd(),
      2,
    );
  }
  // The other messages are made of the names that the program itself declares.
  return new CliError(message.replace(/^error: /, ''), see, 2);
}
