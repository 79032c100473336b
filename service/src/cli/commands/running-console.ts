import { readFile } from 'node:fs/promises';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { openConsoleAt } from '../compose-console.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { type ConsoleOptions, withConsole } from './console-access.ts';
import { type ConsoleAccess, textOf } from './console-fields.ts';
import { folderOf } from './service-context.ts';
import { findService } from './service-status.ts';

/**
 * Calls that the service itself has to make: it may see another network than this command, and trust
 * other certificates. A token of a minute opens its console, and is revoked after the call.
 */

const TOKEN_MS = 60_000;

export async function withRunningConsole<Result>(
  options: ConsoleOptions,
  context: CommandContext,
  work: (console: Pick<ConsoleAccess, 'call'>) => Promise<Result>,
): Promise<Result> {
  if (options.url !== undefined) return withConsole(options, context, work);
  const running = await findService(folderOf(options, context));
  if (running === undefined) {
    context.terminal.note('The service does not run, so this command asks the provider itself.');
    return withConsole(options, context, work);
  }
  const { host, port, cert } = running;
  const certificate = cert === undefined ? undefined : await readFile(cert, 'utf8');
  return withConsole(options, context, async (local) => {
    const name = 'svc-service providers';
    const body = { name, role: 'operator', expires_at: isoTime(Date.now() + TOKEN_MS) };
    const made = await local.call({ method: 'POST', path: 'admins', body });
    try {
      const token = textOf(made['token']);
      const { tenant } = options;
      return await work(openConsoleAt({ host, port, certificate }, { token, tenant }));
    } finally {
      await local.call({ method: 'DELETE', path: `admins/${textOf(made['admin_id'])}` });
    }
  });
}
