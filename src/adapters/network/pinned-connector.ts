import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import { type LookupFunction, Socket, isIP } from 'node:net';
import { buildConnector, Pool, type Dispatcher } from 'undici';
import { codeOf } from '../files/file-error.ts';
import { mayDial, mayResolve, type AddressRule } from './addresses.ts';
import type { NetworkProxy } from '../../core/settings/network-proxy.ts';

/**
 * Opens sockets to one upstream. It checks every address to which the name resolves, connects to one of them, and
 * verifies the certificate for the name. Then it checks the remote address of the socket. If a network proxy is
 * configured, it does all this for the proxy, opens a tunnel (HTTP CONNECT), and verifies the certificate of the
 * upstream in it. The proxy then looks up the name of the upstream.
 */

/** Thrown for an address that svc must not connect to. Its message names no host, because clients see it. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefusedError';
  readonly code = 'SVC_ADDRESS_REFUSED';

  constructor() {
    super('The address of the provider is not allowed.');
  }
}

type Resolve = (
  hostname: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

export interface Trust {
  /** PEM certificates of the authorities to trust, instead of Node's own and those of NODE_EXTRA_CA_CERTS. */
  readonly ca?: string;
  /** Replaces the system's resolver. */
  readonly resolve?: Resolve;
}

/** Deadline of the name look-up and the TCP and TLS handshakes together. */
const CONNECT_MS = 10_000;

function pinnedConnector(rule: AddressRule, trust: Trust): buildConnector.connector {
  const connect = buildConnector({
    lookup: checkedLookup(rule, trust.resolve ?? resolveAll),
    ...tlsRules(trust),
  });
  return (options, callback) => {
    // Node calls `lookup` only for names, so an address in the URL must be checked here.
    if (!mayResolve(options.hostname, rule)) {
      callback(new AddressRefusedError(), null);
      return;
    }
    connect(options, (error, socket) => {
      if (error !== null) {
        callback(error, null);
        return;
      }
      const refusal = refusePeer(socket, rule);
      if (refusal === undefined) callback(null, socket);
      else callback(refusal, null);
    });
  };
}

function tlsRules({ ca }: Trust): buildConnector.BuildOptions {
  return {
    timeout: CONNECT_MS,
    allowH2: false,
    // Set explicitly, because NODE_TLS_REJECT_UNAUTHORIZED=0 and --tls-min-v1.0 change the defaults.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca }),
  };
}

/** Returns a lookup function for sockets. It fails unless svc may connect to every address of the name. */
function checkedLookup(rule: AddressRule, resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, (error, addresses) => {
      const first = addresses[0];
      if (error !== null) callback(error, []);
      else if (first === undefined || !addresses.every(({ address }) => mayDial(address, rule))) {
        callback(new AddressRefusedError(), []);
      } else if (options.all === true) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    });
  };
}

function resolveAll(hostname: string, done: Parameters<Resolve>[1]): void {
  systemLookup(hostname, { all: true, verbatim: true }, (error, addresses) => {
    // Contrary to its type, `addresses` is undefined if there is an error.
    done(error, error === null ? addresses : []);
  });
}

function refusePeer(socket: Socket, rule: AddressRule): Error | undefined {
  const peer = socket.remoteAddress;
  if (peer !== undefined && mayDial(peer, rule)) return undefined;
  socket.destroy();
  if (peer !== undefined) return new AddressRefusedError();
  return Object.assign(new Error('The connection was lost.'), { code: 'ECONNRESET' });
}

export interface Way {
  readonly rule: AddressRule;
  /** The network proxy; undefined: connect to the host directly. */
  readonly proxy?: NetworkProxy | undefined;
}

/** Returns the connector for a host. It connects directly, or through a network proxy. */
export function connectorTo({ rule, proxy }: Way, trust: Trust): buildConnector.connector {
  return proxy === undefined
    ? pinnedConnector(rule, trust)
    : tunnelConnector({ proxy, rule }, trust);
}

/** Failures before the tunnel is open, with their texts for users. */
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

type NetworkProxyFault = keyof typeof FAULTS;

/** Thrown if the network proxy failed. The error contains neither its address nor its credentials. */
export class NetworkProxyError extends Error {
  override readonly name = 'NetworkProxyError';
  readonly code: NetworkProxyFault;

  constructor(code: NetworkProxyFault) {
    super(FAULTS[code]);
    this.code = code;
  }
}

/** Explains an error code of the network proxy; undefined for any other code. */
export function proxyFaultText(code: string): string | undefined {
  return Object.entries(FAULTS).find(([known]) => known === code)?.[1];
}

/**
 * The rule for the network proxy itself. Private and public addresses are allowed, even without TLS, but no link-local
 * ones and no cloud's metadata service. tunnelConnector() says what the proxy sees.
 */
const PROXY_RULE: AddressRule = { allowPrivate: true, isSecure: true };

const HEADER_BYTES_MAX = 16_384;

/**
 * Deadline of the network proxy's answer to CONNECT. The proxy connects to the host before it answers. svc's own checks
 * wait 10 s for an answer, so they report this failure and not a timeout of their own.
 */
const ANSWER_MS = 8000;

/**
 * Returns a connector that opens sockets to one upstream through a network proxy: CONNECT, and for an https URL TLS to
 * the upstream inside the tunnel. With TLS the network proxy sees only the host's name and port, and its own
 * credentials. The network proxy looks up the name, so svc can check an address only if the URL contains one.
 */
function tunnelConnector(
  { proxy, rule }: { readonly proxy: NetworkProxy; readonly rule: AddressRule },
  trust: Trust,
): buildConnector.connector {
  const { hostname } = new URL(proxy.origin);
  const dial = pinnedConnector(PROXY_RULE, trust);
  // Set the name for TLS to the network proxy: undici would take it from the Host header, which names the upstream.
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

/** Returns a handler for CONNECT that passes on the socket of the open tunnel, or the failure. */
function asking(
  hasCredentials: boolean,
  settle: (error: Error | null, socket: Socket | undefined) => void,
): Dispatcher.DispatchHandler {
  return {
    onRequestStart() {},
    onRequestUpgrade(_controller, status, ...[, socket]) {
      // undici's type is a stream, but the value is the socket that its connector returned.
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

/** Returns the kind of an error. The error itself is dropped, because that of a parser contains received bytes. */
function faultIn(error: Error): NetworkProxyFault {
  const code = codeOf(error);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'PROXY_NAME_UNKNOWN';
  if (/TIMEOUT|ETIMEDOUT/.test(code)) return 'PROXY_TIMEOUT';
  if (/CERT|SIGNED|VERIFY|ISSUER/.test(code)) return 'PROXY_CERTIFICATE';
  const isForeign = error.name === 'HTTPParserError' || /^ERR_SSL|EPROTO/.test(code);
  return isForeign ? 'PROXY_NO_HTTP' : 'PROXY_UNREACHABLE';
}
