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
 * Runs `svc completion`: prints a script with which a shell completes command lines of svc. It is made from the
 * declared commands, so it is never outdated. All names are svc's own, so none needs quoting. For values that differ
 * between machines the script calls `svc completion --values KIND`.
 */

const SHELLS = ['bash', 'zsh', 'fish'] as const;

interface Place {
  /** The command that was typed so far: '' for svc itself, 'memory list' for that command. */
  readonly path: string;
  /** The words to propose: subcommands, and values of the command's argument. */
  readonly words: readonly string[];
  readonly options: readonly string[];
}

/** An option that needs a value, with the values to propose. */
interface Valued {
  readonly option: string;
  readonly values: readonly string[] | AskedValues;
}

const ASKED_VALUES = ['spaces', 'upstreams'] as const;
type AskedValues = (typeof ASKED_VALUES)[number];

export function printCompletion(
  shell: string | undefined,
  program: Command,
  terminal: Terminal,
): void {
  const known = SHELLS.find((one) => one === shell);
  if (known === undefined) {
    throw new CliError(
      `${program.name()} completion knows ${SHELLS.join(', ')}.`,
      `See: ${program.name()} completion --help`,
      2,
    );
  }
  const places = placesOf(program, '');
  terminal.out(SCRIPTS[known](programOf(program), places, valuedOf(program)));
}

type Completed = ReturnType<typeof programOf>;

/** Returns the names that a script uses for the program. `names`: all of them in a shell, separated by spaces. */
function programOf(program: Command) {
  const name = program.name();
  const names = name === 'svc' ? 'svc svc-local-proxy' : name;
  return { name, names, id: `_${name.replaceAll('-', '_')}` };
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

function placesOf(command: Command, path: string): readonly Place[] {
  const commands = command.commands.map((child) => child.name());
  const options = command.options.flatMap(({ long }) => (typeof long === 'string' ? [long] : []));
  const below = command.commands.flatMap((child) =>
    placesOf(child, `${path} ${child.name()}`.trim()),
  );
  const words = [...commands, ...(ARGUMENTS[path] ?? [])];
  return [{ path, words, options: [...options, '--help'] }, ...below];
}

const VALUES: Readonly<Record<string, readonly string[] | AskedValues>> = {
  '--memory-mode': MEMORY_MODES,
  '--compression-mode': COMPRESSION_MODES,
  '--api-style': DIALECTS,
  '--auth': ['x-api-key', 'bearer', 'none'],
  '--memory': ['embedded', 'hosted'],
  '--login': ['claude', 'codex'],
  '--host': ['127.0.0.1', '::1'],
  '--log': ['text', 'json', 'off'],
  '--shell': ['sh', 'fish', 'powershell', 'cmd'],
  '--values': ASKED_VALUES,
  '--space': 'spaces',
  '--to': 'spaces',
  '--upstream': 'upstreams',
  '--remove': 'upstreams',
};

function valuedOf(program: Command): readonly Valued[] {
  const all = [
    program,
    ...program.commands.flatMap(function below(one): Command[] {
      return [one, ...one.commands.flatMap(below)];
    }),
  ];
  const longs = all.flatMap(({ options }) =>
    options.flatMap(({ long, required, optional }) =>
      typeof long === 'string' && (required || optional) ? [long] : [],
    ),
  );
  return [...new Set(longs)].map((option) => {
    const values = VALUES[option] ?? [];
    // Only svc can list spaces and upstreams; svc-service cannot.
    return { option, values: typeof values === 'string' && program.name() !== 'svc' ? [] : values };
  });
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** Returns the script for bash. It has the statements of zsh's, with another way to get and propose words. */
function bashScript(
  { id, names }: Completed,
  places: readonly Place[],
  valued: readonly Valued[],
): string {
  return [
    `${id}() {`,
    '  local place="" words="" word="" skip="" at=1 previous="${COMP_WORDS[COMP_CWORD-1]}"',
    '  while [ "$at" -lt "$COMP_CWORD" ]; do',
    '    word="${COMP_WORDS[at]}"; at=$((at + 1))',
    ...placeLines(places, valued),
    '  done',
    ...valueLines(places, valued),
    '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    `complete -o default -F ${id} ${names}`,
  ].join('\n');
}

// Returns the script for zsh. It works without compinit in ~/.zshrc, and also as a file in fpath, which zsh runs at the
// first completion.
function zshScript(
  { id, names }: Completed,
  places: readonly Place[],
  valued: readonly Valued[],
): string {
  return [
    `#compdef ${names}`,
    `${id}() {`,
    '  local place="" proposed="" word="" skip="" previous="${words[CURRENT-1]}"',
    '  for word in "${(@)words[2,CURRENT-1]}"; do',
    ...placeLines(places, valued),
    '  done',
    ...valueLines(places, valued).map((line) => line.replaceAll('words=', 'proposed=')),
    '  if [ -n "$proposed" ]; then compadd -- ${=proposed}; else _files; fi',
    '}',
    `if [ "$funcstack[1]" = ${id} ]; then ${id} "$@"; else`,
    '  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i -D; }',
    `  compdef ${id} ${names}`,
    'fi',
  ].join('\n');
}

/** Returns the body of a loop over the typed words. It collects commands in `place`, and skips options and values. */
function placeLines(places: readonly Place[], valued: readonly Valued[]): readonly string[] {
  const known = places.map(({ path }) => path).join('|');
  return [
    '    if [ -n "$skip" ]; then skip=""; continue; fi',
    '    case "$word" in',
    `      ${valued.map(({ option }) => option).join('|')}) skip=1 ;;`,
    '      -*) ;;',
    `      *) case "|${known}|" in *"|\${place:+$place }$word|"*) place="\${place:+$place }$word" ;; esac ;;`,
    '    esac',
  ];
}

function valueLines(places: readonly Place[], valued: readonly Valued[]): readonly string[] {
  const ofPlace = places.map(
    ({ path, words, options }) => `      '${path}') words='${[...words, ...options].join(' ')}' ;;`,
  );
  return [
    '  case "$previous" in',
    ...valued.map(({ option, values }) => `    ${option}) words=${shellValues(values)} ;;`),
    '    *) case "$place" in',
    ...ofPlace,
    '    esac ;;',
    '  esac',
  ];
}

function shellValues(values: Valued['values']): string {
  return typeof values === 'string' ? `"$(${asking(values)})"` : `'${values.join(' ')}'`;
}

function asking(kind: AskedValues): string {
  return `svc completion --values ${kind} 2>/dev/null`;
}

function fishScript(
  { id, name }: Completed,
  places: readonly Place[],
  valued: readonly Valued[],
): string {
  const valuesOf = new Map(valued.map(({ option, values }) => [option, values]));
  const lines = places.flatMap(({ path, words, options }) => {
    const test = `test (_${id}_place) = '${path}'`;
    return [
      ...words.map((word) => `complete -c ${name} -f -n "${test}" -a '${word}'`),
      ...options.map((option) => {
        const values = valuesOf.get(option);
        return `complete -c ${name} -n "${test}" -l '${option.replace(/^--/, '')}'${fishValues(values)}`;
      }),
    ];
  });
  return [
    `function _${id}_place`,
    '  set -l place',
    '  set -l skip',
    '  for word in (commandline -opc)[2..-1]',
    '    if set -q skip[1]; set -e skip; set -l skip; continue; end',
    '    switch $word',
    `      case ${valued.map(({ option }) => option).join(' ')}`,
    '        set skip 1',
    "      case '-*'",
    "      case '*'",
    '        set -l next (string join " " $place $word)',
    `        contains -- $next ${places.flatMap(({ path }) => (path === '' ? [] : [`'${path}'`])).join(' ')}; and set place $place $word`,
    '    end',
    '  end',
    '  echo "$place"',
    'end',
    ...lines,
  ].join('\n');
}

function fishValues(values: Valued['values'] | undefined): string {
  if (values === undefined) return '';
  if (typeof values === 'string') return ` -x -a '(${asking(values)})'`;
  return values.length === 0 ? ' -r' : ` -x -a '${values.join(' ')}'`;
}

/** Age up to which the space of a request is proposed, in milliseconds: three months. */
const DAYS_MS = 90 * 24 * 3600 * 1000;

/** Runs `svc completion --values`: prints the possible values of an option, one on each line. */
export async function printValues(kind: string, context: CommandContext): Promise<void> {
  const known = ASKED_VALUES.find((one) => one === kind);
  if (known === undefined) {
    throw new CliError(
      `svc completion lists ${ASKED_VALUES.join(' and ')}.`,
      'See: svc completion --help',
      2,
    );
  }
  for (const value of await LISTS[known](context)) context.terminal.out(value);
}

const LISTS: Readonly<
  Record<AskedValues, (context: CommandContext) => Promise<readonly string[]>>
> = {
  // Returns the spaces with recent requests, because the request log sums these up fast.
  spaces: async (context) => {
    const since = Date.now() - DAYS_MS;
    const sums = await readLog(context, ({ requests }) => requests.sum({ since }));
    const all = sums.map(({ space }) => space).filter((space) => space !== '');
    const names = namesOf(all, context);
    return [...new Set(['global', ...all.map((space) => names.of(space))])].toSorted();
  },
  upstreams: async ({ environment }) => {
    const file = await readConfigFile(configFolder(environment));
    const configured = asList(asRecord(file?.value)['upstreams']).map((it) =>
      asText(asRecord(it)['name']),
    );
    return [...new Set([...configured.filter((name) => name !== ''), ...WELL_KNOWN_NAMES])];
  },
};
