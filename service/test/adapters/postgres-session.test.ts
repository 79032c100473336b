import type { PoolClient } from 'pg';
import { expect, test } from 'vitest';
import { meanwhile } from '../../src/adapters/postgres-store/captures.ts';
import { Session } from '../../src/adapters/postgres-store/session.ts';

test('work beside a statement begins when its message has gone to the server', async () => {
  const told: string[] = [];
  const client = { query: () => told.push('sent') };
  const origin = { system: 's', timeline: '1', isSynchronous: false };
  const plan = { begin: 'BEGIN', statementMs: 100, origin, until: performance.now() + 100 };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- A session sends, and does no more with it.
  const session = new Session(client as unknown as PoolClient, plan);
  const unanswered = session.all('SELECT 1');
  const work = meanwhile(() => told.push('worked'));
  expect(told).toEqual([]);
  await work;
  expect(told).toEqual(['sent', 'worked']);
  await expect(unanswered).rejects.toThrow();
});
