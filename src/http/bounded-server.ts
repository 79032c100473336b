import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { RequestHead } from '../core/http/http-form.ts';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Bounds on the resources of a listener that a caller may use before it is authenticated. */
export interface ListenerBounds {
  readonly headerBytesMax: number;
  readonly connectionsMax: number;
  /**
   * Limits in milliseconds: for a request's head; for its head and body; for an idle connection between two requests;
   * and the interval at which Node checks these limits.
   */
  readonly times: {
    readonly head: number;
    readonly request: number;
    readonly keepAlive: number;
    readonly check: number;
  };
}

export function serverOptions({ headerBytesMax, times }: ListenerBounds): ServerOptions {
  return {
    maxHeaderSize: headerBytesMax,
    headersTimeout: times.head,
    requestTimeout: times.request,
    keepAliveTimeout: times.keepAlive,
    connectionsCheckingInterval: times.check,
    // The gate refuses a missing Host header itself, in the form of the client's API.
    requireHostHeader: false,
    insecureHTTPParser: false,
    // Switch off Nagle's algorithm, which delays a small write until the previous one is acknowledged.
    noDelay: true,
  };
}

interface Serving {
  readonly bounds: ListenerBounds;
  readonly connections: Connections;
  /** Answers a request. Never throws. */
  readonly serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
}

export function serveWith(server: Server, { bounds, connections, serve }: Serving): void {
  // By default Node silently drops headers beyond some 1,000. svc counts all headers and refuses too many (checkForm).
  server.maxHeadersCount = 0;
  server.maxConnections = bounds.connectionsMax;
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    connections.open(incoming.socket, outgoing);
    // Without a listener, an error on the client's socket would end the process.
    outgoing.on('error', () => outgoing.destroy());
    serve(incoming, outgoing);
  };
  server.on('request', answer);
  // Without these listeners, Node answers an Expect header before svc has checked the request (gate.ts).
  server.on('checkContinue', answer);
  server.on('checkExpectation', answer);
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Starts listening and resolves with the address; the system chooses the port if `port` is 0. Rejects with the server's
 * own error (EADDRINUSE, EACCES) if the address is not available. `onRefused` is called if a connection cannot be
 * accepted later; the listener continues.
 */
export async function listenAt(
  server: Server,
  { host, port }: Address,
  onRefused: () => void,
): Promise<{ host: string; port: number }> {
  server.listen({ host, port, exclusive: true });
  await once(server, 'listening');
  server.on('error', onRefused);
  const address = server.address();
  return { host, port: typeof address === 'object' && address !== null ? address.port : port };
}

/** Returns the head of a request as core/http expects it. */
export function requestHead(incoming: IncomingMessage): RequestHead {
  return {
    method: incoming.method ?? '',
    target: incoming.url ?? '',
    httpVersion: incoming.httpVersion,
    headers: incoming.rawHeaders,
  };
}

/**
 * Tracks every socket of the listener and its open answers. Node's own methods are not enough: closeIdleConnections()
 * skips connections that never sent a byte. And if Node closes a connection on which the client is still sending, the
 * client may lose an answer that it has not read yet.
 */
export class Connections {
  readonly #answers = new Map<Socket, Set<ServerResponse>>();
  #isDraining = false;

  /** The number of requests whose answer has not ended. */
  get openRequests(): number {
    let open = 0;
    for (const answers of this.#answers.values()) open += answers.size;
    return open;
  }

  add(socket: Socket): void {
    this.#answers.set(socket, new Set());
    socket.once('close', () => this.#answers.delete(socket));
  }

  /** Counts a request until its answer is sent or its client is gone. */
  open(socket: Socket, outgoing: ServerResponse): void {
    this.#answers.get(socket)?.add(outgoing);
    outgoing.once('close', () => {
      const answers = this.#answers.get(socket);
      answers?.delete(outgoing);
      if (this.#isDraining && answers?.size === 0) socket.destroySoon();
    });
  }

  /** Says whether an answer on this socket has begun, or a request that was received whole waits for its answer. */
  isAnswering(socket: Socket): boolean {
    const answers = this.#answers.get(socket) ?? [];
    return [...answers].some(({ headersSent, req }) => headersSent || req.complete);
  }

  /**
   * Resolves when every open answer has ended, or after `ms` milliseconds. The listener still accepts connections, so
   * that it can tell new callers that the service is stopping.
   */
  async settle(ms: number): Promise<void> {
    this.#isDraining = true;
    const open = [...this.#answers.values()].flatMap((answers) => [...answers]);
    const ended = Promise.all(open.map((outgoing) => untilClosed(outgoing)));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    await Promise.race([ended, late]);
    clearTimeout(timer);
  }

  /**
   * Accepts no more connections, lets open answers finish for `drainMs` milliseconds, then closes the rest. Resolves
   * when all sockets are closed.
   */
  async close(server: NetServer, drainMs: number): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    this.#drain();
    const timer = setTimeout(() => this.#destroy(), drainMs);
    await closed;
    clearTimeout(timer);
  }

  /** Closes idle sockets now, and every other socket after its last answer. */
  #drain(): void {
    this.#isDraining = true;
    for (const [socket, answers] of this.#answers) if (answers.size === 0) socket.destroy();
  }

  #destroy(): void {
    for (const socket of this.#answers.keys()) socket.destroy();
  }
}

/** Resolves when an answer is closed. A failed answer closes too, so this never rejects. */
function untilClosed(outgoing: ServerResponse): Promise<void> {
  if (outgoing.closed) return Promise.resolve();
  return new Promise((resolve) => outgoing.once('close', resolve));
}

/**
 * Longest time in which svc reads and drops the rest of a body. A client may send gigabytes before it reads the answer;
 * on loopback that takes about this long.
 */
const UNREAD_BODY_MS = 5_000;
/** Bound on the chunks of a body that svc drops, in addition to one chunk for each CHUNK_BYTES_MIN bytes. */
const UNREAD_CHUNKS_FREE = 1_024;

/**
 * Lets an answer reach a client that is still sending. It reads and drops the body for a while: closing at once would
 * reset the connection, and the reset can overtake the answer. A rest of too many small chunks is not read to its end.
 */
export function dropBody(incoming: IncomingMessage): void {
  const { socket } = incoming;
  if (incoming.complete) return;
  // Node calls destroySoon() after it has sent an answer that closes the connection.
  socket.destroySoon = () => {
    socket.end();
    const timer = setTimeout(() => socket.destroy(), UNREAD_BODY_MS);
    socket.once('close', () => clearTimeout(timer));
    if (incoming.complete) socket.destroy();
    else incoming.once('end', () => socket.destroy());
  };
  incoming.on('error', () => undefined);
  let [chunks, bytes] = [0, 0];
  incoming.on('data', ({ length }: Buffer) => {
    chunks += 1;
    bytes += length;
    if (chunks > UNREAD_CHUNKS_FREE + bytes / CHUNK_BYTES_MIN) socket.destroy();
  });
  incoming.resume();
}

/**
 * Least average bytes of a chunk in a body with thousands of chunks; reading ends at a body with smaller ones. A chunk
 * costs about 2 us, so a long body of a byte per chunk would occupy the thread for minutes.
 */
export const CHUNK_BYTES_MIN = 64;

/** Milliseconds for a client on loopback to read an answer before its socket is closed. */
const RAW_ANSWER_MS = 200;

/** Writes an answer to a socket on which no request could be parsed, and closes it. */
export function endRaw(socket: Duplex, answer: string): void {
  socket.on('error', () => undefined);
  socket.end(answer);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), RAW_ANSWER_MS);
  socket.once('close', () => clearTimeout(timer));
}
