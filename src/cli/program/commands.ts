import { CliError } from '../cli-error.ts';
import type { ConnectOptions } from '../clients/connect.ts';
import type { OtherOptions } from '../clients/other-config.ts';
import { OTHER_CLIENTS } from '../clients/other-clients.ts';
import type { SetupOptions } from '../setup/setup.ts';
import { CLIENT_COMMANDS } from './client-commands.ts';
import type { Call } from '../context.ts';
import type { CliCommand } from './program.ts';
import { flagsOf, PROXY_OPTIONS, type RawFlags, START_COMMAND } from './start-command.ts';
import type { McpOptions } from '../memory/mcp.ts';

/** The commands of svc. Each loads its code only when it runs, because most need little of svc. */

/**
 * One command `svc print-config NAME` for each client of other-clients.ts. Users run these by hand, so they are not in
 * the bundle of quick.ts.
 */
const OTHER_CONFIGS = OTHER_CLIENTS.map((client): CliCommand => {
  const { name, title } = client;
  return {
    name: `print-config ${name}`,
    description: `Print the settings for ${title}`,
    options: {
      '--model <name>': 'the model, for clients that need its name',
      '-q, --quiet': 'print no explanations',
    },
    run: async ({ options, context }: Call<OtherOptions>) =>
      (await import('../clients/other-config.ts')).printOther(client, options, context),
  };
});

const LIST_OPTIONS = {
  '--space <name>': 'only this space',
  '--limit <number>': ['how many at most, up to 1000', '20'],
  '--json': 'print a JSON list',
} as const;

const LOOKING: readonly CliCommand[] = [
  {
    name: 'memory list',
    description: 'List memories, newest first',
    options: {
      '--stale': 'only those whose files have changed since, by project',
      ...LIST_OPTIONS,
    },
    more: `--stale lists a memory if a file that its exchange edited, or read and named, has changed or is gone. svc
compares only the files; it does not judge the text of the memory.`,
    examples: ['svc memory list --limit 5', 'svc memory list --stale --space shop'],
    run: async (call) =>
      'stale' in call.options
        ? (await import('../memory/memory-code.ts')).listStale(call)
        : (await import('../memory/memory.ts')).listMemories(call),
  },
  {
    name: 'memory search',
    description: 'Find memories by words, best first',
    args: { '<words...>': 'words of the memory' },
    options: LIST_OPTIONS,
    examples: ['svc memory search staging database'],
    run: async (call) => (await import('../memory/memory.ts')).listMemories(call),
  },
  {
    name: 'memory get',
    description: 'Print the exact text of a memory, or its origin',
    args: { '<ref>': 'its reference, from list, search or a recalled block' },
    options: {
      '--origin': 'print where it comes from, and whether its files have changed, instead',
      '--lines <from-to>': 'only these lines, counted from 1',
      '--grep <pattern>': 'only lines that match, with their numbers',
      '--context <lines>': ['with --grep: lines around each match, up to 50', '2'],
      '--around <name>': 'only the function, class or heading of this name',
      '--all': 'the whole text',
      '--json': 'print the whole record',
    },
    more: `The text on stdout is exact, and has at most 1,500 tokens. If it is only a part, stderr says how to get the
rest.`,
    examples: [
      'svc memory get m_… --lines 1-200',
      "svc memory get m_… --grep 'export (class|function)' --context 5",
      'svc memory get m_… --around parseConfig',
      'svc memory get m_… --all > text.txt',
      'svc memory get m_… --origin',
    ],
    run: async (call) => (await import('../memory/memory.ts')).getMemory(call),
  },
  {
    name: 'memory why',
    description: 'Say what recall weighs for a prompt, and why each memory is told or not',
    args: { '<prompt>': 'the words of a person' },
    options: {
      '--space <name>': 'in this space; without it, for the project of this folder',
      '--json': 'print one JSON object',
    },
    examples: ['svc memory why "why does the parser drop the last chunk?"'],
    run: async (call) => (await import('../memory/memory-why.ts')).explainRecall(call),
  },
  {
    name: 'memory rules',
    description: 'List the rules and corrections that you stated; pin, edit or retire one',
    args: { '[sentence...]': 'with --edit: the new sentence' },
    options: {
      '--space <name>': 'only this space',
      '--all': 'also the rules that were replaced or retired',
      '--retire <id>': 'never place this rule again',
      '--restore <id>': 'take back --retire or --pin',
      '--pin <id>': 'place this rule in every conversation of its project',
      '--edit <id>': 'retire this rule and state another one in its place',
      '--json': 'print a JSON list',
    },
    more: `svc finds a rule in what you say: "from now on …", "no, we use pnpm here", "never touch generated files".
A later sentence about the same thing replaces it. svc places a rule when a prompt falls under it.`,
    examples: [
      'svc memory rules',
      'svc memory rules --retire r_…',
      'svc memory rules --edit r_… "Always use pnpm here."',
    ],
    run: async (call) => (await import('../memory/memory-rules.ts')).showRules(call),
  },
];

const OWNING: readonly CliCommand[] = [
  {
    name: 'memory forget',
    description: 'Forget memories permanently; svc does not capture them again',
    args: { '[refs...]': 'references of the memories' },
    options: {
      '--search <words>': 'all memories that match these words',
      '--space <name>': 'only this space; without other arguments: all of its memories',
      '-y, --yes': 'do not ask; required without a terminal',
      '--json': 'print the count as JSON',
    },
    more: `If several projects hold the same text, the command forgets it in the project of the current folder and
names the others.`,
    examples: [
      'svc memory forget m_…',
      'svc memory forget m_… --space shop',
      'svc memory forget --search "old host" --yes',
    ],
    run: async (call) => (await import('../memory/memory.ts')).forgetMemories(call),
  },
  {
    name: 'memory add',
    description: 'Store a statement as a memory, for the project of this folder or for all',
    args: { '<words...>': 'the statement' },
    options: {
      '--space <name>': 'another space; "global" is recalled in every project',
      '--json': 'print its reference and space as JSON',
    },
    examples: ['svc memory add --space global "I write dates as ISO 8601."'],
    run: async (call) => (await import('../memory/memory-add.ts')).addMemory(call),
  },
  {
    name: 'memory move',
    description: 'Move memories to another space',
    args: { '<refs...>': 'references of the memories' },
    options: {
      '--to <name>': 'the new space; "global" is recalled in every project',
      '--space <name>': 'their present space, if several spaces have them',
      '--json': 'print the count as JSON',
    },
    examples: ['svc memory move m_… --to global'],
    run: async (call) => (await import('../memory/memory-add.ts')).moveMemories(call),
  },
  {
    name: 'memory export',
    description:
      "Print all memories as lines of JSON, or a project's rules for CLAUDE.md or AGENTS.md",
    options: {
      '--space <name>': 'only this space',
      '--as <form>': 'the rules of this project as Markdown: claude or agents',
    },
    examples: ['svc memory export > memories.jsonl', 'svc memory export --as claude >> CLAUDE.md'],
    run: async (call) => (await import('../memory/memory-export.ts')).exportMemories(call),
  },
  {
    name: 'memory import',
    description: 'Import an export, or the transcripts that a client keeps on this machine',
    args: { '[file]': 'lines of JSON from export; without a file, or with "-", standard input' },
    options: {
      '--from <client>':
        'the sessions of claude-code, codex, opencode, copilot, pi, qwen, gemini, continue or cline; without --yes only count',
      '--space <name>': 'import everything into this space',
      '-y, --yes': 'with --from: write the memories',
      '--dry-run': 'count and write nothing',
      '--json': 'print the counts as JSON',
    },
    examples: [
      'svc memory import --from claude-code',
      'svc memory import --from claude-code --yes',
    ],
    run: async (call) => (await import('../memory/memory-import.ts')).importMemories(call),
  },
  {
    name: 'memory share',
    description: 'Write rules and memories of this project into .svc/memory.md, for colleagues',
    args: { '[refs...]': 'memories (m_…) and rules (r_…); without any, all rules that hold' },
    options: {
      '--remove <id...>': 'take these entries (s_…) out of the file',
      '--json': 'print the counts as JSON',
    },
    more: 'The file is part of your repository. Review and commit it; a colleague reads it with: svc memory join',
    examples: ['svc memory share', 'svc memory share m_… r_…', 'svc memory share --remove s_…'],
    run: async (call) => (await import('../memory/memory-share.ts')).shareMemories(call),
  },
  {
    name: 'memory join',
    description: "Read the memories that colleagues share in this repository's .svc/memory.md",
    options: {
      '--accept': 'take them as your own without a question: rules hold',
      '-y, --yes': 'store them as unverified: they are recalled, and no rule holds',
      '--json': 'print the counts as JSON',
    },
    more: 'Nothing that you retired or forgot comes back, and no entry replaces a rule of yours.',
    examples: ['svc memory join', 'svc memory join --accept'],
    run: async (call) => (await import('../memory/memory-share.ts')).joinMemories(call),
  },
];

const SPACES: readonly CliCommand[] = [
  {
    name: 'memory spaces',
    description: 'List the spaces of the memory, with the folders of their projects',
    options: { '--json': 'print a JSON list' },
    run: async (call) => (await import('../memory/spaces.ts')).listSpaces(call),
  },
  ...(['rename', 'merge'] as const).map((verb): CliCommand => {
    const isMerge = verb === 'merge';
    return {
      name: `memory spaces ${verb}`,
      description: isMerge
        ? 'Move all memories and the project of one space into another'
        : 'Rename a space and assign its project to the new name',
      args: { '<from>': 'the space', '<to>': isMerge ? 'the other space' : 'the new name' },
      run: async ({ args: [from = '', to = ''], context }) =>
        (await import('../memory/spaces.ts')).moveSpace({ from, to, isMerge }, context),
    };
  }),
  {
    name: 'memory spaces join',
    description: 'Assign a folder to a space, if svc cannot prove that it is the same project',
    args: { '<space>': 'the space', '[folder]': 'the folder (default: the current one)' },
    run: async (call) => (await import('../memory/spaces.ts')).joinSpace(call),
  },
];

const SWITCHES = (['off', 'on'] as const).map((verb): CliCommand => {
  const isOff = verb === 'off';
  return {
    name: `memory ${verb}`,
    description: isOff
      ? 'Switch memory off for the project of this folder, until svc memory on'
      : 'Switch memory on again for the project of this folder',
    args: { '[folder]': 'another folder' },
    more: isOff
      ? `From the next request on, svc recalls nothing new in this project and stores nothing. Memories that a running
conversation contains stay in it where the model's thinking depends on them. svc status names the project.`
      : 'svc recalls and stores again from the next request on.',
    examples: [`svc memory ${verb}`],
    run: async (call) => (await import('../memory/spaces.ts')).switchMemory(call, isOff),
  };
});

/** Lets users type the short name of a project after --space and --to. The command gets the project's space. */
function withTypedSpaces(command: CliCommand): CliCommand {
  return {
    ...command,
    async run({ options, context, args }: Call<Readonly<Record<string, unknown>>>) {
      const { typedSpace } = await import('../memory/named.ts');
      const spaceOf = async (typed: unknown) =>
        typeof typed === 'string' ? typedSpace(typed, context) : undefined;
      const [space, to] = [await spaceOf(options['space']), await spaceOf(options['to'])];
      const read = { ...options, ...(space && { space }), ...(to && { to }) };
      return command.run?.({ options: read, context, args });
    },
  };
}

const MEMORY_COMMANDS: readonly CliCommand[] = [
  { name: 'memory', group: 'daily', description: 'List, search, add and forget memories' },
  ...[...LOOKING, ...OWNING].map(withTypedSpaces),
  ...SWITCHES,
  ...SPACES,
  {
    name: 'mcp',
    group: 'programs',
    description: 'Serve the memory as tools for a model, over standard input and output (MCP)',
    options: {
      '--space <name>': ['a further space that a model may read; may be repeated', []],
      '--all-spaces': 'let a model read every space',
    },
    more: 'Without options, a model reads only the memory of its own project and the space global.',
    examples: ['claude mcp add svc -- svc mcp', 'codex mcp add svc -- svc mcp --space team/shared'],
    run: async (call: Call<McpOptions>) => (await import('../memory/mcp.ts')).serveMcp(call),
  },
];

/** The commands of svc except `help` and `completion`. Those of a group are in the order of the help. */
export const COMMANDS: readonly CliCommand[] = [
  {
    name: 'run',
    group: 'daily',
    description: 'Run a client through the proxy, and change no file',
    args: {
      '<client>': 'claude, codex, opencode, pi, qwen, copilot, cline or continue',
      '[args...]': "the client's own arguments",
    },
    passesOn: true,
    more: `The command starts a proxy if none runs. The client has its own terminal, signals and exit code, as without
svc. The proxy keeps running when the client ends. Stop it with: svc stop`,
    examples: [
      'svc run claude',
      'svc run claude -- --resume',
      'svc run codex -- exec "explain this repository"',
      'svc run opencode -- run "explain this repository"',
    ],
    run: async (call) => (await import('../proxy/run.ts')).runClient(call),
  },
  {
    name: 'ui',
    group: 'daily',
    description: 'Open a page with requests, memories and savings',
    options: {
      '--open': 'open the page in your browser, also without a terminal',
      '--print': 'print only the link, and open nothing',
    },
    more: `The command opens a page of the running proxy in your browser, prints its link, and starts a proxy if none runs.
Without a terminal or a screen, and over SSH, it only prints the link. The link works once, within a minute. The page ends
after an hour without use. "ui": false in config.json turns it off.`,
    examples: ['svc ui', 'svc ui --print'],
    run: async (call) => (await import('../proxy/ui.ts')).showUi(call),
  },
  {
    name: 'status',
    group: 'daily',
    description: 'Show whether the proxy runs, and what is wrong',
    options: {
      '--watch': 'show the requests in flight and the latest until you press q or Ctrl-C',
      '--interval <seconds>': ['with --watch: seconds between updates, 1 to 60', '1'],
      '--json': 'print JSON; with --watch one snapshot',
    },
    more: `Without a running proxy the exit code is 1. The sums of --watch cover the last hour. Without a terminal
--watch prints one snapshot.`,
    examples: ['svc status', 'svc status --watch', 'svc status --json'],
    run: async (call) =>
      'watch' in call.options
        ? (await import('../requests/top.ts')).top(call)
        : (await import('../proxy/status.ts')).status(call),
  },
  {
    name: 'stats',
    group: 'daily',
    description: 'Sum up requests, tokens and costs by day, client and project',
    options: {
      '--days <number>': ['number of days up to today, at most 90', '30'],
      '--json': 'print one JSON object',
    },
    examples: ['svc stats', 'svc stats --days 7 --json'],
    run: async (call) => (await import('../requests/stats.ts')).showStats(call),
  },
  ...MEMORY_COMMANDS,
  {
    name: 'setup',
    group: 'setup',
    description: 'Create or change the configuration',
    options: {
      '-y, --yes': 'do not ask',
      '--upstream <name>':
        'add or change a provider: anthropic, openai, google, groq, ollama, another name from the catalog, or your own name',
      '--key-env <variable>':
        'the environment variable that holds its key; the file stores only the name',
      '--key-stdin': 'read its key from stdin; the file stores the key',
      '--base-url <url>': 'the base URL that its documentation gives for clients',
      '--api-style <style>': 'anthropic_messages, openai_responses or openai_chat_completions',
      '--auth <kind>': 'how to send the key: x-api-key, bearer or none',
      '--allow-private': 'allow http, and addresses of this machine or network, for this provider',
      '--login <client>':
        'pass the subscription login of claude or codex on to its provider; asks first, even with --yes',
      '--replace': 'replace another provider of the same API style',
      '--remove <name>': 'remove a provider',
      '--memory <kind>': 'where to store memories: embedded (this machine) or hosted',
      '--memory-url <url>': 'base URL of the memory service',
      '--memory-allow-private': 'allow an address of this network for the memory service',
      '--service-key-env <variable>': 'the environment variable that holds its service key',
      '--service-key-stdin': 'read the service key from stdin; the file stores the key',
      ...PROXY_OPTIONS,
    },
    more: `On a terminal and without options, setup asks questions and tests the key. It offers to set up installed clients
and to import their earlier sessions, and changes everything at the end. Settings that you do not name stay. The list of
providers comes from a public catalog (models.dev), cached for a day, or from this package. SVC_CATALOG_URL=off
turns the download off.

With the newest models svc adds memory and shortens nothing, and a conversation with such a memory cannot continue without
svc. Which models these are: svc help modes

A key is never an argument, because other programs can read it there.`,
    examples: [
      'svc setup',
      'svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY',
      'svc setup --yes --upstream openai --key-stdin < key.txt',
      'svc setup --yes --upstream ollama',
      'svc setup --yes --upstream work --base-url https://llm.example.com/v1 \\\n      --api-style openai_chat_completions --key-env WORK_KEY',
      'svc setup --yes --memory hosted --memory-url https://memory.example.com \\\n      --service-key-env SVC_SERVICE_KEY',
      'svc setup --yes --memory-mode read --port 9000',
      'svc setup --yes --remove openai',
      'svc setup --login claude --replace',
    ],
    run: runSetup,
  },
  {
    name: 'connect',
    group: 'setup',
    description: "Change a client's own settings, so that it always uses svc",
    args: {
      '<name>': 'claude, codex, opencode, pi, qwen, continue or zed; with --hooks also copilot',
    },
    options: {
      '--hooks': "memory through the client's own hooks, with no proxy in the path",
      '--model <name>': 'the model, for clients whose settings name one',
      '--openai-name':
        'for codex: name the provider OpenAI, if it is OpenAI; codex then marks typed text',
      '-y, --yes': 'do not ask; required without a terminal',
      '-q, --quiet': 'print problems only',
    },
    more: `svc shows the change and asks first. The rest of the file stays, and svc keeps a copy of the file from
before. The file holds no token: the client asks svc for it, and that command starts the proxy if none runs.
With --hooks the setting hookCut also cuts long outputs of a shell; it is off by default.
See: svc help hooks`,
    examples: [
      'svc connect claude',
      'svc connect codex --yes',
      'svc connect claude --hooks',
      'svc disconnect claude',
    ],
    run: async ({ args: [name = ''], options, context }: Call<ConnectOptions>) =>
      (await import('../clients/connect.ts')).connect(name, options, context),
  },
  {
    name: 'disconnect',
    group: 'setup',
    description: "Remove svc from a client's own settings",
    args: { '<name>': 'claude, codex, opencode, pi, qwen, continue, zed or copilot' },
    options: {
      '-y, --yes': 'do not ask; required without a terminal',
      '-q, --quiet': 'print problems only',
    },
    more: `If the file has not changed since svc connect, every byte is as before. Otherwise only the settings of
svc go.`,
    examples: ['svc disconnect claude'],
    run: async ({ args: [name = ''], options, context }: Call<ConnectOptions>) =>
      (await import('../clients/connect.ts')).disconnect(name, options, context),
  },
  {
    name: 'doctor',
    group: 'setup',
    description: 'Check configuration, store, proxy, providers and clients',
    options: {
      '--fix': 'fix what needs no decision: file modes, left-over files, a missing token',
      '--offline': 'call no provider and no memory service',
      '--live': 'send a small model request twice through the proxy; this costs money',
      '-y, --yes': 'with --live: send without asking; required without a terminal',
      '--model <name>': 'the model for --live; default: the cheapest that each provider lists',
      '--json': 'print one JSON object',
    },
    more: `Each line is ok, a warning or a problem, and the command that fixes it follows. With problems the exit code
is 1. Without --live no call costs anything: providers list their models and refuse an empty request. --live shows the
price and asks first. Without a terminal it sends nothing unless you give --yes.`,
    examples: [
      'svc doctor',
      'svc doctor --fix',
      'svc doctor --live --model claude-haiku-4-5',
      'svc doctor --live --yes',
      'svc doctor --offline --json',
    ],
    run: async (call) => (await import('../doctor/doctor.ts')).doctor(call),
  },
  {
    name: 'uninstall',
    group: 'setup',
    description: 'Remove what svc created on this machine, and restore clients',
    options: {
      '--dry-run': 'show what would be removed and remove nothing',
      '--keep-memory': 'keep the memories in the data folder',
      '-y, --yes': 'do not ask; required without a terminal',
      '--json': 'print the findings as JSON',
    },
    more: `The command stops the running proxies, removes the user service, and restores the original bytes of the
clients' settings files. It removes configuration, data, cache and log. It asks first; without a
terminal it removes nothing unless you add --yes.
To remove the package itself, run: npm uninstall -g svc-local-proxy`,
    examples: [
      'svc uninstall --dry-run',
      'svc uninstall --keep-memory',
      'svc memory export > memories.jsonl && svc uninstall --yes',
    ],
    run: async (call) => (await import('../setup/uninstall.ts')).uninstall(call),
  },
  START_COMMAND,
  {
    name: 'stop',
    group: 'more',
    description: 'Stop the proxy after its open answers have finished',
    options: { '--port <number>': 'stop only the proxy on this port' },
    examples: ['svc stop', 'svc stop --port 9000'],
    run: async (call) => (await import('../proxy/status.ts')).stop(call),
  },
  {
    name: 'requests',
    group: 'more',
    description: 'List requests, newest first, or explain one',
    args: { '[id]': 'x-svc-request-id of the request to show, or the beginning of it' },
    options: {
      '--limit <number>': ['how many at most, up to 1000', '20'],
      '--report': 'with an id: print a report for an issue, without texts, projects or sessions',
      '--json': 'print a JSON list',
    },
    examples: ['svc requests --limit 5', 'svc requests req_…', 'svc requests req_… --report'],
    run: async (call) => (await import('../requests/requests.ts')).listRequests(call),
  },
  {
    name: 'quota',
    group: 'more',
    description: 'Show how much of your plan is left, and what used it',
    options: { '--json': 'print one JSON list' },
    examples: ['svc quota', 'svc quota --json'],
    run: async (call) => (await import('../requests/quota.ts')).showQuota(call),
  },
  {
    name: 'cache',
    group: 'more',
    description: "Rank the causes of misses in the provider's prompt cache",
    options: {
      '--days <number>': ['number of days up to now, at most 90', '7'],
      '--json': 'print one JSON object',
    },
    more: 'The most expensive cause comes first.',
    examples: ['svc cache', 'svc cache --days 30 --json'],
    run: async (call) => (await import('../requests/cache.ts')).showCache(call),
  },
  {
    name: 'demo',
    group: 'more',
    description: 'Show memory across conversations, without a key and without files',
    examples: ['svc demo'],
    run: async (call) => (await import('../demo/demo.ts')).demo(call),
  },
  ...CLIENT_COMMANDS,
  ...OTHER_CONFIGS,
  {
    name: 'statusline',
    group: 'programs',
    description: 'Print one line for the status line of Claude Code',
    more: `The command reads the session from the JSON that Claude Code writes to its stdin. It shows how many
prompts got memories, the tokens that svc saved (at full price), and with a key their list price.

In ~/.claude/settings.json:
  "statusLine": { "type": "command", "command": "svc statusline" }`,
    async run({ context }) {
      const { printStatusLine } = await import('../requests/statusline.ts');
      await printStatusLine({ ...context, stdin: process.stdin });
    },
  },
  {
    name: 'hook',
    group: 'programs',
    description: 'Answer an event of a client’s hook',
    args: {
      '<client>': 'claude, codex, copilot, opencode or pi',
      '<event>': 'the event, as the client names it',
    },
    more: `svc connect NAME --hooks puts this command into the client's settings. It reads the event as JSON from its
stdin, and prints JSON or nothing. It always ends with code 0 within a second, so a client goes on without svc if
something fails. See: svc help hooks`,
    // bin/svc.js starts hooks without this file, so this runs only where the program is started in another way.
    run: async ({ args }) => (await import('./quick-hook.ts')).run(args),
  },
  // This command only says how to install svc-service, because another package contains that program.
  {
    name: 'service',
    description: 'Say how to get svc-service, the program that runs a memory service',
    args: { '[words...]': 'are ignored' },
    passesOn: true,
    examples: ['npm install -g svc-service', 'svc-service --help'],
    run() {
      throw new CliError(
        'The service is a program of its own.',
        'Install it with: npm install -g svc-service. See: svc-service --help',
        2,
      );
    },
  },
];

async function runSetup({
  options,
  context,
}: Call<SetupOptions & RawFlags & { readonly login?: string }>): Promise<number | undefined> {
  const isWatched = process.stdin.isTTY && process.stderr.isTTY;
  if (options.login !== undefined) {
    const { setupLogin } = await import('../setup/setup.ts');
    const { login } = options;
    await setupLogin({ ...options, login, flags: flagsOf(options) }, context);
    return undefined;
  }
  const { openCatalog } = await import('../../adapters/catalog/catalog.ts');
  const { cacheFolder } = await import('../../adapters/files/own-folders.ts');
  const { environment } = context;
  const place = { folder: cacheFolder(environment), environment, now: Date.now };
  if (Object.keys(options).length === 0 && isWatched) {
    const { wizard } = await import('../setup/wizard.ts');
    const { createUpstream: openUpstream } =
      await import('../../adapters/network/undici-upstream.ts');
    const streams = { input: process.stdin, output: process.stderr };
    const catalog = await openCatalog({ ...place, open: openUpstream });
    try {
      return await wizard(context, { openUpstream, catalog, streams });
    } finally {
      await catalog.close();
    }
  }
  const { setup } = await import('../setup/setup.ts');
  // Without a user who chooses from the catalog, use the cached or the packaged one instead of a download.
  const listProviders = async () => (await openCatalog(place)).providers();
  await setup({ ...options, flags: flagsOf(options) }, { context, listProviders });
  return undefined;
}
