import type { Command } from 'commander';
import { CliError } from '../cli-error.ts';
import type { TokenOptions } from '../clients/config-token.ts';
import type { CommandContext } from '../context.ts';
import type { ClaudeOptions, CodexOptions } from '../clients/print-config.ts';

/**
 * Declares the commands that give clients the proxy's address. Shells and clients run them again
 * and again, so they are a bundle of their own (`quick.ts`).
 */
export function addClientConfigCommands(program: Command, context: CommandContext): void {
  addPrintConfig(program, context);
  program
    .command('config')
    .description('Read the configuration')
    .command('token')
    .description('Print the local token, which clients send as their key')
    .option('--start', 'start the proxy first if none runs; for clients that run this command')
    .addHelpText('after', '\nExamples:\n  $ export SVC_LOCAL_PROXY_TOKEN="$(svc config token)"')
    .action(async (options: TokenOptions) => {
      const { printToken } = await import('../clients/config-token.ts');
      await printToken(options, context, process.argv[1] ?? '');
    });
}

const WRITES = `
--write changes the client's own settings file, so the client uses the proxy in every session. The file
holds no token: the client asks svc for it, and that command starts the proxy if none runs. The rest of
the file stays. --undo removes the change. It restores every byte if the file has not changed since.`;

function addPrintConfig(program: Command, context: CommandContext): void {
  const command = program
    .command('print-config')
    .description('Print the settings that a client needs, or write them into its own file');
  addPrintClaude(command, context);
  addPrintCodex(command, context);
}

function addPrintClaude(command: Command, context: CommandContext): void {
  command
    .command('claude')
    .description('Print shell lines for Claude Code and other Anthropic-style clients')
    .option('--shell <shell>', 'sh (also right for bash and zsh), fish, powershell or cmd', 'sh')
    .option('--auth-token', 'set ANTHROPIC_AUTH_TOKEN instead of ANTHROPIC_API_KEY')
    .option('--json', 'print the env block of a settings.json')
    .option('--service <url>', 'the address of a service; its key is in SVC_SERVICE_KEY')
    .option('--write', 'change ~/.claude/settings.json instead of printing')
    .option('--undo', 'remove the change of --write')
    .option('-q, --quiet', 'print no explanations')
    .addHelpText(
      'after',
      `
Examples:
  $ eval "$(svc print-config claude)"
  $ svc print-config claude --shell fish | source
  $ svc print-config claude --service https://svc.example.com:8766
  $ svc print-config claude --write
  $ svc print-config claude --undo
${WRITES}`,
    )
    .action(async (options: ClaudeOptions & WriteFlags) => {
      if (options.service !== undefined) {
        const { printServiceClaude, refuseLocalFlags } =
          await import('../clients/service-config.ts');
        refuseLocalFlags(options, ['write', 'undo']);
        printServiceClaude(options.service, options, context);
        return;
      }
      if (isWriting(options)) {
        const { writeClaudeConfig } = await import('../clients/write-config.ts');
        await writeClaudeConfig(options, context, { script: process.argv[1] ?? '' });
        return;
      }
      const { printClaudeConfig } = await import('../clients/print-config.ts');
      await printClaudeConfig(options, context);
    });
}

function addPrintCodex(command: Command, context: CommandContext): void {
  command
    .command('codex')
    .description('Print TOML for Codex and other Responses-style clients')
    .option('--auth-command', 'let codex ask svc for the token instead of reading a variable')
    .option(
      '--openai-name',
      'name the provider OpenAI, if it is OpenAI; codex then marks typed text',
    )
    .option('--service <url>', 'the address of a service; its key is in SVC_SERVICE_KEY')
    .option('--write', 'change ~/.codex/config.toml instead of printing; with --auth-command')
    .option('--undo', 'remove the change of --write')
    .option('-q, --quiet', 'print no explanations')
    .addHelpText(
      'after',
      `
Examples:
  $ svc print-config codex > ~/.codex/svc.config.toml && codex -p svc
  $ svc print-config codex --service https://svc.example.com:8766
  $ svc print-config codex --write
  $ svc print-config codex --undo
${WRITES}`,
    )
    .action(async (options: CodexOptions & WriteFlags) => {
      if (options.service !== undefined) {
        const { printServiceCodex, refuseLocalFlags } =
          await import('../clients/service-config.ts');
        refuseLocalFlags(options, ['write', 'undo', 'authCommand', 'openaiName']);
        printServiceCodex(options.service, options, context);
        return;
      }
      if (isWriting(options)) {
        const { writeCodexConfig } = await import('../clients/write-config.ts');
        await writeCodexConfig(options, context, { script: process.argv[1] ?? '' });
        return;
      }
      const { printCodexConfig } = await import('../clients/print-config.ts');
      await printCodexConfig(options, context);
    });
}

interface WriteFlags {
  readonly write?: boolean;
  readonly undo?: boolean;
}

export function isWriting({ write, undo }: WriteFlags): boolean {
  if (write === true && undo === true) {
    throw new CliError('--write and --undo are opposites.', 'Give one of them.', 2);
  }
  return write === true || undo === true;
}
