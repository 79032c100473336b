import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EXIT_CODES } from '../../src/cli/program/program.ts';
import { commandTree, type KnownCommand } from '../support/command-tree.ts';

/** The pages name commands and flags that exist, and docs/commands.md names all of them. */

const root = join(import.meta.dirname, '..', '..');
const docs = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
const PAGES = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', ...docs.map((it) => `docs/${it}`)];
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const commands = commandTree();
const byPath = new Map(commands.map((command) => [command.path, command]));

/** A row of docs/commands.md. */
function rowOf({ path, description, flags }: KnownCommand): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|');
  const shown = flags.map((one) => `\`${cell(one)}\``).join(', ');
  return `| \`svc ${path}\` | ${cell(description)} | ${shown} |`;
}

function commandsPage(): string {
  const shown = commands.filter(({ flags, hasSubcommands }) => !hasSubcommands || flags.length > 0);
  const rows = shown.filter(({ path }) => path !== '').map(rowOf);
  return `# Commands

\`svc COMMAND --help\` prints the same with examples. \`svc completion bash|zsh|fish\` prints a completion script for your
shell.

| command | what it does | flags |
|---|---|---|
${rows.join('\n')}

${EXIT_CODES} \`svc run\` exits with the code of its client.

- \`--json\` prints JSON for programs. Notes for people go to stderr, so a shell can use stdout.
- A key is never an argument, because other programs can read it there.
- On a terminal svc wraps lines between words. \`NO_COLOR\` switches colours off.
`;
}

// After a change of the commands: npx vitest run --project unit test/spec/commands-page.test.ts -u
test('docs/commands.md has every command with its flags, and the exit codes', async () => {
  await expect(commandsPage()).toMatchFileSnapshot(join(root, 'docs/commands.md'));
});

/** Code of a page: its fenced lines and its spans. */
function codeOf(page: string): readonly string[] {
  const text = read(page);
  const fences = [...text.matchAll(/^```[^\n]*\n(.*?)^```/gms)].map(([, code = '']) => code);
  const spans = [...text.replaceAll(/^```.*?^```/gms, '').matchAll(/`([^`\n]+)`/g)];
  return [
    ...fences.flatMap((code) => code.replaceAll('\\\n', ' ').split('\n')),
    ...spans.map(([, code = '']) => code),
  ];
}

interface Call {
  readonly words: readonly string[];
  readonly flags: readonly string[];
}

/** The calls of svc in a line of code: up to a comment, another command or the client's own words. */
function callsIn(line: string): readonly Call[] {
  const code = line.replace(/(?:^|\s)#.*$/, '');
  const calls = code.matchAll(/(?:^\s*|[$(;|&"'] ?|-- |npx |\$ )svc ((?:[^;&|)]|\[\|)*)/g);
  return [...calls].map(([, rest = '']) => {
    const [own = ''] = rest.split(/ -- | -- ?$/);
    const tokens = own.split(/[\s"',]+/).filter(Boolean);
    const end = tokens.findIndex((token) => !/^[a-z][a-z-]*$/.test(token));
    return {
      words: end === -1 ? tokens : tokens.slice(0, end),
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

const EVERYWHERE = ['--help', '--version', '-h', '-V'];

test.each(PAGES)('every command and flag of svc in the code of %s exists', (page) => {
  const wrong = codeOf(page).flatMap((line) =>
    callsIn(line).flatMap(({ words, flags }) => {
      if (words.length === 0) return flags.filter((one) => !EVERYWHERE.includes(one));
      const command = commandOf(words);
      if (command === undefined) return [`svc ${words[0]} in: ${line}`];
      const next = words[command.path.split(' ').length];
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
  const own = new Set([...commands.flatMap(({ flagNames }) => flagNames), ...EVERYWHERE]);
  // Of npm, npx, git, the benches and the clients.
  const others = new Set(OTHERS);
  const alone = PAGES.filter((page) => page !== 'CONTRIBUTING.md').flatMap((page) =>
    codeOf(page).filter((code) => /^--[a-z-]+(?:[ =]|$)/.test(code)),
  );
  const names = alone.map((code) => /^--[a-z-]+/.exec(code)?.[0] ?? '');
  expect(names.filter((name) => !own.has(name) && !others.has(name))).toEqual([]);
});

const OTHERS: readonly string[] = ['--auth-type', '--config', '--data', '--extension'];
