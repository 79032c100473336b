import type { Command } from 'commander';
import type { CommandContext } from '../context.ts';
import type { AddOptions, MoveOptions } from '../memory/memory-add.ts';
import type { ExportOptions } from '../memory/memory-export.ts';
import type { ImportOptions } from '../memory/memory-import.ts';
import type { JoinOptions, ShareOptions } from '../memory/memory-share.ts';
import { openStore } from '../open-store.ts';
import type { Finish } from './program.ts';

/** Declares the commands with which a person owns the memory: put in, move, take out, bring back. */
export function addOwningCommands(memory: Command, context: CommandContext, finish: Finish): void {
  addAdd(memory, context);
  addMove(memory, context);
  addExport(memory, context);
  addImport(memory, context);
  addShare(memory, context);
  addJoin(memory, context, finish);
}

function addAdd(memory: Command, context: CommandContext): void {
  memory
    .command('add')
    .description('Store a statement as a memory, for the project of this folder or for all')
    .argument('<words...>')
    .option('--space <name>', 'another space; "global" is recalled in every project')
    .option('--json', 'print its reference and space as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc memory add --space global "I write dates as ISO 8601."',
    )
    .action(async (words: readonly string[], options: AddOptions) => {
      const { addMemory } = await import('../memory/memory-add.ts');
      const request = { text: words.join(' '), folder: process.cwd(), options };
      await addMemory(request, context, openStore);
    });
}

function addMove(memory: Command, context: CommandContext): void {
  memory
    .command('move')
    .description('Move memories to another space')
    .argument('<refs...>', 'references of the memories')
    .requiredOption('--to <name>', 'the new space; "global" is recalled in every project')
    .option('--space <name>', 'their present space, if several spaces have them')
    .option('--json', 'print the count as JSON')
    .addHelpText('after', '\nExamples:\n  $ svc memory move m_… --to global')
    .action(async (refs: readonly string[], options: MoveOptions) => {
      const { moveMemories } = await import('../memory/memory-add.ts');
      await moveMemories({ refs, options }, context, openStore);
    });
}

function addExport(memory: Command, context: CommandContext): void {
  memory
    .command('export')
    .description(
      "Print all memories as lines of JSON, or a project's rules for CLAUDE.md or AGENTS.md",
    )
    .option('--space <name>', 'only this space')
    .option('--as <form>', 'the rules of this project as Markdown: claude or agents')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc memory export > memories.jsonl\n  $ svc memory export --as claude >> CLAUDE.md',
    )
    .action(async (options: ExportOptions) => {
      const { exportMemories } = await import('../memory/memory-export.ts');
      await exportMemories({ folder: process.cwd(), options }, context, openStore);
    });
}

function addImport(memory: Command, context: CommandContext): void {
  memory
    .command('import')
    .description('Import an export, or the transcripts that a client keeps on this machine')
    .argument('[file]', 'lines of JSON from export; without a file, or with "-", standard input')
    .option(
      '--from <client>',
      'read the transcripts of claude-code or codex; without --yes only count',
    )
    .option('--space <name>', 'import everything into this space')
    .option('-y, --yes', 'with --from: write the memories')
    .option('--dry-run', 'count and write nothing')
    .option('--json', 'print the counts as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc memory import --from claude-code\n  $ svc memory import --from claude-code --yes',
    )
    .action(async (file: string | undefined, options: ImportOptions) => {
      const { importMemories } = await import('../memory/memory-import.ts');
      const request = file === undefined ? { options } : { file, options };
      await importMemories(request, context, openStore);
    });
}

function addShare(memory: Command, context: CommandContext): void {
  memory
    .command('share')
    .description('Write rules and memories of this project into .svc/memory.md, for colleagues')
    .argument('[refs...]', 'memories (m_…) and rules (r_…); without any, all rules that hold')
    .option('--remove <id...>', 'take these entries (s_…) out of the file')
    .option('--json', 'print the counts as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ svc memory share
  $ svc memory share m_… r_…
  $ svc memory share --remove s_…

The file is part of your repository. Review and commit it; a colleague reads it with: svc memory join`,
    )
    .action(async (refs: readonly string[], options: ShareOptions) => {
      const { shareMemories } = await import('../memory/memory-share.ts');
      await shareMemories({ refs, folder: process.cwd(), options }, context, openStore);
    });
}

function addJoin(memory: Command, context: CommandContext, finish: Finish): void {
  memory
    .command('join')
    .description("Read the memories that colleagues share in this repository's .svc/memory.md")
    .option('--accept', 'take them as your own without a question: rules hold')
    .option('-y, --yes', 'store them as unverified: they are recalled, and no rule holds')
    .option('--json', 'print the counts as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ svc memory join
  $ svc memory join --accept

Nothing that you retired or forgot comes back, and no entry replaces a rule of yours.`,
    )
    .action(async (options: JoinOptions) => {
      const { joinMemories } = await import('../memory/memory-share.ts');
      const { confirmer, isAsked } = await import('./confirmer.ts');
      const request = { folder: process.cwd(), options };
      const asks = options.json !== true && isAsked() ? { confirm: confirmer() } : {};
      finish(await joinMemories({ ...request, ...asks }, context, openStore));
    });
}
