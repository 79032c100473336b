import { once } from 'node:events';
import type { Server } from 'node:net';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Listens there; resolves with the port, which the system chooses where 0 was asked for. Throws the
 * server's own error (EADDRINUSE, EACCES) when the address cannot be had. A later error is a
 * connection that could not be accepted: `onRefused` gets it, and the listener lives on.
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
