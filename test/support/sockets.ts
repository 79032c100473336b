import { once } from 'node:events';
import {
  type Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from 'node:http';
import {
  createServer as createNetServer,
  type AddressInfo,
  type Server,
  type Socket,
} from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { onTestFinished } from 'vitest';

/**
 * Real servers and clients for tests, closed when the test ends. Providers are written on bare
 * sockets, because a test of a relay must decide every byte and every cut itself.
 */

export interface SeenRequest {
  /** `POST /v1/messages HTTP/1.1` */
  readonly line: string;
  /** As sent: name, value, name, value. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  readonly socket: Socket;
}

export interface Provider {
  readonly port: number;
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  /** Sockets ever accepted. */
  readonly connections: readonly Socket[];
}

/** Answers each whole request with what `answer` writes to its socket. */
export async function startProvider(
  answer: (request: SeenRequest) => void,
  tls?: TlsOptions,
): Promise<Provider> {
  const requests: SeenRequest[] = [];
  return await startSocketProvider(
    (socket) => {
      readRequests(socket, (request) => {
        requests.push(request);
        answer(request);
      });
    },
    { tls, requests },
  );
}

/** Hands over each socket as it connects. */
export async function startSocketProvider(
  onSocket: (socket: Socket) => void,
  options: { tls?: TlsOptions | undefined; requests?: SeenRequest[] } = {},
): Promise<Provider> {
  const connections: Socket[] = [];
  const accept = (socket: Socket): void => {
    connections.push(socket);
    socket.on('error', () => {});
    socket.setNoDelay(true);
    onSocket(socket);
  };
  const server =
    options.tls === undefined ? createNetServer(accept) : createTlsServer(options.tls, accept);
  const port = await listen(server);
  onTestFinished(() => {
    for (const socket of connections) socket.destroy();
  });
  const scheme = options.tls === undefined ? 'http' : 'https';
  const url = `${scheme}://127.0.0.1:${port}`;
  return { port, url, requests: options.requests ?? [], connections };
}

/** A node:http server, as the proxy's own side is. */
export async function startServer(
  handle: (incoming: IncomingMessage, outgoing: ServerResponse) => void,
): Promise<number> {
  const server = createServer({ noDelay: true }, handle);
  onTestFinished(() => server.closeAllConnections());
  return await listen(server);
}

export interface ClientAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** The connection broke before the end of the body. */
  readonly isCut: boolean;
}

export interface AskOptions {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
  readonly body?: Buffer;
  /** False: a connection of its own. */
  readonly agent?: Agent | false;
}

/** One request. Rejects when no head came. */
export async function ask(port: number, options: AskOptions = {}): Promise<ClientAnswer> {
  const { method = 'POST', path = '/', headers = [], body, agent = false } = options;
  return await new Promise((resolve, reject) => {
    const outgoing = httpRequest({
      port,
      host: '127.0.0.1',
      agent,
      method,
      path,
      headers: headers.includes('host') ? headers : ['Host', `127.0.0.1:${port}`, ...headers],
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = [];
      const finish = (isCut: boolean): void => {
        const { statusCode = 0, rawHeaders } = incoming;
        resolve({
          status: statusCode,
          headers: incoming.headers,
          rawHeaders,
          body: Buffer.concat(chunks),
          isCut,
        });
      };
      incoming.on('data', (bytes: Buffer) => chunks.push(bytes));
      incoming.on('end', () => finish(false));
      incoming.on('error', () => finish(true));
    });
    outgoing.end(body);
  });
}

/** A chunk of a chunked answer. */
export function chunk(bytes: string | Uint8Array): Buffer {
  const body = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')]);
}

export const LAST_CHUNK = '0\r\n\r\n';

export function head(status: string, ...headers: string[]): string {
  return [`HTTP/1.1 ${status}`, ...headers, '', ''].join('\r\n');
}

export const STREAM_HEAD = head(
  '200 OK',
  'Content-Type: text/event-stream',
  'Transfer-Encoding: chunked',
);

/** Resolves when `isTrue` holds; the test's own timeout is the limit. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await pause(5);
}

export async function pause(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function readRequests(socket: Socket, onRequest: (request: SeenRequest) => void): void {
  let waiting = Buffer.alloc(0);
  socket.on('data', (bytes: Buffer) => {
    waiting = Buffer.concat([waiting, bytes]);
    for (;;) {
      const headEnd = waiting.indexOf('\r\n\r\n');
      if (headEnd === -1) return;
      const [line = '', ...lines] = waiting.toString('latin1', 0, headEnd).split('\r\n');
      const headers = lines.flatMap((text) => {
        const colon = text.indexOf(':');
        return [text.slice(0, colon), text.slice(colon + 1).trim()];
      });
      const at = headers.findIndex((name) => name.toLowerCase() === 'content-length');
      const end = headEnd + 4 + (at === -1 ? 0 : Number(headers[at + 1]));
      if (waiting.length < end) return;
      const body = Buffer.from(waiting.subarray(headEnd + 4, end));
      waiting = Buffer.from(waiting.subarray(end));
      onRequest({ line, headers, body, socket });
    }
  });
}
