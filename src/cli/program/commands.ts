import { CliError } from '../cli-error.ts';
import type { ConnectOptions } from '../clients/connect.ts';
import type { OtherOptions } from '../clients/other-config.ts';
import { OTHER_CLIENTS } from '../clients/other-clients.ts';
import type { SetupOptions } from '../setup/setup.ts';
import { CLIENT_COMMANDS } from './client-commands.ts';
import { type Call, scriptPath } from '../context.ts';
import type { CliCommand } from './command.ts';
import { MEMORY_COMMANDS } from './memory-commands.ts';
import { flagsOf, PROXY_OPTIONS, type RawFlags, START_COMMAND } from './start-command.ts';

/**
 * The commands of svc, in the order of its help. A command loads its own code when it runs: looking at the status
 * must not load an HTTP client or a database.
 */

const RUN: CliCommand = {
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
};

const UI: CliCommand = {
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
  run: async (call) => (await import('../ui/ui.ts')).showUi(call),
};

const STATUS: CliCommand = {
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
};

const STATS: CliCommand = {
  name: 'stats',
  group: 'daily',
  description: 'Sum up requests, tokens and costs by day, client and project',
  options: {
    '--days <number>': ['number of days up to today, at most 90', '30'],
    '--json': 'print one JSON object',
  },
  examples: ['svc stats', 'svc stats --days 7 --json'],
  run: async (call) => (await import('../requests/stats.ts')).showStats(call),
};

const SETUP: CliCommand = {
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

Shortening works with models that do not bind their thinking to what was sent before. With Claude Opus 5.5, Sonnet 5.5,
Haiku 5.5, Fable 5.1 and newer ones, and newer models of OpenAI, svc only adds memory and saves nothing. Such a
conversation cannot continue without svc once svc added a memory to it. See docs/modes.md.

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
};

async function runSetup({
  options,
  context,
}: Call<SetupOptions & RawFlags & { readonly login?: string }>): Promise<number | undefined> {
  const isWatched = process.stdin.isTTY && process.stderr.isTTY;
  if (options.login !== undefined) {
    const { setupLogin } = await import('../setup/setup.ts');
    const { login, replace = false } = options;
    await setupLogin({ login, replace }, context);
    return undefined;
  }
  const { openCatalog } = await import('../../adapters/catalog/catalog.ts');
  const { cacheFolder } = await import('../../adapters/files/data-folder.ts');
  const { environment } = context;
  const place = { folder: cacheFolder(environment), environment, now: Date.now };
  if (Object.keys(options).length === 0 && isWatched) {
    const { wizard } = await import('../setup/wizard.ts');
    const { createUpstream: openUpstream } =
      await import('../../adapters/network/undici-upstream.ts');
    const streams = { input: process.stdin, output: process.stderr };
    const catalog = await openCatalog({ ...place, open: openUpstream });
    const script = scriptPath();
    try {
      return await wizard(context, { openUpstream, catalog, streams, script });
    } finally {
      await catalog.close();
    }
  }
  const { setup } = await import('../setup/setup.ts');
  // Without a person who searches, the network is not asked: the copy or the snapshot will do.
  const listProviders = async () => (await openCatalog(place)).providers();
  await setup({ ...options, flags: flagsOf(options) }, { context, listProviders });
  return undefined;
}

const CONNECT: CliCommand = {
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
With --hooks the setting hookCut also cuts long outputs of a shell (docs/hooks.md); it is off by default.`,
  examples: [
    'svc connect claude',
    'svc connect codex --yes',
    'svc connect claude --hooks',
    'svc disconnect claude',
  ],
  async run({ args: [name = ''], options, context }: Call<ConnectOptions>) {
    const { connect } = await import('../clients/connect.ts');
    const parts = { script: scriptPath(), confirm: context.asker?.(true) };
    return connect(name, options, context, parts);
  },
};

const DISCONNECT: CliCommand = {
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
  async run({ args: [name = ''], options, context }: Call<ConnectOptions>) {
    const { disconnect } = await import('../clients/connect.ts');
    return disconnect(name, options, context, context.asker?.(true));
  },
};

const DOCTOR: CliCommand = {
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
};

const UNINSTALL: CliCommand = {
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
};

const STOP: CliCommand = {
  name: 'stop',
  group: 'more',
  description: 'Stop the proxy after its open answers have finished',
  options: { '--port <number>': 'stop only the proxy on this port' },
  examples: ['svc stop', 'svc stop --port 9000'],
  run: async (call) => (await import('../proxy/status.ts')).stop(call),
};

const REQUESTS: CliCommand = {
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
};

const QUOTA: CliCommand = {
  name: 'quota',
  group: 'more',
  description: 'Show how much of your plan is left, and what used it',
  options: { '--json': 'print one JSON list' },
  examples: ['svc quota', 'svc quota --json'],
  run: async (call) => (await import('../requests/quota.ts')).showQuota(call),
};

const CACHE: CliCommand = {
  name: 'cache',
  group: 'more',
  description: "Rank the causes of misses in the provider's prompt cache",
  options: {
    '--days <number>': ['number of days up to now, at most 90', '7'],
    '--json': 'print one JSON object',
  },
  more: 'The dearest cause is the first one.',
  examples: ['svc cache', 'svc cache --days 30 --json'],
  run: async (call) => (await import('../requests/cache.ts')).showCache(call),
};

const DEMO: CliCommand = {
  name: 'demo',
  group: 'more',
  description: 'Show memory across conversations, without a key and without files',
  examples: ['svc demo'],
  async run({ context }) {
    const { demo } = await import('../demo/demo.ts');
    const { startProxy } = await import('../compose.ts');
    return demo(context, { startProxy });
  },
};

const STATUSLINE: CliCommand = {
  name: 'statusline',
  group: 'programs',
  description: 'Print one line for the status line of Claude Code',
  more: `The command reads the session from the JSON that Claude Code writes to its stdin. It shows how many
prompts got memories, the tokens that svc saved (at full price), and with a key their list price.

In ~/.claude/settings.json:
  "statusLine": { "type": "command", "command": "svc statusline" }`,
  async run({ context }) {
    const { printStatusLine } = await import('../requests/statusline.ts');
    const { sessionFacts } = await import('../compose-statusline.ts');
    await printStatusLine({ ...context, stdin: process.stdin }, sessionFacts);
  },
};

const HOOK: CliCommand = {
  name: 'hook',
  group: 'programs',
  description: 'Answer an event of a client’s hook',
  args: {
    '<client>': 'claude, codex, copilot, opencode or pi',
    '<event>': 'the event, as the client names it',
  },
  more: `svc connect NAME --hooks puts this command into the client's settings. It reads the event as JSON from its
stdin, and prints JSON or nothing. It always ends with code 0 within a second, so a client goes on without svc if
something fails. See docs/hooks.md.`,
  // bin/svc.js starts hooks without this file. Only a program that was started in another way comes here.
  async run({ args }) {
    const { run } = await import('./quick-hook.ts');
    await run(args);
  },
};

/** The reader of command lines answers it. */
const HELP: CliCommand = {
  name: 'help',
  group: 'more',
  description: 'Explain a command: svc help COMMAND',
};

/** Says how to get the program of the service, which this package does not contain. */
const SERVICE: CliCommand = {
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
};

/** `svc print-config` for the clients of the table: a person runs it, so it may load more code. */
const OTHER_CONFIGS = OTHER_CLIENTS.map((client): CliCommand => {
  const { name, title } = client;
  return {
    name: `print-config ${name}`,
    description: `Print the settings for ${title}`,
    options: {
      '--model <name>': 'the model, for clients that need its name',
      '-q, --quiet': 'print no explanations',
    },
    async run({ options, context }: Call<OtherOptions>) {
      const { printOther } = await import('../clients/other-config.ts');
      await printOther(client, options, context);
    },
  };
});

export const COMMANDS: readonly CliCommand[] = [
  RUN,
  UI,
  STATUS,
  STATS,
  ...MEMORY_COMMANDS,
  SETUP,
  CONNECT,
  DISCONNECT,
  DOCTOR,
  UNINSTALL,
  START_COMMAND,
  STOP,
  REQUESTS,
  QUOTA,
  CACHE,
  DEMO,
  HELP,
  ...CLIENT_COMMANDS,
  ...OTHER_CONFIGS,
  STATUSLINE,
  HOOK,
  SERVICE,
];
