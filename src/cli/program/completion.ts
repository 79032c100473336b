import { readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/own-folders.ts';
import { namesOf } from '../memory/named.ts';
import { readLog } from '../store.ts';
import { asList, asRecord, asText } from '../../core/bytes/json-fields.ts';
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
 * script asks svc which words may follow, with `svc completion --after -- WORDS`, and chooses those with the right
 * beginning. So a script that was stored is never outdated.
 */

type Script = (names: {
  readonly name: string;
  readonly names: string;
  readonly id: string;
}) => string;

const SCRIPTS: Readonly<Record<string, Script>> = {
  bash: ({ name, names, id }) => `${id}() {
  local words="$(${name} completion --after -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)"
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F ${id} ${names}`,
  // It works without compinit in ~/.zshrc, and also as a file in fpath, which zsh runs at the first completion.
  zsh: ({ name, names, id }) => `#compdef ${names}
${id}() {
  local proposed="$(${name} completion --after -- "\${(@)words[2,CURRENT-1]}" 2>/dev/null)"
  if [ -n "$proposed" ]; then compadd -- \${=proposed}; else _files; fi
}
if [ "$funcstack[1]" = ${id} ]; then ${id} "$@"; else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i -D; }
  compdef ${id} ${names}
fi`,
  // fish calls the function of `-n` before it proposes the words of `-a`. It proposes files if that function fails,
  // which it does if svc prints no word.
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

const STARTED = ['claude', 'codex', ...named((client) => 'launch' in client)];
const CONNECTED = ['claude', 'codex', ...named(({ file }) => typeof file !== 'string')];

function named(isMeant: (client: (typeof OTHER_CLIENTS)[number]) => boolean): readonly string[] {
  return OTHER_CLIENTS.filter(isMeant).map(({ name }) => name);
}

/** The values of each command's first argument. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  run: STARTED,
  connect: CONNECTED,
  disconnect: CONNECTED,
  completion: SHELLS,
};

/** The values of options: a list, or a function that reads them on this machine. */
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

/** Runs `svc completion --after`: prints the words that may follow these complete words, one on each line. */
export async function printNext(
  typed: readonly string[],
  program: Command,
  context: CommandContext,
): Promise<void> {
  let command = program;
  let valued: string | undefined;
  for (const word of typed) {
    // The word is the value of the option before it.
    if (valued !== undefined) valued = undefined;
    else if (word.startsWith('-')) valued = valuedIn(command, word);
    else command = command.commands.find((child) => child.name() === word) ?? command;
  }
  const words = valued === undefined ? wordsIn(command) : await valuesOf(valued, program, context);
  for (const word of words) if (PLAIN_WORD.test(word)) context.terminal.out(word);
}

/** Matches a word that no shell expands. Bash would run a command that stands in a proposed word. */
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

/** Returns the option if it takes a value. */
function valuedIn(command: Command, word: string): string | undefined {
  const option = command.options.find(({ long }) => long === word);
  return option !== undefined && (option.required || option.optional) ? word : undefined;
}

/** Returns the subcommands, the values of the command's argument, and its options. */
function wordsIn(command: Command): readonly string[] {
  return [
    ...command.commands.map((child) => child.name()),
    ...(ARGUMENTS[command.name()] ?? []),
    ...command.options.flatMap(({ long }) => (typeof long === 'string' ? [long] : [])),
    '--help',
  ];
}

/** Age up to which the space of a request is proposed, in milliseconds: three months. */
const DAYS_MS = 90 * 24 * 3600 * 1000;

/** Returns the spaces with recent requests, because the request log sums these up fast. */
async function spaces(context: CommandContext): Promise<readonly string[]> {
  const since = Date.now() - DAYS_MS;
  const sums = await readLog(context, ({ requests }) => requests.sum({ since }));
  const all = sums.map(({ space }) => space).filter((space) => space !== '');
  const names = namesOf(all, context);
  return [...new Set(['global', ...all.map((space) => names.of(space))])].toSorted();
}

async function upstreams({ environment }: CommandContext): Promise<readonly string[]> {
  const file = await readConfigFile(configFolder(environment));
  const configured = asList(asRecord(file?.value)['upstreams']).map((it) =>
    asText(asRecord(it)['name']),
  );
  return [...new Set([...configured.filter((name) => name !== ''), ...WELL_KNOWN_NAMES])];
}
