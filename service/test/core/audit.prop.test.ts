import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type AuditEvent, type AuditNote, chainEvent } from '../../src/core/audit.ts';
import { findBreak } from '../support/audit-chain.ts';

const note: fc.Arbitrary<AuditNote> = fc.record({
  event_id: fc.string(),
  at: fc.nat(),
  kind: fc.constantFrom('key.created', 'key.revoked'),
  actor: fc.record({ type: fc.constant('cli'), id: fc.string(), ip_hash: fc.constant(null) }),
  target: fc.record({ type: fc.string(), id: fc.string() }),
  details: fc.dictionary(fc.string(), fc.oneof(fc.integer(), fc.string(), fc.boolean())),
});

function chainOf(notes: readonly AuditNote[]): AuditEvent[] {
  const events: AuditEvent[] = [];
  for (const one of notes) events.push(chainEvent('acme', one, events.at(-1)));
  return events;
}

test('a chain is whole, and any event removed, moved, repeated or altered shows', () => {
  fc.assert(
    fc.property(fc.array(note, { minLength: 2, maxLength: 8 }), fc.nat(), (notes, pick) => {
      const events = chainOf(notes);
      expect(findBreak('acme', events)).toBe(undefined);
      const at = pick % events.length;
      const event = events[at] as AuditEvent;
      // The end of a chain has nobody behind it that would miss it: its number is what shows it.
      if (at < events.length - 1) expect(findBreak('acme', events.toSpliced(at, 1))).toBe(at + 1);
      expect(findBreak('acme', events.toSpliced(at, 0, event))).toBe(at + 2);
      const changes: Partial<AuditEvent>[] = [
        { at: event.at + 1 },
        { event_id: `${event.event_id}x` },
        { tenant: 'other' },
        { number: event.number + 1 },
        { previous: 'x' },
        { hash: `${event.hash}0` },
        { kind: 'plan.created' },
        { actor: { ...event.actor, id: `${event.actor.id}x` } },
        { target: { ...event.target, id: `${event.target.id}x` } },
        { details: { ...event.details, surplus: 1 } },
      ];
      for (const change of changes) {
        expect(findBreak('acme', events.with(at, { ...event, ...change }))).toBe(at + 1);
      }
    }),
  );
});
