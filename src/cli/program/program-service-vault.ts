import type { Command } from 'commander';
import type { CommandContext } from '../context.ts';
import type { ConsoleOptions } from '../service/console-access.ts';
import type { VaultAddOptions } from '../service/service-vault.ts';
import { withConsoleOptions } from './console-options.ts';
import type { Finish } from './program.ts';

/** Declares the commands around the keys of a service: its vault and its signing keys. */
export function addVaultCommands(service: Command, context: CommandContext, finish: Finish): void {
  addVault(service, context, finish);
  addSigning(service, context);
}

function addVault(service: Command, context: CommandContext, finish: Finish): void {
  const vault = service
    .command('vault')
    .description('Secrets are sealed with master keys that are kept outside of the database');
  withConsoleOptions(vault.command('status'))
    .description('List master keys and what is under each; exit 1 when the active one does not fit')
    .addHelpText('after', '\nExamples:\n  $ svc service vault status')
    .action(async (options: ConsoleOptions) => {
      const { showVault } = await import('../service/service-vault.ts');
      finish(await showVault(options, context));
    });
  withConsoleOptions(vault.command('add'))
    .description('Add a master key on the machine of the service; it seals from then on')
    .option('--from <source>', 'file:/path, env:NAME or command:…; without it a new file is made')
    .addHelpText(
      'after',
      `
Examples:
  $ svc service vault add
  $ svc service vault add --from env:SVC_MASTER_KEY
  $ svc service vault add --from "command:pass show svc/master"

A key is 32 bytes in base64 or hexadecimal. service.json holds its source, never the key.`,
    )
    .action(async (options: VaultAddOptions) => {
      const { addMasterKey } = await import('../service/service-vault.ts');
      await addMasterKey(options, context);
    });
  for (const { name, what } of WALKS) {
    withConsoleOptions(vault.command(name))
      .description(what)
      .addHelpText('after', `\nExamples:\n  $ svc service vault ${name}`)
      .action(async (options: ConsoleOptions) => {
        const { walkVault } = await import('../service/service-vault.ts');
        finish(await walkVault(name, options, context));
      });
  }
  withConsoleOptions(vault.command('retire'))
    .description('Take a master key out of use, once no secret is under it')
    .argument('<id>', 'mk_… from the status')
    .addHelpText('after', '\nExamples:\n  $ svc service vault retire mk_4kz0ab7x')
    .action(async (id: string, options: ConsoleOptions) => {
      const { retireMasterKey } = await import('../service/service-vault.ts');
      await retireMasterKey(id, options, context);
    });
}

const WALKS = [
  {
    name: 'rotate',
    what: 'Bring all secrets under the active master key; may be killed and run again',
  },
  { name: 'verify', what: 'Open every secret; exit 1 when one does not open' },
] as const;

function addSigning(service: Command, context: CommandContext): void {
  const signing = service.command('signing').description('Keys that sign receipts');
  withConsoleOptions(signing.command('list'))
    .description('List signing keys, newest first')
    .addHelpText('after', '\nExamples:\n  $ svc service signing list')
    .action(async (options: ConsoleOptions) => {
      const { listSigningKeys } = await import('../service/service-vault.ts');
      await listSigningKeys(options, context);
    });
  withConsoleOptions(signing.command('rotate'))
    .description('Sign with a new key; the old public key stays for ever')
    .addHelpText('after', '\nExamples:\n  $ svc service signing rotate')
    .action(async (options: ConsoleOptions) => {
      const { rotateSigningKey } = await import('../service/service-vault.ts');
      await rotateSigningKey(options, context);
    });
}
