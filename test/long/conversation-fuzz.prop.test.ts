import { testHistories } from '../support/conversation-fuzz/play.ts';
import { openLocalPlace } from '../support/conversation-fuzz/running.ts';

/**
 * Random histories against the built program, two processes with one store: conversations in three
 * dialects are continued, edited, rewound, forked, compacted and resumed, with and without ids, with
 * changes of the model and of the memory header, through one proxy, the other or none, while the proxies
 * are restarted and killed, their database is locked, and an import runs. No body may be invalid, no
 * prefix may break that no batch has priced, nothing may leave that is not stored, and no memory of
 * another project may appear. The provider is strict (test/support/strict-provider): it may refuse
 * nothing and drop no thinking that it would not refuse or drop without svc.
 * `npm run fuzz:conversations` runs it for longer.
 */

testHistories({
  openPlaces: async () => openLocalPlace,
  command: 'fuzz:conversations',
  requests: process.env['CI'] === undefined ? 200 : 2_000,
  least: { blocks: 20, looks: 5, batches: 1, compared: 300 },
});
