import type { Command } from 'commander';
import { declareCommands } from '../../src/cli/main.ts';
import { declareServiceCommands } from '../../service/src/cli/main.ts';
import { type Declare, emptyProgram } from '../../src/cli/program/program.ts';
import { screen } from './screen.ts';

/** Every command of svc as it is declared. */
export interface KnownCommand {
  /** 'memory list'; '' for the program itself. */
  readonly path: string;
  readonly description: string;
  /** As `--help` shows them: '-y, --yes', '--space <name>'. */
  readonly flags: readonly string[];
  /** The long names, and the short ones. */
  readonly flagNames: readonly string[];
  readonly hasSubcommands: boolean;
}

export function commandTree(): readonly KnownCommand[] {
  return treeOf(declareCommands);
}

/** The same of svc-service. */
export function serviceCommandTree(): readonly KnownCommand[] {
  return treeOf(declareServiceCommands);
}

function treeOf(declare: Declare): readonly KnownCommand[] {
  const { terminal } = screen();
  const program = emptyProgram(terminal);
  declare(program, { terminal, environment: {} }, () => undefined);
  return below(program, '');
}

function below(command: Command, path: string): readonly KnownCommand[] {
  const options = command.options.filter(({ hidden }) => !hidden);
  const own = {
    path,
    description: command.description(),
    flags: options.map(({ flags }) => flags),
    flagNames: options.flatMap(({ long, short }) => [long ?? '', short ?? '']).filter(Boolean),
    hasSubcommands: command.commands.length > 0,
  };
  const children = command.commands.flatMap((child) =>
    below(child, `${path} ${child.name()}`.trim()),
  );
  return [own, ...children];
}
