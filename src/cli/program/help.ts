import { readFileSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import { CliError } from '../cli-error.ts';
import { scriptPath } from '../context.ts';
import type { Terminal } from '../terminal.ts';

/** `svc help WORDS`: the help of a command, or a page of the documents in this package. */

export function printHelp(words: readonly string[], program: Command, terminal: Terminal): void {
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

/** npm starts bin/svc.js through a link. */
function docsFolder(): string {
  return join(dirname(realpathSync(scriptPath())), '..', 'docs');
}
