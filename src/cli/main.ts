import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import { CliError } from './cli-error.ts';
import {
  type CliCommand,
  completionOf,
  declareAll,
  type Declare,
  ofProcess,
  runProgram,
} from './program/program.ts';
import type { OpenStore } from './compose-store.ts';
import { type CommandContext, type Confirm, scriptPath } from './context.ts';
import type { Terminal } from './terminal.ts';
import { COMMANDS } from './program/commands.ts';

/** Runs a command line of svc (without node and script), and returns the exit code. */
export function run(
  argv: readonly string[],
  context: CommandContext = ofProcess({ asker }),
): Promise<number> {
  return runProgram(argv, declareCommands, undefined, { openStore, ...context });
}

/** Opens the store. Its code is loaded only here, because many commands do not need it. */
const openStore: OpenStore = async (folder, options) =>
  (await import('./compose-store.ts')).openStoreForCli(folder, options);

function asker(isDefault = false): Confirm | undefined {
  const { stdin: input, stderr: output } = process;
  if (!input.isTTY || !output.isTTY) return undefined;
  return async (message) => {
    const { Prompts } = await import('./setup/wizard-prompts.ts');
    const prompts = new Prompts({ input, output });
    // Ctrl-C and Ctrl-D mean no. At Ctrl-D inquirer neither answers nor fails, so svc would end with exit code 0.
    const ended = new AbortController();
    const onKey = (_: unknown, key?: { readonly ctrl?: boolean; readonly name?: string }): void => {
      if (key?.ctrl === true && key.name === 'd') ended.abort();
    };
    input.on('keypress', onKey);
    const answer = prompts.confirm({ message, default: isDefault }, ended.signal);
    return answer.catch(() => false).finally(() => input.off('keypress', onKey));
  };
}

export const declareCommands: Declare = (program, context, finish) => {
  const completion = completionOf(program, context, {
    group: 'programs',
    examples: [
      `echo 'eval "$(svc completion bash)"' >> ~/.bashrc`,
      `echo 'eval "$(svc completion zsh)"' >> ~/.zshrc`,
      'svc completion fish > ~/.config/fish/completions/svc.fish',
    ],
  });
  const help: CliCommand = {
    name: 'help',
    group: 'more',
    description: 'Explain a command, or print a page of the documentation',
    args: { '[words...]': 'a command, or the name of a page: modes, hooks, privacy, …' },
    more: 'Without words it prints the help of svc. A name that does not exist prints the names of all pages.',
    examples: ['svc help memory get', 'svc help modes', 'svc help states | less'],
    run: async ({ args }) => printHelp(args, program, context.terminal),
  };
  declareAll([...COMMANDS, help, completion])(program, context, finish);
  program.hook('preAction', needFolder);
};

/** Throws CliError if the current folder was removed: then Node starts no thread, and svc finds no project. */
function needFolder(): void {
  try {
    process.cwd();
  } catch {
    throw new CliError(
      'The folder in which you run this was removed.',
      'Go to another one, and run it again: cd ~',
    );
  }
}

/** Prints the help of a command, or a page of the documents. */
function printHelp(words: readonly string[], program: Command, terminal: Terminal): void {
  const command = words.reduce<Command | undefined>(
    (parent, word) => parent?.commands.find((one) => one.name() === word),
    program,
  );
  if (command !== undefined) return command.outputHelp();
  const [topic = ''] = words;
  const folder = docsFolder();
  const topics = readdirSync(folder).flatMap((file) =>
    file.endsWith('.md') ? [file.slice(0, -'.md'.length)] : [],
  );
  if (words.length > 1 || !topics.includes(topic)) {
    throw new CliError(
      'There is no command and no page of that name.',
      `Pages: ${topics.join(', ')}. Commands: svc --help`,
      2,
    );
  }
  terminal.out(readFileSync(join(folder, `${topic}.md`), 'utf8').trimEnd());
}

/** Returns the folder of the documents. It is found from bin/svc.js, which npm starts through a symbolic link. */
function docsFolder(): string {
  return join(dirname(realpathSync(scriptPath())), '..', 'docs');
}
