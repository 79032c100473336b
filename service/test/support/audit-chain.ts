import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../src/core/memory-api/canonical.ts';
import type { AuditEvent } from '../../src/core/audit.ts';

/** Events of one tenant, oldest first, from the first on. The number of the first that is wrong. */
export function findBreak(tenant: string, events: readonly AuditEvent[]): number | undefined {
  let previous = '';
  for (const [at, event] of events.entries()) {
    const { hash, ...facts } = event;
    const told = createHash('sha256')
      .update(canonicalJson(facts) ?? '')
      .digest('hex');
    const isInPlace = event.number === at + 1 && event.tenant === tenant;
    if (!isInPlace || event.previous !== previous || told !== hash) return at + 1;
    previous = hash;
  }
  return undefined;
}
