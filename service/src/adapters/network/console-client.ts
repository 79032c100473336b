import { request as requestHttp, get as getHttp } from 'node:http';
import { request as requestHttps, get as getHttps } from 'node:https';

/** Calls a service's console API, wherever it runs. It follows no redirect, because the token is for one host. */

export interface ConsoleEndpoint {
  /** Without a path: `https://svc.example.com`. */
  readonly url: URL;
  readonly token: string;
  /** The certificate of a service on this machine, trusted whatever name it has. */
  readonly certificate?: string | undefined;
}

interface ConsoleHttpCall {
  readonly method: string;
  /** From `/` on, with its query. */
  readonly path: string;
  readonly tenant: string | undefined;
  /** JSON text. */
  readonly body: string | undefined;
  /** The version that the change is of. */
  readonly ifVersion: number | undefined;
}

interface ConsoleHttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** Deadline of a call: the service answers or refuses within ten seconds, and a slow network gets twice that. */
const WAIT_MS = 20_000;
/** Longest answer: a page of 100 providers of 500 models each has at most 13 MB. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** Calls the console. Rejects with Node's own error without a whole answer in time. */
export function callConsole(
  { url, token, certificate }: ConsoleEndpoint,
  { method, path, tenant, body, ifVersion }: ConsoleHttpCall,
): Promise<ConsoleHttpAnswer> {
  const headers = {
    authorization: `Bearer ${token}`,
    'x-svc-deadline-ms': '10000',
    ...(tenant === undefined ? {} : { 'x-svc-tenant': tenant }),
    ...(ifVersion === undefined ? {} : { 'if-match': `"${ifVersion}"` }),
    ...(body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const asked = request(new URL(path, url), {
      method,
      headers,
      agent: false,
      signal: AbortSignal.timeout(WAIT_MS),
      rejectUnauthorized: true,
      ...(certificate === undefined
        ? {}
        : { ca: certificate, checkServerIdentity: () => undefined }),
      minVersion: 'TLSv1.2',
    });
    asked.on('error', reject);
    asked.on('response', (answer) => {
      const chunks: Buffer[] = [];
      let length = 0;
      answer.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length > ANSWER_BYTES_MAX) asked.destroy(new Error('The answer is too long.'));
        else chunks.push(chunk);
      });
      answer.on('error', reject);
      answer.on('end', () => {
        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') });
      });
    });
    asked.end(body);
  });
}

/** Asks a service on this machine whether it is ready, without a key. */

// Deadline of an answer: it takes milliseconds, from a busy service some hundred.
const READY_MS = 3000;

interface ServiceAddress {
  readonly host: string;
  readonly port: number;
  /** The certificate with which it was started; undefined: plain HTTP. */
  readonly cert: string | undefined;
}

/** Returns the status of /readyz; undefined without an HTTP answer in time. */
export function probeService(address: ServiceAddress): Promise<number | undefined> {
  const { port, cert } = address;
  // A service that listens on every address is called on loopback.
  const host = address.host === '0.0.0.0' || address.host === '::' ? 'localhost' : address.host;
  return new Promise((resolve) => {
    const plain = { host, port, path: '/readyz', agent: false, timeout: READY_MS };
    // It is called by address, while its certificate is for its name; the check is that it has exactly this
    // certificate.
    const trust = { ca: cert, checkServerIdentity: () => undefined };
    const asked = cert === undefined ? getHttp(plain) : getHttps({ ...plain, ...trust });
    const deadline = setTimeout(() => asked.destroy(new Error('silent')), READY_MS);
    asked.on('response', (answer) => {
      answer.resume();
      answer.on('close', () => resolve(answer.statusCode));
    });
    asked.on('close', () => clearTimeout(deadline));
    asked.on('error', () => resolve(undefined));
  });
}
