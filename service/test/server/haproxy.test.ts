import { request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { answerTo, promptOf } from '../../../test/support/dialect-wire.ts';
import { type Haproxy, missingHaproxy, startHaproxy } from '../support/haproxy.ts';
import { missingPostgres } from '../support/postgres.ts';
import { missingRedis } from '../support/redis.ts';
import { bytesOf } from '../../../test/support/story.ts';
import { startTwoNodes } from '../support/two-nodes.ts';

/** Two nodes behind HAProxy, as service/docs/scale.md configures it. */

const missing = [missingPostgres(), missingRedis(), missingHaproxy()].find(
  (reason) => reason !== undefined,
);
const DIALECT = 'anthropic_messages';
const CLIENTS = 4;

interface Answer {
  readonly status: number;
  readonly text: string;
  /** From the first bytes of the body to its end, in ms. */
  readonly streamedMs: number;
}

/** One request over TLS on a connection of its own. */
function askOver(
  { port, ca }: Haproxy,
  { key, isStreamed }: { readonly key: string; readonly isStreamed: boolean },
): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const place = { host: '127.0.0.1', servername: 'localhost', port, ca, agent: false } as const;
  return new Promise((resolve, reject) => {
    const outgoing = request({ ...place, method: 'POST', path: '/v1/messages', headers });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      let [text, firstAt] = ['', Number.NaN];
      incoming.on('error', reject);
      incoming.on('data', (bytes: Buffer) => {
        if (text === '') firstAt = performance.now();
        text += bytes.toString();
      });
      incoming.on('end', () => {
        const { statusCode: status = 0 } = incoming;
        resolve({ status, text, streamedMs: performance.now() - firstAt });
      });
    });
    outgoing.end(bytesOf(promptOf(DIALECT, 'Hello there.', { stream: isStreamed })));
  });
}

describe.skipIf(missing !== undefined)('two nodes behind HAProxy', () => {
  test('events come as they are sent, and no request that begins after a node was killed fails', async () => {
    const two = await startTwoNodes();
    const { place, nodes, makeKey } = two;
    const { secret: key } = await makeKey();
    const proxy = await startHaproxy(nodes.map(({ port }) => port));
    onTestFinished(() => proxy.stop());
    place.provider.reply = (asked) => ({
      ...answerTo(asked, { text: 'Noted.' }),
      pieces: { count: 4, pauseMs: 200 },
    });
    const streamed = await askOver(proxy, { key, isStreamed: true });
    expect(streamed.status).toBe(200);
    expect(streamed.text).toContain('event: message_stop');
    expect(streamed.streamedMs).toBeGreaterThan(300);

    place.provider.reply = (asked) => answerTo(asked, { text: 'Noted.' });
    let killedAt = Infinity;
    const over = new AbortController();
    const late: number[] = [];
    const client = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const begunAt = performance.now();
        // oxlint-disable-next-line no-await-in-loop -- One after the other.
        const { status } = await askOver(proxy, { key, isStreamed: false }).catch(() => ({
          status: 0,
        }));
        if (begunAt > killedAt) late.push(status);
      }
    };
    const clients = Array.from({ length: CLIENTS }, client);
    await sleep(500);
    await nodes[0]?.end('SIGKILL');
    killedAt = performance.now();
    // HAProxy's checks find it after two seconds; until then it is asked in vain.
    await sleep(4000);
    over.abort();
    await Promise.all(clients);
    expect(late.length).toBeGreaterThan(CLIENTS);
    expect(new Set(late)).toEqual(new Set([200]));
  }, 120_000);
});
