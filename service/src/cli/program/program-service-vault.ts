import type { Command } from 'commander';
import type { CommandContext } from '../../../../src/cli/context.ts';
import type { ConsoleOptions } from '../commands/console-access.ts';
import type { VaultAddOptions } from '../commands/service-vault.ts';
import { withConsoleOptions } from './console-options.ts';
import type { Finish } from '../../../../src/cli/program/program.ts';

/** Declares the commands around the keys of a service: its vault and its signing keys. */
export function addVaultCommands(service: Command, context: CommandContext, finish: Finish): void {
  addVault(service, context, finish);
  addSigning(service, context);
}

function addVault(service: Command, context: CommandContext, finish: Finish): void {
  const vault = service
    .command('vault')
    .description('Manage the master keys that encrypt the secrets of a service');
  withConsoleOptions(vault.command('status'))
    .description(
      'List master keys and how many secrets each encrypts; exit 1 if the active one does not fit',
    )
    .addHelpText('after', '\nExamples:\n  $ svc-service vault status')
    .action(async (options: ConsoleOptions) => {
      const { showVault } = await import('../commands/service-vault.ts');
      finish(await showVault(options, context));
    });
  withConsoleOptions(vault.command('add'))
    .description('Add a master key on the machine of the service; it encrypts new secrets')
    .option('--from <source>', 'file:/path, env:NAME or command:… (default: create a new file)')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service vault add
  $ svc-service vault add --from env:SVC_MASTER_KEY
  $ svc-service vault add --from "command:pass show svc/master"

A key is 32 bytes in base64 or hexadecimal. service.json holds its source, never the key.`,
    )
    .action(async (options: VaultAddOptions) => {
      const { addMasterKey } = await import('../commands/service-vault.ts');
      await addMasterKey(options, context);
    });
  for (const { name, what } of WALKS) {
    withConsoleOptions(vault.command(name))
      .description(what)
      .addHelpText('after', `\nExamples:\n  $ svc-service vault ${name}`)
      .action(async (options: ConsoleOptions) => {
        const { walkVault } = await import('../commands/service-vault.ts');
        finish(await walkVault(name, options, context));
      });
  }
  withConsoleOptions(vault.command('retire'))
    .description('Retire a master key that encrypts no secret any more')
    .argument('<id>', 'the id (mk_…) from svc-service vault status')
    .addHelpText('after', '\nExamples:\n  $ svc-service vault retire mk_4kz0ab7x')
    .action(async (id: string, options: ConsoleOptions) => {
      const { retireMasterKey } = await import('../commands/service-vault.ts');
      await retireMasterKey(id, options, context);
    });
}

const WALKS = [
  {
    name: 'rotate',
    what: 'Encrypt all secrets with the active master key; if interrupted, run it again',
  },
  { name: 'verify', what: 'Decrypt every secret; exit 1 if one fails' },
] as const;

function addSigning(service: Command, context: CommandContext): void {
  const signing = service.command('signing').description('Manage the keys that sign receipts');
  withConsoleOptions(signing.command('list'))
    .description('List signing keys, newest first')
    .addHelpText('after', '\nExamples:\n  $ svc-service signing list')
    .action(async (options: ConsoleOptions) => {
      const { listSigningKeys } = await import('../commands/service-vault.ts');
      await listSigningKeys(options, context);
    });
  withConsoleOptions(signing.command('rotate'))
    .description('Create a new signing key; the old public key stays published')
    .addHelpText('after', '\nExamples:\n  $ svc-service signing rotate')
    .action(async (options: ConsoleOptions) => {
      const { rotateSigningKey } = await import('../commands/service-vault.ts');
      await rotateSigningKey(options, context);
    });
}
