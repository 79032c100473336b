import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/**
 * Ports that no system hands out by itself: Linux begins at 32768, the others at 49152. A port from
 * there could go to any connection of any program before the test takes it.
 */
const FIRST = 12_000;
const END = 32_000;
const TRIES = 50;

/** A port that nobody listens on, nor will unless he asks for this very one. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = randomInt(FIRST, END);
    // oxlint-disable-next-line no-await-in-loop -- The next one only where this one is taken.
    if (await isFree(port)) return port;
  }
  throw new Error(`None of ${TRIES} ports was free.`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    const listening = once(server, 'listening');
    server.listen(port, '127.0.0.1');
    await listening;
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

/** Somebody takes connections there. */
export async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
