import type { Command } from 'commander';
import { CliError } from '../cli-error.ts';
import type { Terminal } from '../terminal.ts';

/**
 * `svc completion`: what a shell may propose after `svc`, made from the commands as they are
 * declared, so that it is never out of date. The names are svc's own: nothing needs quoting.
 */

const SHELLS = ['bash', 'zsh', 'fish'] as const;

interface Place {
  /** The words before: '' for svc itself, 'memory list' for that command. */
  readonly path: string;
  readonly commands: readonly string[];
  readonly options: readonly string[];
}

export function printCompletion(shell: string, program: Command, terminal: Terminal): void {
  const known = SHELLS.find((one) => one === shell);
  if (known === undefined) {
    throw new CliError(
      `svc completion knows ${SHELLS.join(', ')}.`,
      'See: svc completion --help',
      2,
    );
  }
  const places = placesOf(program, '');
  terminal.out(known === 'fish' ? fishScript(places) : bashScript(places, known));
}

function placesOf(command: Command, path: string): readonly Place[] {
  const commands = command.commands.map((child) => child.name());
  const options = command.options.flatMap(({ long }) => (typeof long === 'string' ? [long] : []));
  const below = command.commands.flatMap((child) =>
    placesOf(child, `${path} ${child.name()}`.trim()),
  );
  return [{ path, commands, options: [...options, '--help'] }, ...below];
}

/** `svc run` takes a client, which is no command of svc's. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  run: ['claude', 'codex'],
  completion: SHELLS,
};

function wordsAt({ path, commands }: Place): readonly string[] {
  return [...commands, ...(ARGUMENTS[path] ?? [])];
}

function bashScript(places: readonly Place[], shell: 'bash' | 'zsh'): string {
  const cases = places.map((place) => {
    const words = [...wordsAt(place), ...place.options].join(' ');
    return `    '${place.path}') words='${words}' ;;`;
  });
  return [
    ...(shell === 'zsh' ? ['autoload -U +X bashcompinit && bashcompinit'] : []),
    '_svc() {',
    "  local place='' words='' word",
    '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
    '    case "$word" in -*) ;; *) place="${place:+$place }$word" ;; esac',
    '  done',
    '  case "$place" in',
    ...cases,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    'complete -o default -F _svc svc svc-local-proxy',
  ].join('\n');
}

function fishScript(places: readonly Place[]): string {
  const lines = places.flatMap((place) => {
    const test = `test (__svc_place) = '${place.path}'`;
    const words = wordsAt(place).map((word) => `complete -c svc -f -n "${test}" -a '${word}'`);
    const options = place.options.map(
      (option) => `complete -c svc -n "${test}" -l '${option.replace(/^--/, '')}'`,
    );
    return [...words, ...options];
  });
  return [
    'function __svc_place',
    "  set -l words (commandline -opc | string match -v -- '-*')",
    '  echo "$words[2..-1]"',
    'end',
    ...lines,
  ].join('\n');
}
