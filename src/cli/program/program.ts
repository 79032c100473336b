import { Command, CommanderError } from 'commander';
import { VERSION_AND_BUILD } from '../../core/version.ts';
import { CliError, reportError } from '../cli-error.ts';
import type { CommandContext, Call } from '../context.ts';
import { Terminal } from '../terminal.ts';
import { wrapped } from '../text-table.ts';

/** Runs the command lines of svc and svc-service: parsing, help, errors and exit codes. */

/**
 * Sets the exit code of a command that throws nothing; without this call the code is 0. The code may be any number,
 * because `svc run` returns that of its client.
 */
export type Finish = (code: number) => void;

/** A line about exit codes in `--help`. docs/commands.md has the same. */
export const EXIT_CODES =
  'Exit codes: 0 success, 1 failure or problems, 2 wrong usage, 130 interrupted.';

export type Declare = (program: Command, context: CommandContext, finish: Finish) => void;

/** The texts in a program's help besides its commands. */
interface ProgramWords {
  readonly name: string;
  readonly description: string;
  /** The first commands for a new user, one on each line. */
  readonly start?: string;
}

const SVC: ProgramWords = {
  name: 'svc',
  description: 'Memory for coding agents: a proxy on this machine between them and their provider.',
};

/** Runs a command line (without node and script), and returns the exit code. */
export async function runProgram(
  argv: readonly string[],
  declare: Declare,
  words = SVC,
  context: CommandContext = ofProcess(),
): Promise<number> {
  const { terminal } = context;
  let code = 0;
  const finish = (end: number): void => {
    code = end;
  };
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

/** Returns this process's context. stdin is opened only on use, because a client that `svc run` starts needs stdin. */
export function ofProcess(abilities: Pick<CommandContext, 'asker'> = {}): CommandContext {
  const { env: environment, stdout, stderr } = process;
  const terminal = new Terminal({ stdout, stderr, environment });
  bearBrokenOutput(terminal);
  return {
    ...abilities,
    terminal,
    environment,
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
      // Wrap descriptions on a narrow screen too.
      .configureHelp({ minWidthToWrap: 20 })
      // Arguments after `svc run claude` belong to the client.
      .enablePositionalOptions()
      .configureOutput({
        writeOut: (text) => terminal.outWrapped(text.trimEnd()),
        writeErr: (text) => terminal.note(text.trimEnd()),
        // Print no error of commander: usageError() makes one without anything that may be a secret.
        outputError: () => undefined,
      })
      .addHelpText(
        'after',
        `${words.start === undefined ? '' : `\nStart:\n${words.start}\n`}\n${EXIT_CODES}`,
      )
  );
}

/**
 * Ends the process at a write error on stdout. `svc requests | head` closes stdout early, which is no failure; any
 * other error is reported, because an export may then be cut off. Ignores errors on stderr, which may be a proxy's log
 * on a full disk: the proxy's requests must continue.
 */
function bearBrokenOutput(terminal: Terminal): void {
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(0);
    const failure = `The output could not be written (${code ?? 'unknown'}), so it is not complete.`;
    process.exit(
      reportError(new CliError(failure, 'Make room for it, and run this again.'), terminal),
    );
  });
}

/** Returns the words of a command line that name its command: `svc memory get` without the arguments. */
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

/**
 * Returns an error for wrong usage. Of the typed words it repeats only one that looks like an option or a command,
 * because any other may be a key. Commander's message repeats them all.
 */
function usageError(error: CommanderError, see: string): CliError {
  const { code, message } = error;
  if (code === 'commander.help') return new CliError('Which command?', see, 2);
  const suggestion = /\(Did you mean .*\)/.exec(message)?.[0] ?? '';
  if (code === 'commander.unknownOption') {
    const flag = /'(--[a-z-]{1,30}|-[a-zA-Z])(?=['=])/.exec(message)?.[1] ?? '';
    const hint = /^--(?:key|token|api-key|provider-key)$/.test(flag)
      ? 'Use --key-env or --key-stdin. A key is never an argument, because other programs can read it there.'
      : `${see} ${suggestion}`.trimEnd();
    const problem =
      flag === ''
        ? 'There is no such option. Text that begins with - needs -- before it.'
        : `There is no option ${flag}.`;
    return new CliError(problem, hint, 2);
  }
  if (code === 'commander.unknownCommand') {
    const name = /unknown command '([a-z-]{1,30})'/.exec(message)?.[1] ?? '';
    return new CliError(
      `There is no command ${name}`.trimEnd() + '.',
      `${see} ${suggestion}`.trimEnd(),
      2,
    );
  }
  // All other messages contain only names that the program declares.
  return new CliError(message.replace(/^error: /, ''), see, 2);
}

/** The headings in svc's help. The commands under `programs` share one line. */
const GROUPS = { daily: 'Every day', setup: 'Set up', more: 'More', programs: 'For programs' };

/** The description of an option: a text, or a text and the default; as `required` if the option must be given. */
type CliOption =
  | string
  | readonly [text: string, fallback: string | readonly string[]]
  | { readonly required: string };

/** A command as data. declareAll() declares it to commander. */
export interface CliCommand<Given extends object = object> {
  /** The words of the command, as users type them: `memory list`. */
  readonly name: string;
  /** The heading under which svc's help lists the command; undefined: the help does not list it. */
  readonly group?: keyof typeof GROUPS;
  readonly description: string;
  /** The arguments, such as `<ref>` or `[words...]`, with descriptions. */
  readonly args?: Readonly<Record<string, string>>;
  /** The options by their flags. */
  readonly options?: Readonly<Record<string, CliOption>>;
  /** A text in the command's help, before the examples. */
  readonly more?: string;
  readonly examples?: readonly string[];
  /** True if the arguments after the first one belong to another program. */
  readonly passesOn?: true;
  /** Runs the command, and returns its exit code; undefined means 0. A command without `run` only groups others. */
  run?(call: Call<Given>): Promise<number | undefined | void>;
}

/** Returns the command `completion` of a program. */
export function completionOf(
  program: Command,
  context: CommandContext,
  row: Pick<CliCommand, 'group' | 'examples'>,
): CliCommand {
  return {
    name: 'completion',
    description: 'Print a completion script for your shell',
    args: { '[shell...]': 'bash, zsh or fish' },
    options: { '--after': 'print the words that may follow other words, as the scripts ask' },
    ...row,
    async run({ args, options }: Call<{ readonly after?: boolean }>) {
      const { printCompletion, printNext } = await import('./completion.ts');
      if (options.after === true) await printNext(args, program, context);
      else printCompletion(args[0], program, context.terminal);
    },
  };
}

/** Returns a function that declares the commands to commander. A command must come before its subcommands. */
export function declareAll(commands: readonly CliCommand[]): Declare {
  return (program, context, finish) => {
    for (const command of commands) {
      const words = command.name.split(' ');
      const parent = words.slice(0, -1).reduce(childOf, program);
      const own = parent.command(words.at(-1) ?? '').description(command.description);
      for (const [flags, text] of Object.entries(command.args ?? {})) own.argument(flags, text);
      for (const [flags, option] of Object.entries(command.options ?? {})) {
        addOption(own, flags, option);
      }
      if (command.passesOn === true) own.allowUnknownOption().passThroughOptions();
      own.addHelpText('after', helpOf(command));
      if (command.run === undefined) continue;
      own.action(async (...given: readonly unknown[]) => {
        // Commander passes the arguments, and after them the options and the command.
        const args = given.slice(0, -2).flat().filter(isText);
        const code = await command.run?.({ context, options: own.opts(), args });
        if (typeof code === 'number') finish(code);
      });
    }
    if (commands.some(({ group }) => group !== undefined)) {
      program.helpInformation = () => groupedHelp(commands, context);
    }
  };
}

function childOf(parent: Command, name: string): Command {
  return parent.commands.find((one) => one.name() === name) ?? parent.command(name);
}

function addOption(command: Command, flags: string, option: CliOption): void {
  if (typeof option === 'object' && 'required' in option) {
    command.requiredOption(flags, option.required);
    return;
  }
  const [text, fallback] = typeof option === 'string' ? [option] : option;
  if (fallback === undefined) command.option(flags, text);
  else if (typeof fallback === 'string') command.option(flags, text, fallback);
  // An option whose default is a list may be repeated.
  else
    command.option(flags, text, (value, before: readonly string[]) => [...before, value], fallback);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function helpOf({ more, examples = [] }: CliCommand): string {
  const paragraph = more === undefined ? [] : [more.trim()];
  const lines = examples.map((line) => `  $ ${line}`).join('\n');
  const last = lines === '' ? [] : [`Examples:\n${lines}`];
  const text = [...paragraph, ...last].join('\n\n');
  return text === '' ? '' : `\n${text}`;
}

const NAME_COLUMNS = 13;

/** Returns the help of svc, which fits in 30 lines of 80 columns. */
function groupedHelp(commands: readonly CliCommand[], { terminal }: CommandContext): string {
  const columns = terminal.columns(80);
  const namesIn = (wanted: string) => commands.filter(({ group }) => group === wanted);
  const groups = Object.entries(GROUPS).map(([group, title]) => {
    if (group === 'programs') {
      return wrapped(
        `${title}: ${namesIn(group)
          .map(({ name }) => name)
          .join(', ')}`,
        columns,
        '  ',
      ).join('\n');
    }
    const rows = namesIn(group).flatMap(({ name, description }) => {
      const row = `  ${name.padEnd(NAME_COLUMNS - 2)} ${description}`;
      return wrapped(row, columns, ' '.repeat(NAME_COLUMNS));
    });
    return [title, ...rows].join('\n');
  });
  const start = [
    'svc: memory for coding agents. Start with svc setup, then svc run claude.',
    'Usage: svc COMMAND. What a command does: svc COMMAND --help',
  ].flatMap((line) => wrapped(line, columns, '  '));
  return `${[start.join('\n'), ...groups].join('\n\n')}\n`;
}
