import { describe } from 'vitest';
import { testHistories } from '../../../test/support/conversation-fuzz/play.ts';
import { hostedPlaces } from '../support/hosted-place.ts';
import { missingPostgres } from '../support/postgres.ts';
import { missingRedis } from '../support/redis.ts';

/**
 * The random histories of the local proxy (test/long/conversation-fuzz.prop.test.ts) against the service: two nodes
 * with one PostgreSQL, which are stopped and killed. `npm run fuzz:hosted` runs it for longer.
 */

const missing = [missingPostgres(), missingRedis()].find((reason) => reason !== undefined);
// Who asks for a run by name gets no empty one.
if (missing !== undefined && process.env['FUZZ_REQUESTS'] !== undefined) throw new Error(missing);

describe.skipIf(missing !== undefined)('two nodes of a service', () => {
  testHistories({
    openPlaces: hostedPlaces,
    command: 'fuzz:hosted',
    // A node needs seconds to start.
    requests: 200,
    least: { blocks: 20, compared: 300, stops: 2, exchanges: 0, batches: 0 },
  });
});
