import type { Command } from 'commander';
import type { CommandContext } from './context.ts';
import type { DoctorOptions } from './doctor.ts';
import type { Finish } from './main.ts';
import type { ClaudeOptions, CodexOptions } from './print-config.ts';
import { flagsOf, type RawFlags, withProxyFlags } from './proxy-flags.ts';
import type { SetupOptions } from './setup.ts';

/** Declares the commands around the configuration and the proxy itself. */
export function addConfigCommands(program: Command, context: CommandContext, finish: Finish): void {
  addSetup(program, context, finish);
  addDoctor(program, context, finish);
  addDemo(program, context, finish);
  addPrintConfig(program, context);
  program
    .command('config')
    .description('Read the configuration')
    .command('token')
    .description('Print the local token, which a client sends as its key')
    .addHelpText('after', '\nExamples:\n  $ export SVC_LOCAL_PROXY_TOKEN="$(svc config token)"')
    .action(async () => {
      const { printToken } = await import('./config-token.ts');
      await printToken(context);
    });
}

function addSetup(program: Command, context: CommandContext, finish: Finish): void {
  const command = program
    .command('setup')
    .description('Make the configuration, or change it; what is not named stays as it is')
    .option('-y, --yes', 'ask nothing')
    .option(
      '--upstream <name>',
      'add or change a provider: anthropic, openai, openrouter, deepseek, groq, mistral, xai, ollama, or a name of your own',
    )
    .option(
      '--key-env <variable>',
      'the environment variable that holds its key; the file names it',
    )
    .option('--key-stdin', 'read its key from stdin; the file holds it')
    .option('--base-url <url>', 'where it is, as its documentation gives it to clients')
    .option(
      '--api-style <style>',
      'anthropic_messages, openai_responses or openai_chat_completions',
    )
    .option('--auth <kind>', 'how it takes the key: x-api-key, bearer or none')
    .option('--allow-private', 'allow http and addresses of this machine or network for it')
    .option('--replace', 'let it take the place of another provider with the same API style')
    .option('--remove <name>', 'remove a provider');
  withProxyFlags(command)
    .addHelpText(
      'after',
      `
On a terminal and without options it asks, tries the key, and writes at the end.

Examples:
  $ svc setup
  $ svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY
  $ svc setup --yes --upstream openai --key-stdin < key.txt
  $ svc setup --yes --upstream ollama
  $ svc setup --yes --upstream work --base-url https://llm.example.com/v1 \\
      --api-style openai_chat_completions --key-env WORK_KEY
  $ svc setup --yes --memory-mode read --port 9000
  $ svc setup --yes --remove openai

A key is never an argument: other programs could read it there.`,
    )
    .action(async (options: SetupOptions & RawFlags) => {
      if (Object.keys(options).length === 0 && process.stdin.isTTY && process.stderr.isTTY) {
        const { wizard } = await import('./wizard.ts');
        const { createUpstream } = await import('../adapters/undici-upstream.ts');
        const streams = { input: process.stdin, output: process.stderr };
        finish(await wizard(context, { openUpstream: createUpstream, streams }));
        return;
      }
      const { setup } = await import('./setup.ts');
      await setup({ ...options, flags: flagsOf(options) }, context);
    });
}

function addDoctor(program: Command, context: CommandContext, finish: Finish): void {
  program
    .command('doctor')
    .description('Check configuration, store, proxy, providers and clients; exit 1 on problems')
    .option('--fix', 'mend what may be mended by itself: modes that are too open')
    .option('--offline', 'ask no provider')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc doctor\n  $ svc doctor --fix\n  $ svc doctor --offline --json',
    )
    .action(async (options: DoctorOptions) => {
      const { doctor } = await import('./doctor.ts');
      const { inspectStore } = await import('./store-for-cli.ts');
      const { createUpstream: openUpstream } = await import('../adapters/undici-upstream.ts');
      const parts = { inspectStore, openUpstream, nodeVersion: process.versions.node };
      finish(await doctor(options, context, parts));
    });
}

function addDemo(program: Command, context: CommandContext, finish: Finish): void {
  program
    .command('demo')
    .description('Show memory across conversations, with no key and nothing left behind')
    .addHelpText('after', '\nExamples:\n  $ svc demo')
    .action(async () => {
      const { demo } = await import('./demo.ts');
      const { startProxy } = await import('./compose.ts');
      finish(await demo(context, { startProxy }));
    });
}

function addPrintConfig(program: Command, context: CommandContext): void {
  const command = program
    .command('print-config')
    .description('Print what a client needs to use the proxy');
  command
    .command('claude')
    .description('Shell lines for Claude Code and other Anthropic-style clients')
    .option('--shell <shell>', 'sh (also right for bash and zsh), fish or powershell', 'sh')
    .option('--auth-token', 'set ANTHROPIC_AUTH_TOKEN instead of ANTHROPIC_API_KEY')
    .option('--json', 'print the env block of a settings.json')
    .option('-q, --quiet', 'explain nothing')
    .addHelpText(
      'after',
      '\nExamples:\n  $ eval "$(svc print-config claude)"\n  $ svc print-config claude --shell fish | source',
    )
    .action(async (options: ClaudeOptions) => {
      const { printClaudeConfig } = await import('./print-config.ts');
      await printClaudeConfig(options, context);
    });
  command
    .command('codex')
    .description('TOML for Codex and other Responses-style clients')
    .option('--auth-command', 'let codex ask svc for the token instead of reading a variable')
    .option('--openai-name', 'name the provider OpenAI, where it is: codex then marks typed text')
    .option('-q, --quiet', 'explain nothing')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc print-config codex > ~/.codex/svc.config.toml && codex -p svc',
    )
    .action(async (options: CodexOptions) => {
      const { printCodexConfig } = await import('./print-config.ts');
      await printCodexConfig(options, context);
    });
}
