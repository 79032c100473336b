import type { Command } from 'commander';

/** Options of every command that manages a service. */
export function withConsoleOptions(command: Command): Command {
  return command
    .option('--folder <path>', "the service's folder")
    .option('--url <address>', 'a service elsewhere; its token comes from $SVC_ADMIN_TOKEN')
    .option('--tenant <id>', 'for which tenant (default)')
    .option('--json', 'print JSON');
}
