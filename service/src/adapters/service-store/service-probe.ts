import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

/** Asks a service on this machine whether it is ready. Sends no key. */

// A service on this machine answers in milliseconds, a busy one in some hundred.
const WAIT_MS = 3000;

export interface ServiceAddress {
  readonly host: string;
  readonly port: number;
  /** The certificate that it was started with; undefined: plain HTTP. */
  readonly cert: string | undefined;
}

/** The status of /readyz; undefined without an HTTP answer in time. */
export function probeService(address: ServiceAddress): Promise<number | undefined> {
  const { port, cert } = address;
  // A service that listens on every address is asked on loopback.
  const host = address.host === '0.0.0.0' || address.host === '::' ? 'localhost' : address.host;
  return new Promise((resolve) => {
    const plain = { host, port, path: '/readyz', agent: false, timeout: WAIT_MS };
    // It is asked by its address, and its certificate is for its name: that it is this very
    // certificate is what counts.
    const trust = { ca: cert, checkServerIdentity: () => undefined };
    const asked = cert === undefined ? getHttp(plain) : getHttps({ ...plain, ...trust });
    const deadline = setTimeout(() => asked.destroy(new Error('silent')), WAIT_MS);
    asked.on('response', (answer) => {
      answer.resume();
      answer.on('close', () => resolve(answer.statusCode));
    });
    asked.on('close', () => clearTimeout(deadline));
    asked.on('error', () => resolve(undefined));
  });
}
