import { once } from 'node:events';
import { type AddressInfo, type Server, type Socket, connect, createServer } from 'node:net';
import { Transform } from 'node:stream';
import { type WireMessage, readWireMessages } from './wire-message.ts';

/**
 * Stands between a client and the proxy and passes every byte on, both ways, breaks included; only
 * the Host header names the proxy's port instead of its own, as the proxy's gate demands. What it
 * recorded is what the client really sent and got.
 */
export interface WireExchange {
  readonly request: WireMessage;
  /** Undefined when the connection ended before an answer's head. */
  readonly answer: WireMessage | undefined;
}

interface Wire {
  readonly up: Buffer[];
  readonly down: Buffer[];
}

export class Tap {
  readonly #server: Server;
  readonly #proxyPort: number;
  readonly #wires: Wire[] = [];
  readonly #sockets = new Set<Socket>();

  /** Both are on 127.0.0.1. */
  constructor(proxyPort: number) {
    this.#proxyPort = proxyPort;
    this.#server = createServer((client) => this.#join(client, connect(proxyPort, '127.0.0.1')));
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Everything so far, connection by connection. */
  get exchanges(): readonly WireExchange[] {
    return this.#wires.flatMap(({ up, down }) => {
      const answers = readWireMessages(Buffer.concat(down));
      return readWireMessages(Buffer.concat(up)).map((request, index) => ({
        request,
        answer: answers[index],
      }));
    });
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #join(client: Socket, proxy: Socket): void {
    const wire: Wire = { up: [], down: [] };
    this.#wires.push(wire);
    client.on('data', (bytes: Buffer) => wire.up.push(bytes));
    proxy.on('data', (bytes: Buffer) => wire.down.push(bytes));
    client.pipe(this.#namingProxy()).pipe(proxy);
    proxy.pipe(client);
    this.#breakTogether(client, proxy);
    this.#breakTogether(proxy, client);
  }

  /** Every client here sends a request's head in one piece. */
  #namingProxy(): Transform {
    const own = new RegExp(`(\\r\\nhost: 127\\.0\\.0\\.1:)${this.#port}(?=\\r\\n)`, 'i');
    const named = `$1${this.#proxyPort}`;
    return new Transform({
      transform: (bytes: Buffer, _, done) => {
        const text = bytes.toString('latin1');
        done(null, own.test(text) ? Buffer.from(text.replace(own, named), 'latin1') : bytes);
      },
    });
  }

  /** A connection that breaks on one side breaks on the other: it must not look like a clean end. */
  #breakTogether(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on('error', () => to.resetAndDestroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      if (!from.readableEnded) to.destroy();
    });
  }
}
