import type { Command } from 'commander';
import type { Call, CommandContext } from '../context.ts';
import { wrapped } from '../text-table.ts';
import type { Declare } from './program.ts';

/** A command of svc as one object, and its declaration for the reader of command lines. */

/** The headings in the help of svc. Commands for programs share one line there. */
const GROUPS = { daily: 'Every day', setup: 'Set up', more: 'More', programs: 'For programs' };

export interface CliCommand<Given extends object = object> {
  /** As a person types it: `memory list`. */
  readonly name: string;
  /** Where the help of svc lists the command; nowhere without a group. */
  readonly group?: keyof typeof GROUPS;
  readonly description: string;
  /** The arguments, such as `<ref>` or `[words...]`, each with a description. */
  readonly args?: Readonly<Record<string, string>>;
  /** The options by their flags: a description, or one with the value that holds without the option. */
  readonly options?: Readonly<
    Record<string, string | readonly [text: string, fallback: string | readonly string[]]>
  >;
  /** Paragraphs of its help, before the examples. */
  readonly more?: string;
  readonly examples?: readonly string[];
  /** What follows the first argument belongs to another program. */
  readonly passesOn?: true;
  /** Resolves with the exit code; 0 without one. A command without this only holds others. */
  run?(call: Call<Given>): Promise<number | undefined | void>;
}

/** Declares commands in this order; one that holds others comes before them. */
export function declareAll(commands: readonly CliCommand[]): Declare {
  return (program, context, finish) => {
    for (const command of commands.filter(({ name }) => name !== 'help')) {
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
        // The arguments, then the options, then the command itself.
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

function addOption(
  command: Command,
  flags: string,
  option: string | readonly [text: string, fallback: string | readonly string[]],
): void {
  const [text, fallback] = typeof option === 'string' ? [option] : option;
  if (fallback === undefined) command.option(flags, text);
  else if (typeof fallback === 'string') command.option(flags, text, fallback);
  // An option whose value is a list may be repeated.
  else command.option(flags, text, collect, fallback);
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
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

/** The help of svc itself: at most 30 lines on a usual screen. */
function groupedHelp(commands: readonly CliCommand[], { terminal }: CommandContext): string {
  const columns = terminal.columns(80);
  const namesIn = (wanted: string) => commands.filter(({ group }) => group === wanted);
  const groups = Object.entries(GROUPS).map(([group, title]) => {
    if (group === 'programs') {
      return wrapped(`${title}: ${namesIn(group).map(nameOf).join(', ')}`, columns, '  ').join(
        '\n',
      );
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

function nameOf({ name }: CliCommand): string {
  return name;
}
