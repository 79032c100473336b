import type { Command } from 'commander';
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

function addPrintConfig(program: Command, context: CommandContext): void {
  const command = program
    .command('print-config')
    .description('Print the settings that a client needs');
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
    .option('-q, --quiet', 'print no explanations')
    .addHelpText(
      'after',
      `
Examples:
  $ eval "$(svc print-config claude)"
  $ svc print-config claude --shell fish | source
  $ svc print-config claude --service https://svc.example.com:8766`,
    )
    .action(async (options: ClaudeOptions) => {
      if (options.service !== undefined) {
        const { printServiceClaude } = await import('../clients/service-config.ts');
        printServiceClaude(options.service, options, context);
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
    .option('-q, --quiet', 'print no explanations')
    .addHelpText(
      'after',
      `
Examples:
  $ svc print-config codex > ~/.codex/svc.config.toml && codex -p svc
  $ svc print-config codex --service https://svc.example.com:8766`,
    )
    .action(async (options: CodexOptions) => {
      if (options.service !== undefined) {
        const { printServiceCodex, refuseLocalFlags } =
          await import('../clients/service-config.ts');
        refuseLocalFlags(options, ['authCommand', 'openaiName']);
        printServiceCodex(options.service, options, context);
        return;
      }
      const { printCodexConfig } = await import('../clients/print-config.ts');
      await printCodexConfig(options, context);
    });
}
