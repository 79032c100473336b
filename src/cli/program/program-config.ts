import type { Command } from 'commander';
import type { CommandContext } from '../context.ts';
import type { DoctorOptions } from '../doctor/doctor.ts';
import type { Finish } from './program.ts';
import { flagsOf, type RawFlags, withProxyFlags } from '../proxy/proxy-flags.ts';
import type { SetupOptions } from '../setup/setup.ts';

/** Declares the commands around the configuration and the proxy itself. */
export function addConfigCommands(program: Command, context: CommandContext, finish: Finish): void {
  addSetup(program, context, finish);
  addDoctor(program, context, finish);
  addDemo(program, context, finish);
}

function addSetup(program: Command, context: CommandContext, finish: Finish): void {
  const command = program
    .command('setup')
    .description('Create or change the configuration; settings that you do not name stay')
    .option('-y, --yes', 'do not ask')
    .option(
      '--upstream <name>',
      'add or change a provider: anthropic, openai, google, groq, ollama, another name from the catalog, or your own name',
    )
    .option(
      '--key-env <variable>',
      'the environment variable that holds its key; the file stores only the name',
    )
    .option('--key-stdin', 'read its key from stdin; the file stores the key')
    .option('--base-url <url>', 'the base URL that its documentation gives for clients')
    .option(
      '--api-style <style>',
      'anthropic_messages, openai_responses or openai_chat_completions',
    )
    .option('--auth <kind>', 'how to send the key: x-api-key, bearer or none')
    .option(
      '--allow-private',
      'allow http, and addresses of this machine or network, for this provider',
    )
    .option(
      '--login <client>',
      'pass the subscription login of claude or codex on to its provider; asks first, even with --yes',
    )
    .option('--replace', 'replace another provider of the same API style')
    .option('--remove <name>', 'remove a provider')
    .option('--memory <kind>', 'where to store memories: embedded (this machine) or hosted')
    .option('--memory-url <url>', 'base URL of the memory service')
    .option('--memory-allow-private', 'allow an address of this network for the memory service')
    .option('--service-key-env <variable>', 'the environment variable that holds its service key')
    .option('--service-key-stdin', 'read the service key from stdin; the file stores the key');
  withProxyFlags(command)
    .addHelpText(
      'after',
      `
On a terminal and without options, setup asks questions and tests the key. It offers to set up installed clients
and to import their earlier sessions, and changes everything at the end. The list of providers comes from
a public catalog (models.dev), cached for a day, or from this package. SVC_CATALOG_URL=off turns the
download off.

Examples:
  $ svc setup
  $ svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY
  $ svc setup --yes --upstream openai --key-stdin < key.txt
  $ svc setup --yes --upstream ollama
  $ svc setup --yes --upstream work --base-url https://llm.example.com/v1 \\
      --api-style openai_chat_completions --key-env WORK_KEY
  $ svc setup --yes --upstream fireworks-ai --key-env FIREWORKS_API_KEY
  $ svc setup --yes --memory hosted --memory-url https://memory.example.com \\
      --service-key-env SVC_SERVICE_KEY
  $ svc setup --yes --memory-mode read --port 9000
  $ svc setup --yes --remove openai
  $ svc setup --login claude --replace

Shortening works with models that do not bind their thinking to what was sent before. With Claude Opus 5.5, Sonnet 5.5,
Haiku 5.5, Fable 5.1 and newer ones, and newer models of OpenAI, svc only adds memory and saves nothing. Such a
conversation cannot continue without svc once svc added a memory to it. See docs/modes.md.

A key is never an argument, because other programs can read it there.`,
    )
    .action((options: SetupOptions & RawFlags & { login?: string }) =>
      runSetup(options, context, finish),
    );
}

async function runSetup(
  options: SetupOptions & RawFlags & { readonly login?: string },
  context: CommandContext,
  finish: Finish,
): Promise<void> {
  const isWatched = process.stdin.isTTY && process.stderr.isTTY;
  if (options.login !== undefined) {
    const { setupLogin } = await import('../setup/setup-login.ts');
    const { confirmer } = await import('./confirmer.ts');
    const { login, replace = false } = options;
    return setupLogin({ login, replace }, context, isWatched ? confirmer() : undefined);
  }
  const { openCatalog } = await import('../../adapters/catalog/catalog.ts');
  const { cacheFolder } = await import('../../adapters/files/data-folder.ts');
  const { environment } = context;
  const place = { folder: cacheFolder(environment), environment, now: Date.now };
  if (Object.keys(options).length === 0 && isWatched) {
    const { wizard } = await import('../setup/wizard.ts');
    const { createUpstream: openUpstream } =
      await import('../../adapters/network/undici-upstream.ts');
    const { openStoreForCli: openStore } = await import('../compose-store.ts');
    const streams = { input: process.stdin, output: process.stderr };
    const catalog = await openCatalog({ ...place, open: openUpstream });
    const script = process.argv[1] ?? '';
    try {
      finish(await wizard(context, { openUpstream, catalog, streams, openStore, script }));
    } finally {
      await catalog.close();
    }
    return;
  }
  const { setup } = await import('../setup/setup.ts');
  // Without a person who searches, the network is not asked: the copy or the snapshot will do.
  const listProviders = async () => (await openCatalog(place)).providers();
  await setup({ ...options, flags: flagsOf(options) }, { context, listProviders });
}

function addDoctor(program: Command, context: CommandContext, finish: Finish): void {
  program
    .command('doctor')
    .description('Check configuration, store, proxy, providers and clients; exit 1 on problems')
    .option('--fix', 'fix what needs no decision: file modes, left-over files, a missing token')
    .option('--offline', 'call no provider and no memory service')
    .option('--live', 'send a small model request twice through the proxy; this costs money')
    .option('-y, --yes', 'with --live: send without asking; required without a terminal')
    .option(
      '--model <name>',
      'the model for --live; default: the cheapest that each provider lists',
    )
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Each line is ok, a warning or a problem, and the command that fixes it follows. Without --live no call
costs anything: providers list their models and refuse an empty request. --live shows the price and asks
first. Without a terminal it sends nothing unless you give --yes.

Examples:
  $ svc doctor
  $ svc doctor --fix
  $ svc doctor --live --model claude-haiku-4-5
  $ svc doctor --live --yes
  $ svc doctor --offline --json`,
    )
    .action(async (options: DoctorOptions) => {
      const { doctor } = await import('../doctor/doctor.ts');
      const { inspectStore } = await import('../doctor/store-inspection.ts');
      const { createUpstream: openUpstream } =
        await import('../../adapters/network/undici-upstream.ts');
      const parts = { inspectStore, openUpstream, nodeVersion: process.versions.node };
      const { confirmer, isAsked } = await import('./confirmer.ts');
      const confirm = options.live === true && isAsked() ? { confirm: confirmer() } : {};
      finish(await doctor(options, context, { ...parts, ...confirm }));
    });
}

function addDemo(program: Command, context: CommandContext, finish: Finish): void {
  program
    .command('demo')
    .description('Show memory across conversations; needs no key and leaves no files')
    .addHelpText('after', '\nExamples:\n  $ svc demo')
    .action(async () => {
      const { demo } = await import('../demo/demo.ts');
      const { startProxy } = await import('../compose.ts');
      finish(await demo(context, { startProxy }));
    });
}
