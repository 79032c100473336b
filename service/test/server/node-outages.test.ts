import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { answerTo, promptOf, requestWith, said } from '../../../test/support/dialect-wire.ts';
import { missingPostgres } from '../support/postgres.ts';
import { missingRedis, startRedis } from '../support/redis.ts';
import { startTwoNodes } from '../support/two-nodes.ts';

/** Two nodes, and an engine under them that is away or silent. */

const missing = [missingPostgres(), missingRedis()].find((reason) => reason !== undefined);
const DIALECT = 'anthropic_messages';
const START_MS = 240_000;

describe.skipIf(missing !== undefined)('two nodes without an engine', () => {
  test(
    'a limiter that is killed gets every limited request a 503 at once, none is forwarded, and all is well soon after',
    async () => {
      const { redis, nodes, console, makeKey, send, place } = await startTwoNodes();
      const limits = { requests_per_minute: 100_000 };
      await console('POST plans', { name: 'large', limits });
      await console('PATCH tenants/default', { plan: 'large' });
      const { secret: key } = await makeKey();
      await sleep(2000);
      const body = promptOf(DIALECT, 'Hello there.');
      // A busy machine takes its time for every request: the bars count from there.
      const healthy: number[] = [];
      const warm = async (at: number): Promise<void> => {
        for (let round = 0; round < 5; round += 1) {
          const began = performance.now();
          // oxlint-disable-next-line no-await-in-loop
          expect((await send(body, { key, to: nodes[at % 2]?.port })).status).toBe(200);
          healthy.push(performance.now() - began);
        }
      };
      await Promise.all([0, 1, 2, 3].map(warm));
      const slack = Math.max(...healthy);
      await redis.stop();
      place.provider.seen.splice(0);
      const until = performance.now() + 3000;
      const asked: number[] = [];
      const client = async (at: number): Promise<void> => {
        while (performance.now() < until) {
          const began = performance.now();
          // oxlint-disable-next-line no-await-in-loop -- One after the other.
          const { status, headers } = await send(body, { key, to: nodes[at % 2]?.port });
          asked.push(performance.now() - began);
          expect(status).toBe(503);
          expect(headers['x-svc-error-code']).toBe('RATE_LIMITER_UNAVAILABLE');
          expect(Number(headers['retry-after'])).toBeGreaterThan(0);
        }
      };
      await Promise.all([0, 1, 2, 3].map(client));
      expect(asked.length).toBeGreaterThan(3);
      expect(Math.max(...asked)).toBeLessThan(1200 + slack);
      expect(place.provider.seen).toEqual([]);
      const again = await startRedis(Number(new URL(redis.url).port));
      const backAt = performance.now();
      try {
        for (const { port: to } of nodes) {
          // oxlint-disable-next-line no-await-in-loop
          while ((await send(body, { key, to })).status !== 200) {
            expect(performance.now() - backAt).toBeLessThan(2000 + slack);
            // oxlint-disable-next-line no-await-in-loop
            await sleep(50);
          }
        }
        expect(performance.now() - backAt).toBeLessThan(2000 + slack);
      } finally {
        await again.stop();
      }
    },
    START_MS,
  );

  test(
    'without a limit nothing changes when the limiter is killed',
    async () => {
      const { redis, nodes, makeKey, send } = await startTwoNodes();
      const { secret: key } = await makeKey();
      await redis.stop();
      for (const { port: to } of nodes) {
        // oxlint-disable-next-line no-await-in-loop
        expect((await send(promptOf(DIALECT, 'Hello.'), { key, to })).status).toBe(200);
      }
    },
    START_MS,
  );

  test(
    'a database that is silent leaves the client’s own bytes and says so, and takes part again when it speaks',
    async () => {
      const { postgres, nodes, makeKey, send, place, console } = await startTwoNodes();
      const { provider } = place;
      const { secret: key } = await makeKey();
      const space = { 'x-svc-memory-space': 'project/walrus' };
      const [one, other] = nodes.map(({ port }) => port);
      provider.reply = (request) => answerTo(request, { text: 'Port 6431, on the walrus host.' });
      const taught = 'The staging database of the walrus shop listens on port 6431 since May.';
      // A node that reads of the new key only after it has asked for it would forget it again.
      await sleep(2000);
      const teach = requestWith(DIALECT, [said('user', taught)]);
      const question = requestWith(DIALECT, [
        said('user', 'Which port does the staging database of the walrus shop listen on?'),
      ]);
      expect((await send(teach, { key, headers: space, to: one })).status).toBe(200);
      // Both nodes know the key by now.
      expect((await send(promptOf(DIALECT, 'Hi.'), { key, to: other })).status).toBe(200);
      await sleep(2000);
      postgres.signal('SIGSTOP');
      try {
        for (const to of [one, other, one]) {
          provider.seen.splice(0);
          // oxlint-disable-next-line no-await-in-loop
          const answer = await send(question, { key, headers: space, to });
          expect(answer.status, answer.body.toString()).toBe(200);
          expect(String(answer.headers['x-svc-memory-state'])).toMatch(/^degraded_/);
          expect(provider.seen.map(({ body }) => body.toString())).toEqual([
            JSON.stringify(question),
          ]);
        }
      } finally {
        postgres.signal('SIGCONT');
      }
      const state = async (to: number | undefined): Promise<string> => {
        const items = [said('user', `Which port does the staging database listen on? ${to}`)];
        const answer = await send(requestWith(DIALECT, items), { key, headers: space, to });
        return String(answer.headers['x-svc-memory-state']);
      };
      await expect.poll(() => state(one), { timeout: 20_000 }).toBe('recalled');
      await expect.poll(() => state(other), { timeout: 20_000 }).toBe('recalled');
      // Receipts of the time without a database are stored too.
      const { length } = provider.seen;
      expect(length).toBeGreaterThan(0);
      await expect
        .poll(async () => {
          const { json } = await console('GET usage?group_by=key');
          return (json.data as { requests: number }[]).reduce((sum, row) => sum + row.requests, 0);
        })
        .toBeGreaterThanOrEqual(5 + 2);
    },
    START_MS,
  );
});
