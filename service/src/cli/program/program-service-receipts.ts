import type { Command } from 'commander';
import type { CommandContext } from '../../../../src/cli/context.ts';
import type { ConsoleOptions } from '../commands/console-access.ts';
import type { ArchiveOptions, RecoverOptions } from '../commands/service-archive.ts';
import type { ListOptions, VerifyOptions } from '../commands/service-receipts.ts';
import { withConsoleOptions } from './console-options.ts';
import type { Finish } from '../../../../src/cli/program/program.ts';

/** Declares the commands about receipts of requests. */
export function addReceiptCommands(
  service: Command,
  context: CommandContext,
  finish: Finish,
): void {
  const receipts = service
    .command('receipts')
    .description('List, export and verify signed receipts of requests');
  withFilters(receipts.command('list'))
    .description('List receipts, newest first')
    .option('--limit <number>', 'how many (20)')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service receipts list --limit 50
  $ svc-service receipts list --status upstream_error --from 2026-11-20`,
    )
    .action(async (options: ListOptions) => {
      const { listReceipts } = await import('../commands/service-receipts.ts');
      await listReceipts(options, context);
    });
  withConsoleOptions(receipts.command('get'))
    .description('Print one receipt as JSON')
    .argument('<id>', 'rcpt_…, from the header x-svc-receipt-id')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc-service receipts get rcpt_06e8z6k2y8r7v0b4c9d1f5g3hj',
    )
    .action(async (id: string, options: ConsoleOptions) => {
      const { getReceipt } = await import('../commands/service-receipts.ts');
      await getReceipt(id, options, context);
    });
  withTimes(receipts.command('export'))
    .description('Write receipts, heads and public keys to a new folder')
    .argument('<folder>', 'the target folder')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc-service receipts export ./november --from 2026-11-01',
    )
    .action(async (folder: string, options: ListOptions) => {
      const { exportReceipts } = await import('../commands/service-receipts.ts');
      await exportReceipts(folder, options, context);
    });
  addVerify(receipts, context, finish);
  addKeeping(receipts, context);
}

function addVerify(receipts: Command, context: CommandContext, finish: Finish): void {
  receipts
    .command('verify')
    .description('Verify receipts without the service; exit 1 if one is altered or missing')
    .argument('<path>', 'a file of receipts, or a folder of an export or archive')
    .option('--keys <file>', 'the public keys (keys.json of the folder)')
    .option('--partial', 'the receipts are only a part: accept missing numbers before and after')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service receipts verify ./all
  $ svc-service receipts verify ./november --partial
  $ curl -s https://HOST/.well-known/svc/receipt-keys.json > keys.json
  $ svc-service receipts verify purges.json --keys keys.json

Every node numbers the receipts of a tenant 1, 2, 3 … and signs its last number, the head.`,
    )
    .action(async (path: string, options: VerifyOptions) => {
      const { verifyReceipts } = await import('../commands/service-receipts.ts');
      finish(await verifyReceipts(path, options, context));
    });
}

function addKeeping(receipts: Command, context: CommandContext): void {
  receipts
    .command('recover')
    .description('Store the receipts that a dead process left; the service must be stopped')
    .option('--folder <path>', "the service's folder")
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExamples:\n  $ svc-service receipts recover')
    .action(async (options: RecoverOptions) => {
      const { recoverCommand } = await import('../commands/service-archive.ts');
      await recoverCommand(options, context);
    });
  withConsoleOptions(receipts.command('archive'))
    .description('Move old receipts from the database to files, one file for each day')
    .argument('<folder>', 'the target folder')
    .option('--older-than <days>', 'age from which receipts are moved (90d)')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc-service receipts archive /backup/receipts --older-than 30d',
    )
    .action(async (folder: string, options: ArchiveOptions) => {
      const { archiveReceipts } = await import('../commands/service-archive.ts');
      await archiveReceipts(folder, options, context);
    });
}

function withFilters(command: Command): Command {
  return withTimes(command)
    .option('--status <status>', 'such as completed, rejected, unknown')
    .option('--model <name>', 'the requested model')
    .option('--key <id>', 'the id of a key')
    .option('--provider <id>', 'prov_…');
}

function withTimes(command: Command): Command {
  return withConsoleOptions(command)
    .option('--from <when>', 'a day or a time, UTC')
    .option('--to <when>', 'up to this time, which is excluded');
}
