import type { Command } from 'commander';
import type { CommandContext } from '../context.ts';
import type { Finish } from './program.ts';
import { flagsOf, type RawFlags, withProxyFlags } from '../proxy/proxy-flags.ts';
import type { StartOptions } from '../proxy/start.ts';

/** Declares `svc start`, for the whole program and for the bundle of its own. */
export function addStart(program: Command, context: CommandContext, finish: Finish): void {
  const command = program
    .command('start')
    .description('Start the proxy and run until interrupted')
    .option('-d, --detach', 'start in the background and return when it accepts requests')
    .option('-q, --quiet', 'print problems only')
    .option(
      '--log <form>',
      'a line for each request: text on stderr (as on a terminal), json on stdout, or off',
    )
    .option('--json', 'print the address as a line of JSON on stdout');
  withProxyFlags(command)
    .addHelpText(
      'after',
      `
Examples:
  $ svc start
  $ svc start --detach
  $ svc start --port 9000 --memory-mode read
  $ svc start --log json | jq .memoryState
  $ SVC_PORT=9000 svc start

If there is no configuration, and ANTHROPIC_API_KEY or OPENAI_API_KEY is set, start creates a
configuration that names those variables.

On a company network, start obeys HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and "proxy" of an upstream.
NODE_EXTRA_CA_CERTS adds trusted certificates. See docs/networks.md.`,
    )
    .action(async (options: Omit<StartOptions, 'flags'> & RawFlags & { detach?: boolean }) => {
      const flags = flagsOf(options);
      if (options.detach === true) {
        const { startDetached } = await import('../proxy/start-detached.ts');
        await startDetached({ ...options, flags }, context, { script: scriptPath() });
        return;
      }
      const { start } = await import('../proxy/start.ts');
      const { startProxy } = await import('../compose.ts');
      finish(await start({ ...options, flags }, context, { startProxy, signals: process }));
    });
}

/** The script for a background process: this very program. */
export function scriptPath(): string {
  return process.argv[1] ?? '';
}
