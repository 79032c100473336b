import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import { buildConnector } from 'undici';
import { mayDial, mayResolve, type AddressRule } from './addresses.ts';

/**
 * Opens sockets to one upstream, and to nothing else. It checks every address of the name, dials a
 * checked one, and checks the certificate for the name. Then it checks the address that the socket
 * reached. Through a network's proxy it is `tunnel-connector.ts` that connects.
 */

/** The address is one that svc must not dial. Carries no host: the message may reach a client. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefusedError';
  readonly code = 'SVC_ADDRESS_REFUSED';

  constructor() {
    super('The address of the provider is not allowed.');
  }
}

export type Resolve = (
  hostname: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

export interface Trust {
  /** PEM certificates to trust instead of the system's, which NODE_EXTRA_CA_CERTS extends. */
  readonly ca?: string;
  /** Instead of the system's resolver. */
  readonly resolve?: Resolve;
}

/** A name look-up, a TCP and a TLS handshake together; a provider that needs longer is down. */
const CONNECT_MS = 10_000;

export function pinnedConnector(rule: AddressRule, trust: Trust): buildConnector.connector {
  const connect = buildConnector({
    lookup: checkedLookup(rule, trust.resolve ?? resolveAll),
    ...tlsRules(trust),
  });
  return (options, callback) => {
    // Node calls a `lookup` for names only: an address in the URL would pass unseen.
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

export function tlsRules({ ca }: Trust): buildConnector.BuildOptions {
  return {
    timeout: CONNECT_MS,
    allowH2: false,
    // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 and --tls-min-v1.0 change the defaults.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca }),
  };
}

/** Gives the socket all addresses of the name, in the resolver's order, or none of them. */
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
    // With an error the second argument is missing, whatever its type says.
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
