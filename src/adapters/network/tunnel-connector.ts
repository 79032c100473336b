import { isIP, Socket } from 'node:net';
import { buildConnector, Pool, type Dispatcher } from 'undici';
import type { NetworkProxy } from '../../core/settings/network-proxy.ts';
import { AddressRefusedError, pinnedConnector, tlsRules, type Trust } from './pinned-connector.ts';
import { mayResolve, type AddressRule } from './addresses.ts';

/**
 * Opens sockets to one upstream through the proxy of a network: CONNECT, and TLS to the upstream inside.
 * The proxy sees the host's name and port, and its own credentials; nothing else is for it to read. It
 * looks the name up, so only an address that is written out can be judged here.
 */

/** Errors before the tunnel is open, each with its words for people. */
const FAULTS = {
  PROXY_NAME_UNKNOWN: 'the name of the network proxy does not resolve',
  PROXY_UNREACHABLE: 'the network proxy cannot be reached',
  PROXY_TIMEOUT: 'the network proxy does not answer in time',
  PROXY_CERTIFICATE: 'the certificate of the network proxy cannot be verified',
  PROXY_NO_HTTP: 'the program at the address of the network proxy is not an HTTP proxy',
  PROXY_CREDENTIALS_MISSING: 'the network proxy asks for a user name and password (407)',
  PROXY_CREDENTIALS_REFUSED: 'the network proxy refuses the user name or password (407)',
  PROXY_FORBIDDEN: 'the network proxy refuses to connect to this host',
  PROXY_HOST_UNREACHABLE: 'the network proxy cannot find or reach this host',
} as const;

export type NetworkProxyFault = keyof typeof FAULTS;

/** The network proxy failed. The error contains neither its address nor its credentials. */
export class NetworkProxyError extends Error {
  override readonly name = 'NetworkProxyError';
  readonly code: NetworkProxyFault;

  constructor(code: NetworkProxyFault) {
    super(FAULTS[code]);
    this.code = code;
  }
}

/** Undefined if the code does not concern the network proxy. */
export function proxyFaultText(code: string): string | undefined {
  return isFault(code) ? FAULTS[code] : undefined;
}

function isFault(code: string): code is NetworkProxyFault {
  return Object.hasOwn(FAULTS, code);
}

/** The proxy may have any address, also without TLS, because it sees only the name of the host. */
const PROXY_RULE: AddressRule = { allowPrivate: true, isSecure: true };

const HEADER_BYTES_MAX = 16_384;

/** The proxy dials meanwhile. Below the 10 s that svc itself waits for a provider that it asks something. */
const ANSWER_MS = 8000;

export function tunnelConnector(
  { proxy, rule }: { readonly proxy: NetworkProxy; readonly rule: AddressRule },
  trust: Trust,
): buildConnector.connector {
  const { hostname } = new URL(proxy.origin);
  const dial = pinnedConnector(PROXY_RULE, trust);
  // undici takes the name for TLS from the Host header, which is the upstream's.
  const servername = isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : '';
  const pool = new Pool(proxy.origin, {
    connect: (options, callback) => dial({ ...options, servername }, callback),
    pipelining: 1,
    headersTimeout: ANSWER_MS,
    maxHeaderSize: HEADER_BYTES_MAX,
    allowH2: false,
  });
  const secure = buildConnector(tlsRules(trust));
  return (options, callback) => {
    if (!mayResolve(options.hostname, rule)) {
      callback(new AddressRefusedError(), null);
      return;
    }
    const port = options.port || (rule.isSecure ? '443' : '80');
    const authority = `${options.hostname}:${port}`;
    const headers = ['host', authority];
    if (proxy.authorization !== '') headers.push('proxy-authorization', proxy.authorization);
    const settle = (error: Error | null, socket: Socket | undefined): void => {
      if (socket === undefined) callback(error ?? new NetworkProxyError('PROXY_NO_HTTP'), null);
      else if (rule.isSecure) secure({ ...options, httpSocket: socket }, callback);
      else callback(null, socket);
    };
    const hasCredentials = proxy.authorization !== '';
    pool.dispatch({ method: 'CONNECT', path: authority, headers }, asking(hasCredentials, settle));
  };
}

/** Returns the socket of an open tunnel, or the reason for the failure. */
function asking(
  hasCredentials: boolean,
  settle: (error: Error | null, socket: Socket | undefined) => void,
): Dispatcher.DispatchHandler {
  return {
    onRequestStart() {},
    onRequestUpgrade(_controller, status, ...[, socket]) {
      // undici hands over what its connector gave it, which is a socket.
      if (socket instanceof Socket && status >= 200 && status < 300) {
        settle(null, socket);
        return;
      }
      socket.on('error', () => {}).destroy();
      settle(new NetworkProxyError(faultOf(status, hasCredentials)), undefined);
    },
    onResponseError(_controller, error) {
      settle(new NetworkProxyError(faultIn(error)), undefined);
    },
  };
}

function faultOf(status: number, hasCredentials: boolean): NetworkProxyFault {
  if (status === 407)
    return hasCredentials ? 'PROXY_CREDENTIALS_REFUSED' : 'PROXY_CREDENTIALS_MISSING';
  return status >= 500 || status === 404 ? 'PROXY_HOST_UNREACHABLE' : 'PROXY_FORBIDDEN';
}

/** The error itself stays here: a parser's carries the bytes that it stumbled over. */
function faultIn(error: Error): NetworkProxyFault {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'PROXY_NAME_UNKNOWN';
  if (/TIMEOUT|ETIMEDOUT/.test(code)) return 'PROXY_TIMEOUT';
  if (/CERT|SIGNED|VERIFY|ISSUER/.test(code)) return 'PROXY_CERTIFICATE';
  const isForeign = error.name === 'HTTPParserError' || /^ERR_SSL|EPROTO/.test(code);
  return isForeign ? 'PROXY_NO_HTTP' : 'PROXY_UNREACHABLE';
}
