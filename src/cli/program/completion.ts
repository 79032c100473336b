import { readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/own-folders.ts';
import { namesOf } from '../memory/named.ts';
import { readLog } from '../store.ts';
import { asText } from '../../core/bytes/json-fields.ts';
import { upstreamEntries } from '../../core/settings/config-draft.ts';
import { WELL_KNOWN_NAMES } from '../../core/settings/catalog.ts';
import type { CommandContext } from '../context.ts';
import { OTHER_CLIENTS } from '../clients/other-clients.ts';
import type { Command } from 'commander';
import { DIALECTS } from '../../core/dialects/apis.ts';
import { COMPRESSION_MODES, MEMORY_MODES } from '../../core/http/modes.ts';
import { CliError } from '../cli-error.ts';
import type { Terminal } from '../terminal.ts';

/**
 * Runs `svc completion`: prints a script with which a shell completes command lines of svc. At each completion the
 * script asks svc, with `svc completion --after -- WORDS`, which words may follow. So an old script knows new commands.
 */

/** Writes the script of a shell. */
type Script = (names: {
  /** The program, such as svc-service. */
  readonly name: string;
  /** All commands that start the program. */
  readonly names: string;
  /** The name of the function in the script. */
  readonly id: string;
}) => string;

const SCRIPTS: Readonly<Record<string, Script>> = {
  bash: ({ name, names, id }) => `${id}() {
  local words="$(${name} completion --after -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)"
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F ${id} ${names}`,
  // The script works in ~/.zshrc, also without compinit, and as a file in fpath that zsh runs at the first completion.
  zsh: ({ name, names, id }) => `#compdef ${names}
${id}() {
  local proposed="$(${name} completion --after -- "\${(@)words[2,CURRENT-1]}" 2>/dev/null)"
  if [ -n "$proposed" ]; then compadd -- \${=proposed}; else _files; fi
}
if [ "$funcstack[1]" = ${id} ]; then ${id} "$@"; else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i -D; }
  compdef ${id} ${names}
fi`,
  // fish calls the function after `-n`, and then proposes the words after `-a`. The function fails if svc prints no
  // word; then fish proposes files.
  fish: ({ name, id }) => `function ${id}
  set -g ${id}_words (${name} completion --after -- (commandline -opc)[2..-1] 2>/dev/null)
  set -q ${id}_words[1]
end
complete -c ${name} -f -n ${id} -a '$${id}_words'`,
};

const SHELLS = Object.keys(SCRIPTS);

export function printCompletion(
  shell: string | undefined,
  program: Command,
  terminal: Terminal,
): void {
  const name = program.name();
  const script = SCRIPTS[shell ?? ''];
  if (script === undefined) {
    const known = `${name} completion knows ${SHELLS.join(', ')}.`;
    throw new CliError(known, `See: ${name} completion --help`, 2);
  }
  const names = name === 'svc' ? 'svc svc-local-proxy' : name;
  terminal.out(script({ name, names, id: `_${name.replaceAll('-', '_')}` }));
}

/** The clients that `svc run` starts, and those whose settings `svc connect` can change without --hooks. */
const STARTED = ['claude', 'codex', ...named((client) => 'launch' in client)];
const CONNECTED = ['claude', 'codex', ...named(({ file }) => typeof file !== 'string')];

function named(isMeant: (client: (typeof OTHER_CLIENTS)[number]) => boolean): readonly string[] {
  return OTHER_CLIENTS.filter(isMeant).map(({ name }) => name);
}

/** The values of the first argument of commands. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  run: STARTED,
  connect: CONNECTED,
  disconnect: CONNECTED,
  completion: SHELLS,
};

/** The values of options: a list, or a function that finds them on this machine. */
const VALUES: Readonly<
  Record<string, readonly string[] | ((context: CommandContext) => Promise<readonly string[]>)>
> = {
  '--memory-mode': MEMORY_MODES,
  '--compression-mode': COMPRESSION_MODES,
  '--api-style': DIALECTS,
  '--auth': ['x-api-key', 'bearer', 'none'],
  '--memory': ['embedded', 'hosted'],
  '--login': ['claude', 'codex'],
  '--host': ['127.0.0.1', '::1'],
  '--log': ['text', 'json', 'off'],
  '--shell': ['sh', 'fish', 'powershell', 'cmd'],
  '--space': spaces,
  '--to': spaces,
  '--upstream': upstreams,
  '--remove': upstreams,
};

/** Runs `svc completion --after`: prints the words that may follow the typed ones, one on each line. */
export async function printNext(
  typed: readonly string[],
  program: Command,
  context: CommandContext,
): Promise<void> {
  let command = program;
  let valued: string | undefined;
  for (const word of typed) {
    // The previous word is an option, and this word is its value.
    if (valued !== undefined) valued = undefined;
    else if (word.startsWith('-')) valued = valuedIn(command, word);
    else command = command.commands.find((child) => child.name() === word) ?? command;
  }
  const words = valued === undefined ? wordsIn(command) : await valuesOf(valued, program, context);
  for (const word of words) if (PLAIN_WORD.test(word)) context.terminal.out(word);
}

/** Matches a word in which no shell expands anything. Bash would run a command that a proposed word contains. */
const PLAIN_WORD = /^[\p{L}\p{N}_./@:+,=%-]+$/u;

async function valuesOf(
  option: string,
  program: Command,
  context: CommandContext,
): Promise<readonly string[]> {
  const values = VALUES[option] ?? [];
  if (typeof values !== 'function') return values;
  // Only svc can list spaces and upstreams; svc-service cannot.
  return program.name() === 'svc' ? values(context) : [];
}

/** Returns the word if it is a long option of the command that takes a value; otherwise undefined. */
function valuedIn(command: Command, word: string): string | undefined {
  const option = command.options.find(({ long }) => long === word);
  return option !== undefined && (option.required || option.optional) ? word : undefined;
}

/** Returns the subcommands of a command, the values of its first argument, and its options. */
function wordsIn(command: Command): readonly string[] {
  return [
    ...command.commands.map((child) => child.name()),
    ...(ARGUMENTS[command.name()] ?? []),
    ...command.options.flatMap(({ long }) => (typeof long === 'string' ? [long] : [])),
    '--help',
  ];
}

/** How far back requests are searched for spaces, in milliseconds: 90 days, which the request log keeps. */
const DAYS_MS = 90 * 24 * 3600 * 1000;

/**
 * Returns the names of the spaces of recent requests, and `global`. The request log sums them up faster than the memory
 * lists its spaces.
 */
async function spaces(context: CommandContext): Promise<readonly string[]> {
  const since = Date.now() - DAYS_MS;
  const sums = await readLog(context, ({ requests }) => requests.sum({ since }));
  const all = sums.map(({ space }) => space).filter((space) => space !== '');
  const names = namesOf(all, context);
  return [...new Set(['global', ...all.map((space) => names.of(space))])].toSorted();
}

async function upstreams({ environment }: CommandContext): Promise<readonly string[]> {
  const file = await readConfigFile(configFolder(environment));
  const configured = upstreamEntries(file?.value).map((one) => asText(one['name']));
  return [...new Set([...configured.filter((name) => name !== ''), ...WELL_KNOWN_NAMES])];
}
