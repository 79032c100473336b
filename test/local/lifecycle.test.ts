import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { Handler } from '../../src/proxy/dependencies.ts';
import { AUTHORIZED, startServer, type TestServer, writeRequest } from '../support/local-server.ts';
import { openSocket, parseAnswer, readAll } from '../support/raw-http.ts';

const servers: TestServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function start(handler?: Handler): Promise<TestServer> {
  const server = await startServer(handler);
  servers.push(server);
  return server;
}

/** A handler whose answers begin at once and end when the test says so. */
function holdAnswers(): { handler: Handler; finish: () => void } {
  const held: ServerResponse[] = [];
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return {
    handler: async (_request, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
      outgoing.write('data: begun\n\n');
      held.push(outgoing);
      await released;
    },
    finish: () => {
      for (const outgoing of held) outgoing.end('data: done\n\n');
      release();
    },
  };
}

const KEEP = [AUTHORIZED, 'Content-Type: application/json', 'Connection: keep-alive'];

async function begin(server: TestServer): Promise<{ socket: Socket; everything: Promise<string> }> {
  const socket = await openSocket(server.port);
  const everything = readAll(socket);
  socket.write(writeRequest(server.port, { headers: KEEP, body: '{}' }));
  await once(socket, 'data');
  return { socket, everything };
}

describe('listen', () => {
  // spec: 1.6-loopback
  test('R1: refuses to listen beyond loopback', async () => {
    for (const host of ['0.0.0.0', '::', '192.168.1.2', 'localhost', '']) {
      await expect(startServer(undefined, { host })).rejects.toThrow('127.0.0.1');
    }
  });

  test('R32: a taken port is an error with its code', async () => {
    const server = await start();
    const taken = startServer(undefined, { port: server.port });
    await expect(taken).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});

describe('stop', () => {
  test('R33: closes sockets that are silent, half a head long or between requests, at once', async () => {
    const server = await start();
    const silent = await openSocket(server.port);
    const half = await openSocket(server.port);
    half.write('POST /v1/messages HTTP/1.1\r\nHost:');
    const { socket: idle } = await begin(server);
    const closed = Promise.all([silent, half, idle].map((socket) => once(socket, 'close')));
    // A drain far over the test's own limit: nothing may wait for it.
    await server.server.stop(600_000);
    await closed;
  });

  test('R33: lets an open answer finish, and takes no new connection meanwhile', async () => {
    const { handler, finish } = holdAnswers();
    const server = await start(handler);
    const { everything } = await begin(server);
    expect(server.server.openRequests).toBe(1);
    const stopped = server.server.stop(600_000);
    const late = await openSocket(server.port).catch((error: NodeJS.ErrnoException) => error.code);
    expect(late).toBe('ECONNREFUSED');
    finish();
    await stopped;
    const text = await everything;
    expect(text).toContain('data: done');
    expect(text).toContain('\r\n0\r\n\r\n');
    expect(server.server.openRequests).toBe(0);
  });

  test('R33: cuts what is still open when the time is over, without a clean end', async () => {
    const { handler } = holdAnswers();
    const server = await start(handler);
    const { everything } = await begin(server);
    await server.server.stop(50);
    const text = await everything;
    expect(text).toContain('data: begun');
    expect(text).not.toContain('\r\n0\r\n\r\n');
  });

  test('R33: a request behind an open answer is told that svc is stopping', async () => {
    const { handler, finish } = holdAnswers();
    const server = await start(handler);
    const { socket, everything } = await begin(server);
    const stopped = server.server.stop(600_000);
    socket.write(writeRequest(server.port, { headers: KEEP, body: '{}' }));
    await expect.poll(() => server.server.openRequests).toBe(2);
    finish();
    await stopped;
    const text = await everything;
    const second = parseAnswer(text.slice(text.lastIndexOf('HTTP/1.1')));
    expect(second.status).toBe(503);
    expect(second.headers.get('x-svc-error-code')).toBe('SHUTTING_DOWN');
    expect(second.headers.get('x-should-retry')).toBe('true');
    expect(server.seen).toHaveLength(1);
  });

  test('R33: can be asked twice, and of a server that never listened', async () => {
    const server = await start();
    await Promise.all([server.server.stop(0), server.server.stop(0)]);
    await server.server.stop(0);
  });
});

describe('connections', () => {
  test('64 and more are served at once', async () => {
    const { handler, finish } = holdAnswers();
    const server = await start(handler);
    const open = await Promise.all(Array.from({ length: 96 }, () => begin(server)));
    expect(server.server.openRequests).toBe(96);
    finish();
    await expect.poll(() => server.server.openRequests).toBe(0);
    for (const { socket } of open) socket.destroy();
  });

  test('a client that hangs up closes its answer', async () => {
    const { handler } = holdAnswers();
    const server = await start(handler);
    const { socket } = await begin(server);
    socket.destroy();
    await expect.poll(() => server.server.openRequests).toBe(0);
    expect(server.reports).toEqual([]);
  });

  test('R9: a head that does not arrive is answered with 408 and closed', async () => {
    const server = await start();
    const slow = await openSocket(server.port);
    const everything = readAll(slow);
    slow.write('POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n');
    const drip = setInterval(() => slow.write('x-a: b\r\n'), 500);
    const silent = await openSocket(server.port);
    const nothing = readAll(silent);
    const answer = parseAnswer(await everything);
    clearInterval(drip);
    expect(answer.status).toBe(408);
    expect(answer.headers.get('x-svc-error-code')).toBe('REQUEST_TIMEOUT');
    expect(await nothing).toBe('');
  });
});
