import { isoTime } from '../../../../src/core/memory/times.ts';
import type { AuditEvent } from '../../core/audit.ts';
import { type ConsoleCall, type ConsoleReply, listReply, pageOf, storeOf } from './console-call.ts';

/**
 * Audit events, newest first. Those that belong to no tenant are on record under `service`, which
 * only an operator can name.
 */
export async function listAudit(call: ConsoleCall): Promise<ConsoleReply> {
  const page = pageOf(call.query, 50);
  const events = await storeOf(call).listAudit(page);
  return listReply(events, page, { idOf: ({ number }) => String(number), wireOf });
}

function wireOf({ at, ...event }: AuditEvent): object {
  return { ...event, at: isoTime(at) };
}
