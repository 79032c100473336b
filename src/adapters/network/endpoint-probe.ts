import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type AddressClass, classOf, mayResolve } from './addresses.ts';
import { codeOf } from '../files/file-error.ts';
import { within } from '../within.ts';
import { connectorTo, type Way, type Trust, NetworkProxyError } from './pinned-connector.ts';
import type { NetworkProxy } from '../../core/settings/network-proxy.ts';

/**
 * Checks the connection to a host step by step: its name, its addresses, TLS. It uses the same connector as requests,
 * so it finds the problems that they would have. It sends the host no request.
 */
export interface EndpointProbe {
  /**
   * The kinds of the host's addresses. Absent if svc found none (see `failure`), or if a network proxy looks them up.
   */
  readonly classes?: readonly AddressClass[];
  readonly addressCount: number;
  readonly tls?: TlsFacts;
  readonly failure?: {
    readonly step: 'name' | 'address' | 'proxy' | 'connection';
    readonly code: string;
  };
}

export interface TlsFacts {
  /** The TLS version: 'TLSv1.3'. */
  readonly protocol: string;
  /** When the certificate expires, in milliseconds since 1970; NaN if it does not say. */
  readonly validUntil: number;
}

/** Deadline of a name look-up. */
const LOOKUP_MS = 5000;

export async function probeEndpoint(
  url: URL,
  { allowPrivate, proxy }: { readonly allowPrivate: boolean; readonly proxy?: NetworkProxy },
  trust: Trust = {},
): Promise<EndpointProbe> {
  const rule = { allowPrivate, isSecure: url.protocol === 'https:' };
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  let addresses: readonly string[];
  try {
    if (isIP(host) !== 0) addresses = [host];
    else addresses = proxy === undefined ? await resolved(host) : [];
  } catch (error) {
    const code = codeOf(error) || 'ETIMEOUT';
    return { addressCount: 0, failure: { step: 'name', code } };
  }
  const classes = [...new Set(addresses.map(classOf))];
  const isJudged = addresses.length > 0;
  const found = { addressCount: addresses.length, ...(isJudged ? { classes } : {}) };
  if (!mayResolve(url.hostname, rule)) {
    return { ...found, failure: { step: 'address', code: 'SVC_ADDRESS_REFUSED' } };
  }
  try {
    const tls = await connect(url, { rule, proxy }, trust);
    return tls === undefined ? found : { ...found, tls };
  } catch (error) {
    const code = codeOf(error);
    if (error instanceof NetworkProxyError) return { ...found, failure: { step: 'proxy', code } };
    const step = code === 'SVC_ADDRESS_REFUSED' ? 'address' : 'connection';
    return { ...found, failure: { step, code } };
  }
}

async function resolved(host: string): Promise<readonly string[]> {
  const found = await within(LOOKUP_MS, lookup(host, { all: true, verbatim: true }));
  if (found === undefined) throw new Error('The name look-up is late.');
  return found.map(({ address }) => address);
}

/** Opens a connection and closes it. Returns facts about TLS; undefined for a connection without TLS. */
function connect(url: URL, way: Way, trust: Trust): Promise<TlsFacts | undefined> {
  const port = url.port || (way.rule.isSecure ? '443' : '80');
  const { protocol, hostname } = url;
  return new Promise((resolve, reject) => {
    connectorTo(way, trust)({ protocol, hostname, host: url.host, port }, (error, socket) => {
      if (error !== null) {
        reject(error);
        return;
      }
      resolve(socket instanceof TLSSocket ? factsOf(socket) : undefined);
      socket.destroy();
    });
  });
}

function factsOf(socket: TLSSocket): TlsFacts {
  const validUntil = Date.parse(socket.getPeerCertificate().valid_to);
  return { protocol: socket.getProtocol() ?? 'TLS', validUntil };
}
