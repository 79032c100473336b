import type { WhyOptions } from '../memory/memory-why.ts';
import type { Command } from 'commander';
import { addSpaces } from './program-spaces.ts';
import type { CommandContext } from '../context.ts';
import type { ForgetOptions, GetOptions, ListOptions } from '../memory/memory.ts';
import type { RulesOptions } from '../memory/memory-rules.ts';
import type { StaleOptions } from '../memory/memory-stale.ts';
import { addOwningCommands } from './program-owning.ts';
import type { ExplainOptions } from '../requests/explain.ts';
import type { RequestsOptions } from '../requests/requests.ts';
import type { QuotaOptions } from '../requests/quota.ts';
import type { CacheOptions } from '../requests/cache.ts';
import type { StatsOptions } from '../requests/stats.ts';
import { openStore } from '../open-store.ts';
import type { Finish } from './program.ts';

/** Declares the commands that look into the store. */
export function addMemoryCommands(program: Command, context: CommandContext, finish: Finish): void {
  addRequests(program, context);
  const memory = program.command('memory').description('List, search, add and forget memories');
  memory.hook('preAction', (_, command) => readTypedSpaces(command, context));
  addListing(memory, context);
  addGet(memory, context);
  addCode(memory, context);
  addWhy(memory, context);
  addRules(memory, context);
  addForget(memory, context, finish);
  addOwningCommands(memory, context, finish);
  addSpaces(memory, context);
  addMcp(program, context);
}

/** The options with which every command of the memory names a space. */
const SPACE_OPTIONS = ['space', 'to'];

async function readTypedSpaces(command: Command, context: CommandContext): Promise<void> {
  for (const name of SPACE_OPTIONS) {
    const typed: unknown = command.getOptionValue(name);
    if (typeof typed !== 'string') continue;
    // oxlint-disable-next-line no-await-in-loop -- One or two.
    const { typedSpace } = await import('../memory/typed-space.ts');
    // oxlint-disable-next-line no-await-in-loop -- One or two.
    command.setOptionValue(name, await typedSpace(typed, context, openStore));
  }
}

function addRequests(program: Command, context: CommandContext): void {
  program
    .command('requests')
    .description('List requests, newest first, or show one request in full')
    .argument('[id]', 'x-svc-request-id of the request to show')
    .option('--limit <number>', 'how many at most, up to 1000', '20')
    .option('--id <request>', 'same as the argument')
    .option('--json', 'print a JSON list')
    .addHelpText('after', '\nExamples:\n  $ svc requests --limit 5\n  $ svc requests req_…')
    .action(async (id: string | undefined, options: RequestsOptions) => {
      const { listRequests } = await import('../requests/requests.ts');
      const chosen = id === undefined ? options : { ...options, id };
      await listRequests(chosen, context, openStore);
    });
  program
    .command('statusline')
    .description('Print one line for the status line of Claude Code')
    .addHelpText(
      'after',
      `
In ~/.claude/settings.json:
  "statusLine": { "type": "command", "command": "svc statusline" }

The command reads the session from the JSON that Claude Code writes to its stdin. It shows how many
prompts got memories, the tokens that svc saved (at full price), and with a key their list price.`,
    )
    .action(async () => {
      const { printStatusLine } = await import('../requests/statusline.ts');
      const { sessionFacts } = await import('../compose-statusline.ts');
      await printStatusLine({ ...context, stdin: process.stdin }, sessionFacts);
    });
  program
    .command('explain')
    .description('Explain a state or an error of svc, and what to do')
    .argument('[name]', 'its name or the beginning of it; without a name, list all')
    .option('--json', 'print a JSON list')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc explain bypassed_not_worth_it\n  $ svc explain UPSTREAM_TIMEOUT',
    )
    .action(async (name: string | undefined, options: ExplainOptions) => {
      const { explainState } = await import('../requests/explain.ts');
      explainState(name, options, context);
    });
  program
    .command('stats')
    .description('Sum up requests, tokens and costs by day, client and project')
    .option('--days <number>', 'number of days up to today, at most 90', '30')
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExamples:\n  $ svc stats\n  $ svc stats --days 7 --json')
    .action(async (options: StatsOptions) => {
      const { showStats } = await import('../requests/stats.ts');
      await showStats(options, context, openStore);
    });
  program
    .command('quota')
    .description('Show how much of your plan is left, when it resets, and what used it')
    .option('--json', 'print one JSON list')
    .addHelpText('after', '\nExamples:\n  $ svc quota\n  $ svc quota --json')
    .action(async (options: QuotaOptions) => {
      const { showQuota } = await import('../requests/quota.ts');
      await showQuota(options, context, openStore);
    });
  program
    .command('cache')
    .description("Rank the causes of misses in the provider's prompt cache, the dearest first")
    .option('--days <number>', 'number of days up to now, at most 90', '7')
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExamples:\n  $ svc cache\n  $ svc cache --days 30 --json')
    .action(async (options: CacheOptions) => {
      const { showCache } = await import('../requests/cache.ts');
      await showCache(options, context, openStore);
    });
}

function addListing(memory: Command, context: CommandContext): void {
  const list = async (words: string | undefined, options: ListOptions): Promise<void> => {
    const { listMemories } = await import('../memory/memory.ts');
    const request = words === undefined ? { options } : { words, options };
    await listMemories(request, context, openStore);
  };
  withListOptions(memory.command('list').description('List memories, newest first'))
    .addHelpText('after', '\nExamples:\n  $ svc memory list --limit 5')
    .action((options: ListOptions) => list(undefined, options));
  withListOptions(memory.command('search').description('Find memories by words, best first'))
    .argument('<words...>')
    .addHelpText('after', '\nExamples:\n  $ svc memory search staging database')
    .action((words: readonly string[], options: ListOptions) => list(words.join(' '), options));
}

function addGet(memory: Command, context: CommandContext): void {
  memory
    .command('get')
    .description('Print the exact text of a memory: a part of it, or at most 1,500 tokens')
    .argument('<ref>', 'its reference, from list or search')
    .option('--lines <from-to>', 'only these lines, counted from 1')
    .option('--grep <pattern>', 'only lines that match, with their numbers')
    .option('--context <lines>', 'with --grep: lines around each match, up to 50', '2')
    .option('--around <name>', 'only the function, class or heading of this name')
    .option('--all', 'the whole text')
    .option('--json', 'print the whole record')
    .addHelpText(
      'after',
      `
Examples:
  $ svc memory get m_… --lines 1-200
  $ svc memory get m_… --grep 'export (class|function)' --context 5
  $ svc memory get m_… --around parseConfig
  $ svc memory get m_… --all > text.txt

The text on stdout is exact. If it is only a part, stderr says how to get the rest.`,
    )
    .action(async (ref: string, options: GetOptions) => {
      const { getMemory } = await import('../memory/memory.ts');
      await getMemory({ ref, options }, context, openStore);
    });
}

function addCode(memory: Command, context: CommandContext): void {
  memory
    .command('show')
    .description('Show the origin of a memory, and whether its files have changed')
    .argument('<ref>', 'its reference, from list, search or a recalled block')
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExamples:\n  $ svc memory show m_…')
    .action(async (ref: string, { json }: { readonly json?: boolean }) => {
      const { showMemory } = await import('../memory/memory-show.ts');
      await showMemory({ ref, json }, context, openStore);
    });
  withListOptions(
    memory.command('stale').description('List memories whose files have changed since, by project'),
  )
    .addHelpText(
      'after',
      `
Examples:
  $ svc memory stale --limit 5
  $ svc memory stale --space shop --json

The command lists a memory if a file that its exchange edited, or read and named, has changed or is
gone. svc compares only the files; it does not judge the text of the memory.`,
    )
    .action(async (options: StaleOptions) => {
      const { listStale } = await import('../memory/memory-stale.ts');
      await listStale(options, context, openStore);
    });
}

function addWhy(memory: Command, context: CommandContext): void {
  memory
    .command('why')
    .description('Say what recall weighs for a prompt, and why each memory is told or not')
    .argument('<prompt>', 'the words of a person')
    .option('--space <name>', 'in this space; without it, for the project of this folder')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc memory why "why does the parser drop the last chunk?"',
    )
    .action(async (prompt: string, options: WhyOptions) => {
      const { explainRecall } = await import('../memory/memory-why.ts');
      await explainRecall({ prompt, folder: process.cwd(), options }, context, openStore);
    });
}

function addRules(memory: Command, context: CommandContext): void {
  memory
    .command('rules')
    .description('List the rules and corrections that you stated; pin, edit or retire one')
    .argument('[sentence...]', 'with --edit: the new sentence')
    .option('--space <name>', 'only this space')
    .option('--all', 'also the rules that were replaced or retired')
    .option('--retire <id>', 'never place this rule again')
    .option('--restore <id>', 'take back --retire or --pin')
    .option('--pin <id>', 'place this rule in every conversation of its project')
    .option('--edit <id>', 'retire this rule and state another one in its place')
    .option('--json', 'print a JSON list')
    .addHelpText(
      'after',
      `
Examples:
  $ svc memory rules
  $ svc memory rules --retire r_…
  $ svc memory rules --edit r_… "Always use pnpm here."

svc finds a rule in what you say: "from now on …", "no, we use pnpm here", "never touch generated files".
A later sentence about the same thing replaces it. svc places a rule when a prompt falls under it.`,
    )
    .action(async (sentence: readonly string[], options: RulesOptions) => {
      const { showRules } = await import('../memory/memory-rules.ts');
      await showRules({ words: sentence.join(' '), options }, context, openStore);
    });
}

function addForget(memory: Command, context: CommandContext, finish: Finish): void {
  memory
    .command('forget')
    .description('Forget memories permanently; svc does not capture them again')
    .argument('[refs...]', 'references of the memories')
    .option('--search <words>', 'all memories that match these words')
    .option('--space <name>', 'only this space; without other arguments: all of its memories')
    .option('-y, --yes', 'do not ask; required without a terminal')
    .option('--json', 'print the count as JSON')
    .addHelpText(
      'after',
      `
If several projects hold the same text, the command forgets it in the project of the current folder and
names the others.

Examples:
  $ svc memory forget m_…
  $ svc memory forget m_… --space shop
  $ svc memory forget --search "old host" --yes`,
    )
    .action(async (refs: readonly string[], options: ForgetOptions) => {
      const { forgetMemories } = await import('../memory/memory.ts');
      const { confirmer, isAsked } = await import('./confirmer.ts');
      const confirm = isAsked() ? confirmer() : undefined;
      const folder = process.cwd();
      finish(await forgetMemories({ refs, folder, options, confirm }, context, openStore));
    });
}

function addMcp(program: Command, context: CommandContext): void {
  program
    .command('mcp')
    .description('Serve the memory as tools for a model, over standard input and output (MCP)')
    .addHelpText(
      'after',
      '\nWithout options, a model reads only the memory of its own project and the space global.\n' +
        '\nExamples:\n  $ claude mcp add svc -- svc mcp\n  $ codex mcp add svc -- svc mcp --space team/shared',
    )
    .option('--space <name>', 'a further space that a model may read; may be repeated', collect, [])
    .option('--all-spaces', 'let a model read every space', false)
    .action(async ({ space, allSpaces }: McpFlags) => {
      const { serveMcp } = await import('../memory/mcp.ts');
      const { stdin } = process;
      const { typedSpace } = await import('../memory/typed-space.ts');
      const spaces = await Promise.all(space.map((one) => typedSpace(one, context, openStore)));
      const options = { folder: process.cwd(), spaces, allSpaces };
      await serveMcp(options, { environment: context.environment, stdin }, openStore);
    });
}

interface McpFlags {
  readonly space: readonly string[];
  readonly allSpaces: boolean;
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

function withListOptions(command: Command): Command {
  return command
    .option('--space <name>', 'only this space')
    .option('--limit <number>', 'how many at most, up to 1000', '20')
    .option('--json', 'print a JSON list');
}
