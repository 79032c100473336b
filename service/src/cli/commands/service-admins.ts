import { isoTime } from '../../../../src/core/memory/times.ts';
import { ADMIN_ROLES } from '../../core/admins.ts';
import { asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { limitOf, timeText } from '../../../../src/cli/listing.ts';
import { oneLine } from '../../../../src/cli/terminal.ts';
import { table } from '../../../../src/cli/text-table.ts';
import { type ConsoleOptions, listAll, withConsole } from './console-access.ts';
import { textOf, timeOf } from './console-fields.ts';
import { checkId, expiryOf } from './service-keys.ts';

/** `svc-service admins` and `audit`: who may manage a service, and what they did. */

export interface AdminOptions extends ConsoleOptions {
  readonly name?: string;
  readonly role?: string;
  readonly expires?: string;
}

export interface AuditOptions extends ConsoleOptions {
  readonly limit?: string;
}

export async function createAdmin(options: AdminOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const role = ADMIN_ROLES.find((known) => known === options.role);
  if (role === undefined) {
    throw new CliError(`--role: expected ${ADMIN_ROLES.join(', ')}.`, 'Try --role admin', 2);
  }
  const expiresAt = expiryOf(options.expires, Date.now());
  const body = {
    name: options.name ?? 'unnamed',
    role,
    expires_at: expiresAt === undefined ? null : isoTime(expiresAt),
  };
  const made = await withConsole(options, context, (console) =>
    console.call({ method: 'POST', path: 'admins', body }),
  );
  if (options.json === true) terminal.json(made);
  else terminal.out(textOf(made['token']));
  terminal.note('svc shows the token only once. It opens the console operations, never models.');
}

export async function listAdmins(options: ConsoleOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const admins = await withConsole(options, context, (console) => listAll(console, 'admins'));
  if (options.json === true) {
    terminal.json(admins);
    return;
  }
  const rows = admins.map((admin) => {
    const usedAt = timeOf(admin['last_used_at']);
    return [
      textOf(admin['admin_id']),
      oneLine(textOf(admin['name']), 24),
      textOf(admin['role']),
      admin['tenant_id'] === null ? 'all tenants' : textOf(admin['tenant_id']),
      textOf(admin['status']),
      `used ${usedAt === undefined ? 'never' : timeText(usedAt)}`,
    ];
  });
  const shape = { columns: terminal.columns(160), left: [0, 1, 2, 3, 4, 5] };
  for (const line of table(rows, shape)) terminal.out(line);
}

export async function revokeAdmin(
  adminId: string,
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  checkId(adminId, 'svc-service admins list');
  await withConsole(options, context, (console) =>
    console.call({ method: 'DELETE', path: `admins/${adminId}` }),
  );
  context.terminal.note('The token is revoked: a running service refuses it from now on.');
}

export async function listAudit(options: AuditOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const limit = limitOf(options.limit, { fallback: 50, max: 100 });
  const page = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: 'audit', query: { limit: String(limit) } }),
  );
  const events = Array.isArray(page['data']) ? page['data'].map(asRecord) : [];
  if (options.json === true) {
    terminal.json(events);
    return;
  }
  const rows = events.map((event) => {
    const [actor, target] = [asRecord(event['actor']), asRecord(event['target'])];
    return [
      timeText(timeOf(event['at']) ?? 0),
      textOf(event['kind']),
      `${textOf(target['type'])} ${oneLine(textOf(target['id']), 40)}`,
      `by ${textOf(actor['type'])} ${textOf(actor['id'])}`,
    ];
  });
  const shape = { columns: terminal.columns(160), left: [0, 1, 2, 3] };
  for (const line of table(rows, shape)) terminal.out(line);
}
