import type { TokenOptions } from '../clients/config-token.ts';
import type { ClaudeOptions, CodexOptions } from '../clients/print-config.ts';
import type { Call } from '../context.ts';
import type { CliCommand } from './program.ts';

/** Commands that print the address and the token for clients. They run often, so `quick.ts` is a bundle of them. */
export const CLIENT_COMMANDS: readonly CliCommand[] = [
  {
    name: 'print-config',
    group: 'programs',
    description: 'Print the settings that a client needs',
  },
  {
    name: 'print-config claude',
    description: 'Print shell lines for Claude Code and other Anthropic-style clients',
    options: {
      '--shell <shell>': ['sh (also right for bash and zsh), fish, powershell or cmd', 'sh'],
      '--auth-token': 'set ANTHROPIC_AUTH_TOKEN instead of ANTHROPIC_API_KEY',
      '--json': 'print the env block of a settings.json',
      '--service <url>': 'the address of a service; its key is in SVC_SERVICE_KEY',
      '-q, --quiet': 'print no explanations',
    },
    examples: [
      'eval "$(svc print-config claude)"',
      'svc print-config claude --shell fish | source',
      'svc print-config claude --service https://svc.example.com:8766',
    ],
    async run({ options, context }: Call<ClaudeOptions>) {
      const { printClaudeConfig, printServiceClaude } = await import('../clients/print-config.ts');
      if (options.service === undefined) await printClaudeConfig(options, context);
      else printServiceClaude(options.service, options, context);
    },
  },
  {
    name: 'print-config codex',
    description: 'Print TOML for Codex and other Responses-style clients',
    options: {
      '--auth-command': 'let codex ask svc for the token instead of reading a variable',
      '--openai-name': 'name the provider OpenAI, if it is OpenAI; codex then marks typed text',
      '--service <url>': 'the address of a service; its key is in SVC_SERVICE_KEY',
      '-q, --quiet': 'print no explanations',
    },
    examples: [
      'svc print-config codex > ~/.codex/svc.config.toml && codex -p svc',
      'svc print-config codex --service https://svc.example.com:8766',
    ],
    async run({ options, context }: Call<CodexOptions>) {
      const { printCodexConfig, printServiceCodex, refuseLocalFlags } =
        await import('../clients/print-config.ts');
      if (options.service === undefined) {
        await printCodexConfig(options, context);
        return;
      }
      refuseLocalFlags(options, ['authCommand', 'openaiName']);
      printServiceCodex(options.service, options, context);
    },
  },
  { name: 'config', description: 'Read the configuration' },
  {
    name: 'config token',
    group: 'programs',
    description: 'Print the local token, which clients send as their key',
    options: { '--start': 'start the proxy first if none runs; for clients that run this command' },
    examples: ['export SVC_LOCAL_PROXY_TOKEN="$(svc config token)"'],
    async run({ options, context }: Call<TokenOptions>) {
      const { printToken } = await import('../clients/config-token.ts');
      await printToken(options, context);
    },
  },
];
