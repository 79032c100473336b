import { once } from 'node:events';
import { type AddressInfo, type Server, type Socket, connect, createServer } from 'node:net';
import { type WireMessage, readWireMessages } from './wire-message.ts';

/**
 * Stands between a client and the proxy and passes every byte on, both ways, breaks included. What
 * it recorded is what the client really sent and got.
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
  readonly #wires: Wire[] = [];
  readonly #sockets = new Set<Socket>();

  /** `port` is the proxy's, on 127.0.0.1. */
  constructor(port: number) {
    this.#server = createServer((client) => this.#join(client, connect(port, '127.0.0.1')));
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
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

  #join(client: Socket, proxy: Socket): void {
    const wire: Wire = { up: [], down: [] };
    this.#wires.push(wire);
    this.#pass(client, proxy, wire.up);
    this.#pass(proxy, client, wire.down);
  }

  #pass(from: Socket, to: Socket, record: Buffer[]): void {
    this.#sockets.add(from);
    from.on('data', (bytes: Buffer) => record.push(bytes));
    from.pipe(to);
    // A connection that breaks on one side breaks on the other: it must not look like a clean end.
    from.on('error', () => to.resetAndDestroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      if (!from.readableEnded) to.destroy();
    });
  }
}
