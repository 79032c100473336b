import { projectOf } from './named.ts';
import { readStore } from '../store.ts';
import { writeLine } from '../../core/memory/memory-lines.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext, Call } from '../context.ts';
import { isInForce } from './memory-rules.ts';
import { pagesOf } from './record-writer.ts';

/** Runs `svc memory export`: writes memories as JSON lines, or a project's rules as Markdown for an agent's file. */

interface ExportOptions {
  readonly space?: string;
  readonly as?: string;
}

/** The file for each value of --as. Agents read instructions from it, as Markdown. */
const FORMS: Readonly<Record<string, string>> = { claude: 'CLAUDE.md', agents: 'AGENTS.md' };

/** Records of a page: as many as the store returns at once. */
const PAGE = 1000;

/**
 * Writes memories to stdout, newest first, and their number to stderr. It leaves out memories that are stored
 * meanwhile. From a memory service it may skip a memory if others are forgotten meanwhile, and repeat one if others are
 * stored, because a service finds a page by the number of memories before it.
 */
export async function exportMemories({ options, context }: Call<ExportOptions>): Promise<void> {
  const { terminal } = context;
  const { space, as } = options;
  if (as !== undefined) return exportRules({ space, as }, context);
  const filter = { limit: PAGE, ...(space === undefined ? {} : { space }) };
  const count = await readStore(context, async ({ memory }) => {
    let written = 0;
    for await (const records of pagesOf(memory, filter)) {
      for (const record of records) terminal.out(writeLine(record));
      written += records.length;
      terminal.progress(`${written} memories`);
    }
    return written;
  });
  terminal.progressDone();
  terminal.note(`Exported: ${count}.`);
}

/** Writes the rules that hold in the space, or else in the current folder's project, oldest first. */
async function exportRules(
  { space, as }: { space: string | undefined; as: string },
  context: CommandContext,
): Promise<void> {
  const { terminal } = context;
  const file = FORMS[as];
  if (file === undefined) {
    throw new CliError(
      `--as: expected ${Object.keys(FORMS).join(' or ')}.`,
      'For example: svc memory export --as claude',
      2,
    );
  }
  const project = space ?? (await projectOf(process.cwd(), context.environment));
  const rules = await readStore(context, async ({ desk }) => desk?.rules({ space: project }));
  if (rules === undefined) {
    throw new CliError(
      'A memory service has no list of rules.',
      'Find the memories that state them: svc memory search "always"',
    );
  }
  const held = rules.filter(isInForce).toSorted((a, b) => a.at - b.at);
  if (held.length === 0) terminal.note(`No rule holds in ${project}.`);
  if (held.length === 0) return;
  terminal.out('## Rules of this project\n');
  for (const { text } of held) terminal.out(`- ${text.replaceAll(/\s+/g, ' ').trim()}`);
  terminal.note(
    `${held.length} rules of ${project}. To add them to your file: svc memory export --as ${as} >> ${file}`,
  );
}
