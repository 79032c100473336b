import type { MemoryRecord } from '../../src/ports/memory.ts';
import { recordOf } from './records.ts';

/**
 * A small memory of which every order is known: three conversations of one project, with facts that
 * change, long answers around short questions, dates, names, and two more languages.
 */

interface Told {
  /** By this name the expected orders speak of it. */
  readonly name: string;
  readonly day: string;
  readonly human: string;
  readonly answer?: string;
}

const TOLD: readonly Told[] = [
  {
    name: 'port-old',
    day: '2026-02-02',
    human: 'The gateway listens on port 7100 and the admin page of the gateway on 7101.',
    answer:
      'Noted. A gateway port below 1024 would need more rights, so 7100 is a sensible choice. Keep the admin page off the public network.',
  },
  {
    name: 'cache',
    day: '2026-02-02',
    human: 'We cache product pages for ten minutes, because the price service is slow.',
    answer: 'Ten minutes is fine as long as a price change clears the cache of that product.',
  },
  {
    name: 'fridays',
    day: '2026-02-03',
    human: 'Releases go out on Fridays at four, and Ilse Brandt signs them off.',
    answer: 'A release on a Friday leaves the weekend for surprises. Is there a rollback plan?',
  },
  {
    name: 'rollback',
    day: '2026-02-03',
    human: 'Yes: we keep the last three images and switch the label back.',
    answer: 'Good. Switching the label back takes seconds.',
  },
  {
    name: 'tests-slow',
    day: '2026-02-10',
    human: 'The integration tests take 14 minutes; each of them starts its own database.',
    answer: 'Start the database once and give each test its own schema.',
  },
  {
    name: 'timeouts',
    day: '2026-02-12',
    human: 'Uploads failed after 30 seconds. The load balancer closed idle connections.',
    answer: 'Raise the idle timeout of the load balancer above that of the upload.',
  },
  {
    name: 'mondays',
    day: '2026-03-02',
    human: 'Releases moved to Mondays at ten; Ilse Brandt still signs them off.',
  },
  {
    name: 'port-new',
    day: '2026-03-04',
    human: 'The gateway listens on port 8200 since the move to the new cluster.',
    answer: 'Then the health checks need the new gateway port as well.',
  },
  {
    name: 'tests-fast',
    day: '2026-03-09',
    human: 'With one database for all, the integration tests take 3 minutes.',
  },
  {
    name: 'german',
    day: '2026-03-11',
    human: 'Die Rechnungen werden am letzten Werktag des Monats verschickt.',
  },
  { name: 'chinese', day: '2026-03-12', human: '发票模板放在共享目录里,由财务部维护。' },
  {
    name: 'bought',
    day: '2026-03-16',
    human: 'We bought two more licences for the profiler, so four people may use it.',
  },
];

export function toldRecords(): { record: MemoryRecord; name: string }[] {
  return TOLD.flatMap(({ name, day, human, answer }, exchange) => {
    const at = Date.parse(`${day}T09:00:00Z`) + exchange * 60_000;
    const place = { at, exchange, conversation: day.slice(0, 7) };
    const own = { name, record: recordOf(human, place) };
    if (answer === undefined) return [own];
    return [own, { name: `${name}*`, record: recordOf(answer, { ...place, role: 'assistant' }) }];
  });
}
