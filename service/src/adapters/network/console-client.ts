import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

/** Calls the console of a service, on this machine or another. Follows no redirect: the token is for one host. */

export interface ConsoleEndpoint {
  /** The service's address without a path: `https://svc.example.com`. */
  readonly url: URL;
  readonly token: string;
  /** The certificate of a service on this machine. It is trusted, whatever host it names. */
  readonly certificate?: string | undefined;
}

interface ConsoleHttpCall {
  readonly method: string;
  /** The path from `/` on, with its query. */
  readonly path: string;
  readonly tenant: string | undefined;
  readonly body: string | undefined;
  /** Sent as If-Match: the version that the change replaces. */
  readonly ifVersion: number | undefined;
}

interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** Deadline of a call. Most answers take milliseconds, and that of a probe of a provider up to ten seconds. */
const WAIT_MS = 20_000;
/** Deadline of a check whether the service on this machine answers. It takes milliseconds, under load some hundred. */
const READY_MS = 3000;
/** Bound on the bytes of an answer: on a page of 100 providers with 500 models each, the models have at most 13 MB. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** Calls the console. Rejects with Node's own error if no whole answer comes in time. */
export function callConsole(
  { url, token, certificate }: ConsoleEndpoint,
  { method, path, tenant, body, ifVersion }: ConsoleHttpCall,
): Promise<HttpAnswer> {
  const headers = {
    authorization: `Bearer ${token}`,
    'x-svc-deadline-ms': '10000',
    ...(tenant === undefined ? {} : { 'x-svc-tenant': tenant }),
    ...(ifVersion === undefined ? {} : { 'if-match': `"${ifVersion}"` }),
    ...(body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
  return ask(new URL(path, url), { method, headers, body, certificate, waitMs: WAIT_MS });
}

export interface ServiceAddress {
  readonly host: string;
  readonly port: number;
  /** The certificate with which the service was started; undefined if it serves plain HTTP. */
  readonly certificate: string | undefined;
}

/** Returns the address of a service on this machine; loopback if the service listens on all addresses. */
export function ownUrl({ host, port, certificate }: ServiceAddress): URL {
  const named = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  const name = named.includes(':') ? `[${named}]` : named;
  return new URL(`${certificate === undefined ? 'http' : 'https'}://${name}:${port}`);
}

/** Returns the HTTP status of /readyz of a service on this machine; undefined if no answer comes in time. */
export function probeService(address: ServiceAddress): Promise<number | undefined> {
  const { certificate } = address;
  const asked = { method: 'GET', headers: {}, body: undefined, certificate, waitMs: READY_MS };
  return ask(new URL('/readyz', ownUrl(address)), asked).then(
    ({ status }) => status,
    () => undefined,
  );
}

interface HttpCall extends Pick<ConsoleEndpoint, 'certificate'> {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string | undefined;
  readonly waitMs: number;
}

function ask(
  url: URL,
  { method, headers, body, certificate, waitMs }: HttpCall,
): Promise<HttpAnswer> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      method,
      headers,
      agent: false,
      signal: AbortSignal.timeout(waitMs),
      rejectUnauthorized: true,
      // svc calls the service by an address that its certificate may not name. So the name is not checked, and only
      // this exact certificate is trusted.
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
