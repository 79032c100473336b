import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';

/**
 * A forward proxy as companies have them, on loopback. It finds hosts by its own table, so that a name
 * such as provider.test, which resolves nowhere, leads to a stand-in.
 */
export interface ForwardProxy {
  readonly url: string;
  readonly port: number;
  /** Every CONNECT, as it came. */
  readonly asked: { readonly target: string; readonly headers: IncomingMessage['headers'] }[];
}

export interface Behaviour {
  /** `name:port` to the port of a stand-in on loopback. */
  readonly hosts?: Readonly<Record<string, number>>;
  /** user:password; whoever comes without them gets 407. */
  readonly credentials?: string;
  /** Answers every CONNECT with this status. */
  readonly refusal?: number;
  /** Takes every CONNECT and says nothing. */
  readonly isHanging?: true;
  /** Opens TLS with this certificate and answers requests itself. */
  readonly opensTls?: { readonly key: string; readonly cert: string };
}

export async function startForwardProxy(behaviour: Behaviour): Promise<ForwardProxy> {
  const asked: ForwardProxy['asked'] = [];
  const sockets = new Set<Socket>();
  const server = createServer((_request, answer) => void answer.writeHead(400).end());
  server.on('connection', (socket) => sockets.add(socket));
  server.on('connect', (request: IncomingMessage, client: Socket) => {
    client.on('error', () => client.destroy());
    const { url: target = '', headers } = request;
    asked.push({ target, headers });
    if (behaviour.isHanging === true) return;
    const status = statusFor(behaviour, request);
    client.write(`HTTP/1.1 ${status} Said\r\n\r\n`);
    if (status !== 200) client.end();
    else if (behaviour.opensTls === undefined) join(client, behaviour.hosts?.[target] ?? 0);
    else answerInside(client, behaviour.opensTls);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, asked };
}

function statusFor(
  { credentials, refusal, opensTls, hosts = {} }: Behaviour,
  request: IncomingMessage,
) {
  const wanted = `Basic ${Buffer.from(credentials ?? '').toString('base64')}`;
  if (credentials !== undefined && request.headers['proxy-authorization'] !== wanted) return 407;
  if (refusal !== undefined) return refusal;
  // As squid and its like answer for a name that they cannot resolve.
  return opensTls !== undefined || Object.hasOwn(hosts, request.url ?? '') ? 200 : 503;
}

/** Whoever trusts the certificate hears this proxy instead of the provider. */
function answerInside(client: Socket, certificate: NonNullable<Behaviour['opensTls']>): void {
  const secure = new TLSSocket(client, { isServer: true, ...certificate });
  secure.on('error', () => {});
  secure.on('data', () => secure.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno'));
}

function join(client: Socket, port: number): void {
  const upstream = connect(port, '127.0.0.1');
  upstream.on('error', () => client.destroy());
  upstream.on('close', () => client.destroy());
  client.on('close', () => upstream.destroy());
  client.pipe(upstream).pipe(client);
}
