import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EXIT_CODES } from '../../src/cli/program/program.ts';
import { commandTree, type KnownCommand, serviceCommandTree } from '../support/command-tree.ts';

/** The pages name commands and flags that exist, and the two pages of commands name all of them. */

const root = join(import.meta.dirname, '..', '..');
const docs = ['docs', 'service/docs'].flatMap((folder) =>
  readdirSync(join(root, folder)).flatMap((it) => (it.endsWith('.md') ? [`${folder}/${it}`] : [])),
);
const PAGES = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'service/README.md', ...docs];
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const commands = commandTree();
const serviceCommands = serviceCommandTree();
const byPath = new Map([
  ...commands.map((command) => [command.path, command] as const),
  ...serviceCommands.map((command) => [`svc-service ${command.path}`.trim(), command] as const),
]);

/** A row of a page of commands. */
function rowOf(program: string, { path, description, flags }: KnownCommand): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|');
  const shown = flags.map((one) => `\`${cell(one)}\``).join(', ');
  return `| \`${program} ${path}\` | ${cell(description)} | ${shown} |`;
}

function rowsOf(program: string, tree: readonly KnownCommand[]): string {
  const shown = tree.filter(({ flags, hasSubcommands }) => !hasSubcommands || flags.length > 0);
  const rows = shown.filter(({ path }) => path !== '').map((one) => rowOf(program, one));
  return `| command | what it does | flags |
|---|---|---|
${rows.join('\n')}`;
}

function commandsPage(): string {
  return `# Commands

\`svc COMMAND --help\` prints the same with examples. \`svc completion bash|zsh|fish\` prints a completion script for your
shell.

${rowsOf('svc', commands)}

${EXIT_CODES} \`svc run\` exits with the code of its client.

- \`--json\` prints JSON for programs. Notes for people go to stderr, so a shell can use stdout.
- A key is never an argument, because other programs can read it there.
- On a terminal svc wraps lines between words. \`NO_COLOR\` switches colours off.
`;
}

// After a change of the commands: npx vitest run test/spec/commands-page.test.ts -u
test('docs/commands.md has every command with its flags, and the exit codes', async () => {
  await expect(commandsPage()).toMatchFileSnapshot(join(root, 'docs/commands.md'));
});

function serviceCommandsPage(): string {
  return `# Commands of svc-service

\`svc-service COMMAND --help\` prints the same with examples. \`svc-service completion bash|zsh|fish\` prints a completion script
for your shell.

${rowsOf('svc-service', serviceCommands)}

${EXIT_CODES}
`;
}

test('service/docs/commands.md has every command of svc-service with its flags', async () => {
  await expect(serviceCommandsPage()).toMatchFileSnapshot(join(root, 'service/docs/commands.md'));
});

/** Code of a page: its fenced lines and its spans. */
function codeOf(page: string): readonly string[] {
  const text = read(page);
  const fences = [...text.matchAll(/^```[^\n]*\n(.*?)^```/gms)].map(([, code = '']) => code);
  const spans = [...text.replaceAll(/^```.*?^```/gms, '').matchAll(/`([^`\n]+)`/g)];
  return [
    ...fences.flatMap((code) => typedLines(code.replaceAll('\\\n', ' ').split('\n'))),
    ...spans.map(([, code = '']) => code),
  ];
}

/** In the text of a terminal only what follows a prompt was typed; the rest is output. */
function typedLines(lines: readonly string[]): readonly string[] {
  const typed = lines.filter((line) => line.startsWith('$ '));
  return typed.length === 0 ? lines : typed;
}

interface Call {
  readonly words: readonly string[];
  readonly flags: readonly string[];
}

/** The calls of svc in a line of code: up to a comment, another command or the client's own words. */
function callsIn(line: string): readonly Call[] {
  const code = line.replace(/(?:^|\s)#.*$/, '');
  const calls = code.matchAll(
    /(?:^\s*|[$(;|&"'] ?|-- |npx |\$ )(svc|svc-service) ((?:[^;&|)]|\[\|)*)/g,
  );
  return [...calls].map(([, program = '', rest = '']) => {
    const [own = ''] = rest.split(/ -- | -- ?$/);
    const tokens = own.split(/[\s"',]+/).filter(Boolean);
    const end = tokens.findIndex((token) => !/^[a-z][a-z-]*$/.test(token));
    const words = end === -1 ? tokens : tokens.slice(0, end);
    return {
      words: program === 'svc' || words.length === 0 ? words : [program, ...words],
      flags: tokens.flatMap((token) => /^--?[a-z][a-z-]*/.exec(token)?.[0] ?? []),
    };
  });
}

/** The longest run of words that names a command; undefined when the first word names none. */
function commandOf(words: readonly string[]): KnownCommand | undefined {
  for (let count = words.length; count > 0; count -= 1) {
    const command = byPath.get(words.slice(0, count).join(' '));
    if (command !== undefined) return command;
  }
  return undefined;
}

/** How many of the words name the command. */
function lengthOf({ path }: KnownCommand, words: readonly string[]): number {
  return path.split(' ').length + (words[0] === 'svc-service' ? 1 : 0);
}

const EVERYWHERE = ['--help', '--version', '-h', '-V'];

test.each(PAGES)('every command and flag of svc in the code of %s exists', (page) => {
  const wrong = codeOf(page).flatMap((line) =>
    callsIn(line).flatMap(({ words, flags }) => {
      if (words.length === 0) return flags.filter((one) => !EVERYWHERE.includes(one));
      const command = commandOf(words);
      if (command === undefined) return [`svc ${words[0]} in: ${line}`];
      const next = words[lengthOf(command, words)];
      if (command.hasSubcommands && next !== undefined) return [`svc ${command.path} ${next}`];
      const known = [...command.flagNames, ...EVERYWHERE];
      const unknown = flags.filter((flag) => !known.includes(flag));
      return unknown.map((flag) => `svc ${command.path} ${flag}`);
    }),
  );
  expect(wrong).toEqual([]);
});

test('the pages hold many calls, so that the test above reads something', () => {
  const calls = PAGES.flatMap((page) => codeOf(page).flatMap((line) => callsIn(line)));
  expect(calls.length).toBeGreaterThan(150);
  expect(callsIn('eval "$(svc print-config claude --shell fish)" # svc nothing')).toEqual([
    { words: ['print-config', 'claude'], flags: ['--shell'] },
  ]);
});

test('flags that stand alone in the pages for users belong to svc or to a program that is named', () => {
  const own = new Set([
    ...[...commands, ...serviceCommands].flatMap(({ flagNames }) => flagNames),
    ...EVERYWHERE,
  ]);
  // Of npm, npx, git, the benches and the clients.
  const others = new Set(OTHERS);
  const alone = PAGES.filter((page) => page !== 'CONTRIBUTING.md').flatMap((page) =>
    codeOf(page).filter((code) => /^--[a-z-]+(?:[ =]|$)/.test(code)),
  );
  const names = alone.map((code) => /^--[a-z-]+/.exec(code)?.[0] ?? '');
  expect(names.filter((name) => !own.has(name) && !others.has(name))).toEqual([]);
});

const OTHERS: readonly string[] = ['--auth-type', '--config', '--data', '--extension'];
