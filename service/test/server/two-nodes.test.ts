import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Receipt } from '../../src/core/receipts.ts';
import { missingPostgres } from '../support/postgres.ts';
import { missingRedis } from '../support/redis.ts';
import {
  answerTo,
  promptOf,
  requestWith,
  said,
  toolRound,
} from '../../../test/support/dialect-wire.ts';
import { callService, itemOf } from '../support/memory-service.ts';
import { runServiceWith } from '../support/service-process.ts';
import { longOutput } from '../../../test/support/tool-session.ts';
import { startTwoNodes, type TwoNodes } from '../support/two-nodes.ts';

/**
 * The hosted proxy as two processes on one PostgreSQL and one Redis behind a TCP balancer: what one
 * node did to a conversation the other one does again.
 */

const missing = [missingPostgres(), missingRedis()].find((reason) => reason !== undefined);
const DIALECT = 'anthropic_messages';
const ROUNDS = 30;
const START_MS = 240_000;

/** The items of a forwarded body as texts, without the newest one. */
function prefixOf(body: Buffer | undefined): readonly string[] {
  const { messages } = JSON.parse(body?.toString() ?? '{}') as { messages: unknown[] };
  return messages.map((item) => JSON.stringify(item));
}

async function receiptsOf({ nodes }: TwoNodes, key: string): Promise<readonly Receipt[]> {
  const { json } = await callService(nodes[0]?.url ?? '', '/v1/svc/requests?limit=100', { key });
  return json.data as Receipt[];
}

describe.skipIf(missing !== undefined)('two nodes', () => {
  test(
    'a session of 30 rounds whose requests alternate keeps its prefix, its recalls and its receipts',
    async () => {
      const two = await startTwoNodes();
      const { place, nodes, send, makeKey, console } = two;
      const { provider } = place;
      await console('PATCH settings', { input_budget: 4096 }, { ifVersion: 0 });
      const { secret: key } = await makeKey();
      // What an earlier session said is recalled here, on whichever node asks.
      provider.reply = (request) => answerTo(request, { text: 'Port 6431, on the walrus host.' });
      const taught = requestWith(DIALECT, [
        said('user', 'The staging database of the walrus shop listens on port 6431 since May.'),
      ]);
      const space = { 'x-svc-memory-space': 'project/walrus' };
      expect((await send(taught, { key, headers: space, to: nodes[0]?.port })).status).toBe(200);
      await sleep(1500);
      provider.seen.splice(0);

      const items: unknown[] = [
        said('user', 'Which port does the staging database of the walrus shop listen on?'),
      ];
      const forwarded: Buffer[] = [];
      const told: { state: string; recalled: number; elided: number; receipt: string }[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const callsTool = round % 5 !== 4;
        provider.reply = (request) => answerTo(request, { text: `Look ${round}.`, callsTool });
        const body = requestWith(DIALECT, items, {
          tools: [{ name: 'Bash', description: 'A shell.', input_schema: { type: 'object' } }],
        });
        const to = nodes[round % 2]?.port;
        /* oxlint-disable no-await-in-loop -- A client waits for each answer. */
        const answer = await send(body, { key, to, headers: space });
        expect(answer.status, answer.body.toString()).toBe(200);
        forwarded.push(provider.seen.at(-1)?.body ?? Buffer.alloc(0));
        told.push({
          state: String(answer.headers['x-svc-memory-state']),
          recalled: Number(answer.headers['x-svc-recalled-tokens']),
          elided: Number(answer.headers['x-svc-elided-items']),
          receipt: String(answer.headers['x-svc-receipt-id']),
        });
        if (callsTool) {
          items.push(...toolRound(DIALECT, `call_${round}`, longOutput(`r${round}`, 900)));
        } else {
          items.push(said('assistant', `Look ${round}.`), said('user', `Go on with ${round}.`));
        }
        // A person's client runs a tool meanwhile, and svc stores what the request brought.
        await sleep(250);
        /* oxlint-enable no-await-in-loop */
      }

      // Every request carries the recalled block, at the same place with the same bytes. A busy machine may be late with
      // what one of them adds.
      const late = told.filter(({ state }) => state !== 'recalled');
      expect(late.length, JSON.stringify(late)).toBeLessThanOrEqual(1);
      const [first] = forwarded.map((body) => prefixOf(body)[0]);
      expect(first).toContain('<svc-memory');
      expect(first).toContain('port 6431');
      // Nothing that an earlier request carried is another one, but in the requests that tell a batch.
      let leaves = 0;
      for (let at = 1; at < forwarded.length; at += 1) {
        const [before, now] = [prefixOf(forwarded[at - 1]), prefixOf(forwarded[at])];
        const changed = before.filter((item, index) => item !== now[index]).length;
        const isTold = (told[at]?.elided ?? 0) > (told[at - 1]?.elided ?? 0);
        if (isTold) leaves += 1;
        else expect(changed, `request ${at}`).toBe(0);
        // What is out stays out, whichever node is asked.
        expect(told[at]?.elided).toBeGreaterThanOrEqual(told[at - 1]?.elided ?? 0);
      }
      expect(leaves).toBeGreaterThan(0);
      // A receipt for each, signed by either node, and no number is missing in either node's list.
      await expect
        .poll(async () => (await receiptsOf(two, key)).map(({ receipt_id: id }) => id).toSorted())
        .toEqual(expect.arrayContaining(told.map(({ receipt }) => receipt).toSorted()));
      const receipts = await receiptsOf(two, key);
      expect(receipts).toHaveLength(ROUNDS + 1);
      expect(new Set(receipts.map(({ issuer }) => issuer.node)).size).toBe(2);
    },
    START_MS,
  );

  test(
    'a key that is revoked on one node is refused by the other within 2 seconds',
    async () => {
      const { nodes, send, makeKey, console, place } = await startTwoNodes();
      const [, other] = nodes;
      const body = promptOf(DIALECT, 'Hello there.');
      for (let round = 0; round < 3; round += 1) {
        /* oxlint-disable no-await-in-loop */
        const { id, secret: key } = await makeKey();
        let slowest = 0;
        const ask = async () => {
          const began = performance.now();
          const { status } = await send(body, { key, to: other?.port });
          slowest = Math.max(slowest, performance.now() - began);
          return status;
        };
        expect(await ask()).toBe(200);
        // By now the other node serves it from what it remembers.
        await sleep(1500);
        expect(await ask()).toBe(200);
        await console(`DELETE keys/${id}`);
        const revokedAt = performance.now();
        // On the node that revoked it there is no time between.
        expect((await send(body, { key, to: nodes[0]?.port })).status).toBe(401);
        while ((await ask()) !== 401) {
          // An answer that was admitted before may come later, on a busy machine.
          expect(performance.now() - revokedAt).toBeLessThan(2000 + slowest);
          await sleep(20);
        }
        const { length } = place.provider.seen;
        expect(await ask()).toBe(401);
        expect(place.provider.seen).toHaveLength(length);
        /* oxlint-enable no-await-in-loop */
      }
    },
    START_MS,
  );

  test(
    'an Idempotency-Key that comes to both at once is worked on once',
    async () => {
      const { nodes, makeKey } = await startTwoNodes({ dialects: [] });
      const { secret: key } = await makeKey();
      for (let round = 0; round < 8; round += 1) {
        const items = Array.from({ length: 16 }, (_, at) =>
          itemOf(`Fact ${round} ${at}. `.repeat(50)),
        );
        const asked = {
          key,
          body: { space: 'project/once', if_generation: 'new', items },
          headers: { 'idempotency-key': `batch-${round}-x`, 'x-svc-deadline-ms': '10000' },
        };
        const capture = (at: number) =>
          callService(nodes[at]?.url ?? '', '/v1/svc/memory/capture', asked);
        /* oxlint-disable no-await-in-loop */
        const answers = await Promise.all([capture(0), capture(1), capture(0)]);
        const done = answers.filter(({ status }) => status === 200);
        expect(new Set(done.map(({ text }) => text)).size).toBe(1);
        for (const { status, json } of answers.filter((one) => one.status !== 200)) {
          expect([status, json.error.code]).toEqual([409, 'IDEMPOTENCY_IN_PROGRESS']);
        }
        for (const { json } of done) {
          const results = json.results as { state: string }[];
          expect(new Set(results.map(({ state }) => state))).toEqual(new Set(['durable']));
        }
        expect((await capture(1)).text).toBe(done[0]?.text);
        /* oxlint-enable no-await-in-loop */
      }
    },
    START_MS,
  );

  test(
    'R26: what is purged on one node is recalled by none, and the other one places its block no more',
    async () => {
      const { nodes, send, makeKey, place } = await startTwoNodes();
      const { provider } = place;
      const { secret: key } = await makeKey();
      const headers = { 'x-svc-memory-space': 'project/walrus' };
      const [one, other] = nodes;
      provider.reply = (request) => answerTo(request, { text: 'Noted.' });
      const fact = 'The staging database of the walrus shop listens on port 6431 since May.';
      const taught = requestWith(DIALECT, [said('user', fact)]);
      expect((await send(taught, { key, headers, to: one?.port })).status).toBe(200);
      await sleep(1500);
      const items: unknown[] = [
        said('user', 'Which port does the staging database of the walrus shop listen on?'),
      ];
      /** What the provider gets of the conversation, which the other node serves. */
      const forwarded = async (): Promise<string> => {
        provider.seen.splice(0);
        const body = requestWith(DIALECT, items);
        const answer = await send(body, { key, headers, to: other?.port });
        expect(answer.status).toBe(200);
        return provider.seen.at(-1)?.body.toString() ?? '';
      };
      expect(await forwarded()).toContain('port 6431');
      items.push(...toolRound(DIALECT, 'call_1', 'nothing'));
      expect(await forwarded()).toContain('port 6431');
      const purged = await callService(one?.url ?? '', '/v1/svc/memory/purges', {
        key,
        body: { space: 'project/walrus', scope: { all: true }, confirm: 'project/walrus' },
      });
      expect(purged.json.state).toBe('erased');
      // A new conversation asks the store, which holds it no more.
      const asked = requestWith(DIALECT, [said('user', 'Which port has the walrus staging shop?')]);
      provider.seen.splice(0);
      expect((await send(asked, { key, headers, to: other?.port })).status).toBe(200);
      expect(provider.seen.at(-1)?.body.toString()).not.toContain('6431');
      // The block that this node remembers goes when it has read the change.
      await sleep(2000);
      items.push(...toolRound(DIALECT, 'call_2', 'nothing'));
      expect(await forwarded()).not.toContain('6431');
    },
    START_MS,
  );

  test(
    'a node that counts limits elsewhere does not start once something is limited, and says what to set',
    async () => {
      const { place, console } = await startTwoNodes({ dialects: [] });
      const folder = join(place.home, 'svc-2');
      cpSync(place.folder, folder, { recursive: true });
      const { SVC_REDIS_URL: _, ...alone } = place.environment;
      const environment = { ...alone, SVC_SERVICE_HOME: folder };
      // Without limits nothing is counted anywhere.
      const free = await runServiceWith(place.home, environment, '--quiet');
      await free.end('SIGTERM');
      await console('POST plans', { name: 'small', limits: { requests_per_minute: 5 } });
      const refused = runServiceWith(place.home, environment, '--quiet');
      await expect(refused).rejects.toThrow(
        /counts limits in Redis .* this one in its own process/,
      );
      await expect(refused).rejects.toThrow('Set SVC_REDIS_URL to the same address');
    },
    START_MS,
  );

  test(
    'a limit of N a minute holds for 20 clients on both nodes together',
    { timeout: START_MS },
    async () => {
      const { balancer, makeKey, console, send } = await startTwoNodes();
      const perMinute = 60;
      await console('POST plans', { name: 'small', limits: { requests_per_minute: perMinute } });
      await console('PATCH tenants/default', { plan: 'small' });
      const { secret: key } = await makeKey();
      await sleep(2000);
      const body = promptOf(DIALECT, 'Hello there.');
      const began = performance.now();
      const until = began + 4000;
      let admitted = 0;
      let refused = 0;
      const client = async (): Promise<void> => {
        while (performance.now() < until) {
          // oxlint-disable-next-line no-await-in-loop -- One after the other.
          const { status } = await send(body, { key, to: balancer.port });
          if (status === 200) admitted += 1;
          else refused += 1;
          // On a machine that is busy with these clients a limiter may be late: then it is 503.
          expect([200, 429, 503]).toContain(status);
        }
      };
      await Promise.all(Array.from({ length: 20 }, client));
      const seconds = (performance.now() - began) / 1000;
      // The burst is a twelfth of the minute; what came in the time of the run comes beside it.
      const most = perMinute / 12 + 1 + Math.ceil((perMinute * seconds) / 60);
      expect(admitted).toBeLessThanOrEqual(most);
      expect(admitted).toBeGreaterThan(0);
      expect(refused).toBeGreaterThan(0);
    },
  );
});
