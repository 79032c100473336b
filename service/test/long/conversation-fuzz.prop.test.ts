import { describe } from 'vitest';
import { ASKED, testHistories } from '../../../test/support/conversation-fuzz/play.ts';
import type { FuzzedPlace } from '../../../test/support/conversation-fuzz/place.ts';
import { hostedPlaces } from '../support/hosted-place.ts';
import { missingPostgres } from '../support/postgres.ts';
import { missingRedis } from '../support/redis.ts';

/**
 * The random histories of the local proxy (test/long/conversation-fuzz.prop.test.ts) against the service: two nodes
 * with one PostgreSQL, which are stopped and killed. `npm run fuzz:hosted` runs it for longer.
 */

const missing = [missingPostgres(), missingRedis()].find((reason) => reason !== undefined);
if (missing !== undefined) process.stderr.write(`Skipped: ${missing}\n`);

describe.skipIf(missing !== undefined)('two nodes of a service', () => {
  let places: Promise<() => Promise<FuzzedPlace>> | undefined;
  testHistories({
    ...ASKED,
    // A node that starts needs seconds.
    requests: process.env['FUZZ_REQUESTS'] === undefined ? 200 : ASKED.requests,
    openPlace: async () => {
      places ??= hostedPlaces();
      return (await places)();
    },
    command: 'fuzz:hosted',
    least: { blocks: 20, compared: 300, stops: 2 },
  });
});
