import type { Command } from 'commander';
import type { UninstallOptions } from '../setup/uninstall.ts';
import type { CommandContext } from '../context.ts';
import type { Finish } from './program.ts';
import { addStart, scriptPath } from './program-start.ts';
import type { StatusOptions, StopOptions } from '../proxy/status.ts';
import type { TopOptions } from '../requests/top.ts';
import type { UnitOptions, UnitParts } from '../proxy/unit.ts';

/** A person waits so long for answers that an older build of svc has not finished. */
const PATIENCE_MS = 10_000;

/** Declares the commands around the running proxy. */
export function addProxyCommands(program: Command, context: CommandContext, finish: Finish): void {
  addStart(program, context, finish);
  addRun(program, context, finish);
  addStatus(program, context, finish);
  addTop(program, context);
  addUnit(program, context, finish);
  addUninstall(program, context, finish);
}

function addRun(program: Command, context: CommandContext, finish: Finish): void {
  program
    .command('run')
    .description('Run a client through the proxy; start a proxy if none runs; edit no file')
    .argument('<client>', 'claude, codex, opencode, pi, qwen, copilot, cline or continue')
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
  $ svc run opencode -- run "explain this repository"

The client has its own terminal, signals and exit code, as without svc. The proxy keeps running when
the client ends. Stop it with: svc stop`,
    )
    .action(async (client: string, given: readonly string[]) => {
      const { runClient } = await import('../proxy/run.ts');
      // The first -- ends svc's own options; a second one is the client's.
      const args = given[0] === '--' ? given.slice(1) : given;
      const parts = { script: scriptPath(), patienceMs: PATIENCE_MS };
      finish(await runClient({ client, args }, context, parts));
    });
}

function addStatus(program: Command, context: CommandContext, finish: Finish): void {
  program
    .command('status')
    .description('Show whether the proxy runs, and where; exit 1 when it does not')
    .option('--json', 'print a JSON list')
    .addHelpText('after', '\nExamples:\n  $ svc status\n  $ svc status --json')
    .action(async (options: StatusOptions) => {
      const { status } = await import('../proxy/status.ts');
      finish(await status(options, context));
    });
  program
    .command('stop')
    .description('Stop the proxy after its open answers have finished')
    .option('--port <number>', 'stop only the proxy on this port')
    .addHelpText('after', '\nExamples:\n  $ svc stop\n  $ svc stop --port 9000')
    .action(async (options: StopOptions) => {
      const { stop } = await import('../proxy/status.ts');
      finish(await stop(options, context));
    });
}

function addTop(program: Command, context: CommandContext): void {
  program
    .command('top')
    .description('Watch the proxy: requests in flight and the latest, tokens by conversation')
    .option('--once', 'print one snapshot')
    .option('--interval <seconds>', 'seconds between updates, 1 to 60', '1')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  $ svc top
  $ svc top --once
  $ svc top --json | jq '.open | length'

The sums cover the last hour. Press q or Ctrl-C to quit.`,
    )
    .action(async (options: TopOptions) => {
      const { top } = await import('../requests/top.ts');
      const { openStoreForCli: openStore } = await import('../compose-store.ts');
      await top(options, context, { openStore, keys: () => process.stdin });
    });
}

function addUnit(program: Command, context: CommandContext, finish: Finish): void {
  const unit = program
    .command('unit')
    .description('Keep the proxy running with a user service of systemd or launchd');
  unit
    .command('install')
    .description('Install and start the user service; it starts at every login')
    .option('--print', 'print the file and change nothing')
    .addHelpText('after', '\nExamples:\n  $ svc unit install\n  $ svc unit install --print')
    .action(async (options: UnitOptions) => {
      const { installUnit } = await import('../proxy/unit.ts');
      finish(await installUnit(options, context, unitParts()));
    });
  unit
    .command('uninstall')
    .description('Stop and remove the user service')
    .addHelpText('after', '\nExamples:\n  $ svc unit uninstall')
    .action(async () => {
      const { uninstallUnit } = await import('../proxy/unit.ts');
      finish(await uninstallUnit(context, unitParts()));
    });
}

function addUninstall(program: Command, context: CommandContext, finish: Finish): void {
  program
    .command('uninstall')
    .description(
      'Remove the files and settings that svc created on this machine, and restore clients',
    )
    .option('--dry-run', 'show what would be removed and remove nothing')
    .option('--keep-memory', 'keep the memories in the data folder')
    .option('-y, --yes', 'do not ask; required without a terminal')
    .option('--json', 'print the findings as JSON')
    .addHelpText(
      'after',
      `
The command stops the running proxies, removes the user service, and restores the original bytes of the
clients' settings files. It removes configuration, data, cache and log. It asks first; without a
terminal it removes nothing unless you add --yes.
To remove the package itself, run: npm uninstall -g svc-local-proxy

Examples:
  $ svc uninstall --dry-run
  $ svc uninstall --keep-memory
  $ svc memory export > memories.jsonl && svc uninstall --yes`,
    )
    .action(async (options: UninstallOptions) => {
      const { uninstall } = await import('../setup/uninstall.ts');
      const { confirmer, isAsked } = await import('./confirmer.ts');
      const confirm = isAsked() ? { confirm: confirmer() } : {};
      finish(await uninstall(options, context, { unit: unitParts(), ...confirm }));
    });
}

function unitParts(): UnitParts {
  return { platform: process.platform, node: process.execPath, script: scriptPath() };
}
