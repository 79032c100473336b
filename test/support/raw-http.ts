import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

// Only a server that hangs is waited for so long.
const PATIENCE_MS = 50_000;

/** HTTP as bytes on a real socket: what no HTTP client would send, and exactly what came back. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export async function openSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  // Tests look at what came back; a reset after it is not their matter.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Sends `request` and resolves with all that comes until the server closes or `ms` have passed. */
export async function exchange(
  port: number,
  request: string | Buffer,
  ms = PATIENCE_MS,
): Promise<string> {
  const socket = await openSocket(port);
  const answer = readAll(socket, ms);
  socket.write(request);
  return answer;
}

export function readAll(socket: Socket, ms = PATIENCE_MS): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const timer = setTimeout(() => {
      socket.destroy();
    }, ms);
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(text);
    });
  });
}

/** The first answer in `text`. Interim 1xx answers are left out. */
export function parseAnswer(text: string): RawAnswer {
  const start = /^(?:HTTP\/1\.1 1\d\d [^]*?\r\n\r\n)*/.exec(text)?.[0].length ?? 0;
  const headEnd = text.indexOf('\r\n\r\n', start);
  const [statusLine = '', ...lines] = text.slice(start, headEnd).split('\r\n');
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const length = Number(headers.get('content-length') ?? 0);
  return {
    status: Number(statusLine.split(' ')[1] ?? 0),
    headers,
    body: text.slice(headEnd + 4, headEnd + 4 + length),
  };
}
