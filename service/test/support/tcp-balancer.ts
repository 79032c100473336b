import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A plain TCP balancer on loopback: each connection goes to the next node that takes it. */
export interface Balancer {
  readonly port: number;
  /** The ports behind it, in turns. */
  ports: readonly number[];
}

export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const open = new Set<Socket>();
  let turn = 0;
  const server = createServer((client) => {
    open.add(client);
    client.on('error', () => client.destroy());
    client.on('close', () => open.delete(client));
    turn += 1;
    join(client, { ports: balancer.ports, from: turn, left: balancer.ports.length });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- A TCP server has such an address.
  const { port } = server.address() as AddressInfo;
  const balancer: Balancer = { port, ports };
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return balancer;
}

interface Choice {
  readonly ports: readonly number[];
  readonly from: number;
  /** Nodes that were not tried yet. */
  readonly left: number;
}

function join(client: Socket, { ports, from, left }: Choice): void {
  const port = ports[from % ports.length];
  if (port === undefined || left === 0) {
    client.destroy();
    return;
  }
  const node = connect(port, '127.0.0.1');
  let isJoined = false;
  node.once('connect', () => {
    isJoined = true;
    client.pipe(node).pipe(client);
  });
  node.on('error', () => {
    if (isJoined) client.destroy();
    else join(client, { ports, from: from + 1, left: left - 1 });
  });
  node.on('close', () => {
    if (isJoined) client.destroy();
  });
  client.on('close', () => node.destroy());
}
