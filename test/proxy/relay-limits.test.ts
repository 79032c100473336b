import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { startRelaying } from '../support/relaying.ts';
import { head, pause, type Provider, startProvider, until } from '../support/sockets.ts';

const MIB = 1024 * 1024;
const TOTAL = 128 * MIB;
const REQUEST = 'POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n';

setFlagsFromString('--expose-gc');
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- What the flag gives.
const collect = runInNewContext('gc') as () => void;

/** What somebody still holds. What nobody does leaves the process when the engine finds the time. */
function heldBytes(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** A provider that writes as fast as its socket takes it. */
async function startFlood(): Promise<{ provider: Provider; accepted: () => number }> {
  let accepted = 0;
  const block = Buffer.alloc(65_536, 120);
  const provider = await startProvider(({ socket }) => {
    accepted = 0;
    socket.write(head('200 OK', `Content-Length: ${TOTAL}`));
    const pump = (): void => {
      while (accepted < TOTAL) {
        accepted += block.length;
        if (!socket.write(block)) return;
      }
    };
    socket.on('drain', pump);
    pump();
  });
  return { provider, accepted: () => accepted };
}

function askAndStall(port: number): Socket {
  const client = connect(port, '127.0.0.1');
  client.on('error', () => {});
  client.pause();
  client.write(REQUEST);
  return client;
}

/** Turns of the event loop in which nothing moved: a stall of the machine is one turn, however long. */
const STILL_TURNS = 60;

/** What the provider could write until nothing moves any more. */
async function settled(accepted: () => number): Promise<number> {
  await until(() => accepted() > 0);
  let last = accepted();
  for (let still = 0; still < STILL_TURNS; still += 1) {
    // oxlint-disable-next-line no-await-in-loop -- One look after the other.
    await pause(5);
    if (accepted() !== last) still = 0;
    last = accepted();
  }
  return last;
}

test('R21: a reader that stalls stops the provider within 8 MiB of what the sockets hold anyway', async () => {
  const { provider, accepted } = await startFlood();
  const direct = askAndStall(provider.port);
  const held = await settled(accepted);
  direct.destroy();
  const { port } = await startRelaying(provider.url);
  const before = heldBytes();
  const client = askAndStall(port);
  // Two pairs of sockets stand where there was one.
  expect((await settled(accepted)) - 2 * held).toBeLessThan(8 * MIB);
  expect(heldBytes() - before).toBeLessThan(64 * MIB);
  client.destroy();
  await until(() => provider.requests.at(-1)?.socket.destroyed === true);
});

test('R21: a slow reader gets every byte of a long answer, and memory does not grow with it', async () => {
  const { provider } = await startFlood();
  const { port, ends } = await startRelaying(provider.url, {
    watcher: { data: () => false, beforeLast: () => true },
  });
  const before = heldBytes();
  const client = askAndStall(port);
  let received = 0;
  let peak = 0;
  let nextLook = 0;
  client.on('data', (bytes) => {
    received += bytes.length;
    if (received > nextLook) {
      peak = Math.max(peak, heldBytes());
      nextLook = received + 8 * MIB;
    }
    if (received % 8 === 0) {
      client.pause();
      setImmediate(() => client.resume());
    }
  });
  client.resume();
  await until(() => ends.length > 0 && received >= TOTAL);
  expect(received).toBeGreaterThan(TOTAL);
  expect(received).toBeLessThan(TOTAL + 1024);
  expect(ends).toEqual(['complete']);
  expect(peak - before).toBeLessThan(64 * MIB);
  client.destroy();
});
