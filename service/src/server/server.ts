import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { headerOf } from '../../../src/core/http/header-rules.ts';
import { isOwnMachine } from '../../../src/core/settings/own-machine.ts';
import {
  Connections,
  endRaw,
  listenAt,
  type ListenerBounds,
  serverOptions,
  serveWith,
} from '../../../src/http/bounded-server.ts';
import { LAST_WORK_MS } from '../../../src/proxy/background-queue.ts';
import type { ServiceParts } from './parts.ts';
import { finishPurges } from './jobs.ts';
import { CallServer } from './serve.ts';

export interface TlsMaterial {
  /** The certificate chain as PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface MemoryServiceOptions extends ServiceParts {
  readonly host: string;
  readonly port: number;
  readonly tls: TlsMaterial | undefined;
}

/** Time limits for clients, in milliseconds. */
const TIMES = {
  head: 10_000,
  /**
   * The time for head and body: 64 MiB at 1.8 Mbit/s. A client that sends nothing is dropped earlier: see `silence`.
   */
  request: 300_000,
  handshake: 5000,
  /** The time between two calls on a connection: a proxy keeps its connection while the user thinks. */
  keepAlive: 300_000,
  /** The time without a byte in either direction, because a client that does not read its answer uses memory. */
  silence: 120_000,
  /** The interval at which Node checks `head` and `request`. */
  check: 1000,
} as const;

const BOUNDS: ListenerBounds = {
  times: TIMES,
  /** Bound on the headers of a request. Codex sends its state in headers; the memory contract's need 500 bytes. */
  headerBytesMax: 64 << 10,
  /** Bound on connections: one or two for each machine of a large team. */
  connectionsMax: 4096,
};
/** Milliseconds for which a stop waits until finished answers have left their sockets. */
const CUT_MS = 50;
const TLS_VERSION_MIN = 'TLSv1.2';

/**
 * The service's listener: TLS, or plain HTTP on loopback and behind a declared proxy. It limits what a client may use
 * before its key is known: the bytes of a head, time, connections.
 */
export class MemoryService {
  readonly #options: MemoryServiceOptions;
  readonly #calls: CallServer;
  readonly #connections = new Connections();
  /** Connections whose TLS handshake is not finished, by the client's address and port. */
  readonly #greeting = new Map<string, Socket>();
  readonly #server: Server | TlsServer;
  #stopped: Promise<void> | undefined;

  constructor(options: MemoryServiceOptions) {
    const { tls, host, settings } = options;
    if (tls === undefined && !isOwnMachine(host) && !settings.isBehindProxy) {
      throw new TypeError('Plain HTTP is for loopback, or behind a proxy that ends TLS.');
    }
    this.#options = options;
    this.#calls = new CallServer(options);
    this.#server = this.#createServer();
  }

  /** Starts to listen. Rejects with Node's own error (`code` EADDRINUSE, EACCES, …) if it cannot. */
  async listen(): Promise<{ readonly host: string; readonly port: number }> {
    // Finish interrupted purges before this process answers calls, because their spaces cannot be read meanwhile.
    await finishPurges(this.#options);
    return listenAt(this.#server, this.#options, () =>
      this.#options.report({ code: 'ACCEPT_FAILED' }),
    );
  }

  /**
   * Uses a new certificate for new connections; without TLS it does nothing. Throws if the certificate is not valid.
   */
  renew({ cert, key }: TlsMaterial): void {
    if ('setSecureContext' in this.#server) {
      this.#server.setSecureContext({ cert, key, minVersion: TLS_VERSION_MIN });
    }
  }

  /** Refuses new calls, waits up to `drainMs` for open ones, closes all connections, and ends the background work. */
  stop(drainMs: number): Promise<void> {
    this.#stopped ??= this.#stop(drainMs);
    return this.#stopped;
  }

  async #stop(drainMs: number): Promise<void> {
    this.#calls.stop();
    await this.#connections.settle(drainMs);
    // This only makes the receipts of open answers say that the service ended them; the next line ends the answers.
    this.#calls.cut();
    const closed = this.#connections.close(this.#server, CUT_MS);
    for (const socket of this.#greeting.values()) socket.destroy();
    await closed;
    await this.#calls.drain(LAST_WORK_MS);
  }

  #createServer(): Server | TlsServer {
    const { tls } = this.#options;
    const limits = serverOptions(BOUNDS);
    const server =
      tls === undefined
        ? createServer(limits)
        : createTlsServer({
            ...limits,
            ...tls,
            minVersion: TLS_VERSION_MIN,
            handshakeTimeout: TIMES.handshake,
          });
    server.timeout = TIMES.silence;
    this.#watchSockets(server, tls !== undefined);
    serveWith(server, {
      bounds: BOUNDS,
      connections: this.#connections,
      serve: (incoming, outgoing) => {
        if (wantsSocket(incoming, outgoing)) refuseUpgrade(outgoing);
        else void this.#calls.serve(incoming, outgoing);
      },
    });
    server.on('connect', (_incoming, socket) => refuse(socket, '405 Method Not Allowed'));
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) =>
      this.#refuseBroken(error, socket),
    );
    return server;
  }

  #watchSockets(server: Server | TlsServer, isTls: boolean): void {
    if (!isTls) {
      server.on('connection', (socket: Socket) => this.#connections.add(socket));
      return;
    }
    server.on('connection', (socket: Socket) => {
      const name = nameOf(socket);
      this.#greeting.set(name, socket);
      socket.once('close', () => this.#greeting.delete(name));
    });
    server.on('secureConnection', (socket: Socket) => {
      this.#greeting.delete(nameOf(socket));
      this.#connections.add(socket);
    });
    server.on('tlsClientError', (_error, socket: Socket) => socket.destroy());
  }

  #refuseBroken({ code }: NodeJS.ErrnoException, duplex: Duplex): void {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- A listener for TCP gives TCP sockets.
    const socket = duplex as Socket;
    const isSilent = 'bytesRead' in socket && socket.bytesRead === 0;
    if (code === 'ECONNRESET' || isSilent || this.#connections.isAnswering(socket)) {
      socket.destroy();
    } else if (code === 'HPE_HEADER_OVERFLOW') {
      refuse(socket, '431 Request Header Fields Too Large');
    } else {
      refuse(
        socket,
        code === 'ERR_HTTP_REQUEST_TIMEOUT' ? '408 Request Timeout' : '400 Bad Request',
      );
    }
  }
}

/**
 * Says whether a request asks for a WebSocket. Other Upgrade headers are ignored: some clients offer HTTP/2 with every
 * request and accept an answer in HTTP/1.1. The connection is closed after the answer, because Node's parser reads
 * nothing after such a request.
 */
function wantsSocket(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
  const offered = headerOf(incoming.rawHeaders, 'upgrade');
  if (offered === undefined) return false;
  outgoing.shouldKeepAlive = false;
  return /\bwebsocket\b/i.test(offered);
}

/** Refuses a WebSocket. Codex then continues over HTTP at once. */
function refuseUpgrade(outgoing: ServerResponse): void {
  outgoing.writeHead(426, { 'content-length': 0 });
  outgoing.end();
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Writes a refusal to the socket and ends the connection. Node makes no response object for these requests. */
function refuse(socket: Duplex, status: string): void {
  endRaw(socket, `HTTP/1.1 ${status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
}
