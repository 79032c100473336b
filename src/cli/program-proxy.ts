import type { Command } from 'commander';
import type { CommandContext } from './context.ts';
import type { Finish } from './main.ts';
import { flagsOf, type RawFlags, withProxyFlags } from './proxy-flags.ts';
import type { StartOptions } from './start.ts';
import type { StatusOptions, StopOptions } from './status.ts';
import type { UnitOptions, UnitParts } from './unit.ts';

/** Declares the commands around the running proxy. */
export function addProxyCommands(program: Command, context: CommandContext, finish: Finish): void {
  addStart(program, context, finish);
  addRun(program, context, finish);
  addStatus(program, context, finish);
  addUnit(program, context, finish);
}

function addStart(program: Command, context: CommandContext, finish: Finish): void {
  const command = program
    .command('start')
    .description('Start the proxy; it runs until it is interrupted')
    .option('-d, --detach', 'start it in the background, and come back when it serves')
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

With no configuration and ANTHROPIC_API_KEY or OPENAI_API_KEY in the environment, start makes one
that names those variables.`,
    )
    .action(async (options: Omit<StartOptions, 'flags'> & RawFlags & { detach?: boolean }) => {
      const flags = flagsOf(options);
      if (options.detach === true) {
        const { startDetached } = await import('./start-detached.ts');
        await startDetached({ ...options, flags }, context, { script: scriptPath() });
        return;
      }
      const { start } = await import('./start.ts');
      const { startProxy } = await import('./compose.ts');
      finish(await start({ ...options, flags }, context, { startProxy, signals: process }));
    });
}

function addRun(program: Command, context: CommandContext, finish: Finish): void {
  program
    .command('run')
    .description('Run a client through the proxy; starts the proxy where none runs, edits no file')
    .argument('<client>', 'claude or codex')
    .argument('[args...]', "the client's own arguments")
    .allowUnknownOption()
    .passThroughOptions()
    .addHelpText(
      'after',
      `
Examples:
  $ svc run claude
  $ svc run claude -- --resume
  $ svc run codex -- exec "explain this repository"

The client gets its terminal, its signals and its exit code as if svc were not there. The proxy goes
on when the client has ended: stop it with svc stop.`,
    )
    .action(async (client: string, given: readonly string[]) => {
      const { runClient } = await import('./run.ts');
      // The first -- ends svc's own options; a second one is the client's.
      const args = given[0] === '--' ? given.slice(1) : given;
      finish(await runClient({ client, args }, context, { script: scriptPath() }));
    });
}

function addStatus(program: Command, context: CommandContext, finish: Finish): void {
  program
    .command('status')
    .description('Say whether the proxy runs, and where; exit 1 when it does not')
    .option('--json', 'print a JSON list')
    .addHelpText('after', '\nExamples:\n  $ svc status\n  $ svc status --json')
    .action(async (options: StatusOptions) => {
      const { status } = await import('./status.ts');
      finish(await status(options, context));
    });
  program
    .command('stop')
    .description('Stop the proxy; open answers are finished first')
    .option('--port <number>', 'only the one on this port')
    .addHelpText('after', '\nExamples:\n  $ svc stop\n  $ svc stop --port 9000')
    .action(async (options: StopOptions) => {
      const { stop } = await import('./status.ts');
      finish(await stop(options, context));
    });
}

function addUnit(program: Command, context: CommandContext, finish: Finish): void {
  const unit = program
    .command('unit')
    .description('Keep the proxy running: a service of your own for systemd or launchd');
  unit
    .command('install')
    .description('Install and start it; it starts again whenever you log in')
    .option('--print', 'show the file, and do nothing')
    .addHelpText('after', '\nExamples:\n  $ svc unit install\n  $ svc unit install --print')
    .action(async (options: UnitOptions) => {
      const { installUnit } = await import('./unit.ts');
      finish(await installUnit(options, context, unitParts()));
    });
  unit
    .command('uninstall')
    .description('Stop it and remove it')
    .addHelpText('after', '\nExamples:\n  $ svc unit uninstall')
    .action(async () => {
      const { uninstallUnit } = await import('./unit.ts');
      finish(await uninstallUnit(context, unitParts()));
    });
}

function unitParts(): UnitParts {
  return { platform: process.platform, node: process.execPath, script: scriptPath() };
}

/** What the background process is started with: this very program. */
function scriptPath(): string {
  return process.argv[1] ?? '';
}
