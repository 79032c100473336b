import type { Command } from 'commander';

/** Options of every command that manages a service. */
export function withConsoleOptions(command: Command): Command {
  return command
    .option('--folder <path>', "the service's folder")
    .option('--url <address>', 'address of a remote service; the token comes from $SVC_ADMIN_TOKEN')
    .option('--tenant <id>', 'the tenant (default: default)')
    .option('--json', 'print JSON');
}
