/** Parses the address of a PostgreSQL server: `postgres://user:password@host:5432/name?sslmode=verify-full`. */

export interface ServerAddress {
  /** A host name, an IP address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string | undefined;
  readonly database: string;
  /** False means unencrypted, such as for a server on this machine or behind a tunnel. */
  readonly tls: false | { readonly rejectUnauthorized: boolean };
}

const FORM =
  /^postgres(?:ql)?:\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^/?#]+)\/([^?#]+)(?:\?([^#]*))?$/;
const HOST = /^(\[[0-9a-f:.]+\]|[A-Za-z0-9.-]+|%2F[A-Za-z0-9%._-]+)(?::(\d{1,5}))?$/i;
const PORT = 5432;
/** The values of libpq's sslmode that svc accepts: no TLS, or TLS with a check of the server's certificate and name. */
const TLS_BY_MODE = new Map<string, ServerAddress['tls']>([
  ['disable', false],
  ['verify-full', { rejectUnauthorized: true }],
]);

/** Parses an address; undefined if it is invalid. No error may quote an address, because it may contain a password. */
export function readServerUrl(text: string): ServerAddress | undefined {
  const [, user = '', password, hostText = '', database = '', query = ''] = FORM.exec(text) ?? [];
  const place = readHost(hostText);
  if (place === undefined || database === '') return undefined;
  const options = new URLSearchParams(query);
  const mode = options.get('sslmode') ?? (isLocal(place.host) ? 'disable' : 'verify-full');
  const tls = TLS_BY_MODE.get(mode);
  const isKnown = [...options.keys()].every((name) => name === 'sslmode');
  if (tls === undefined || !isKnown) return undefined;
  try {
    return {
      ...place,
      user: decodeURIComponent(user) || 'svc',
      password: password === undefined ? undefined : decodeURIComponent(password),
      database: decodeURIComponent(database),
      tls,
    };
  } catch {
    return undefined;
  }
}

function readHost(text: string): { host: string; port: number } | undefined {
  const [, host, port] = HOST.exec(text) ?? [];
  if (host === undefined) return undefined;
  return {
    // The slashes of a socket's folder are written as %2F.
    host: host.startsWith('[') ? host.slice(1, -1) : decodeURIComponent(host),
    port: port === undefined ? PORT : Number(port),
  };
}

function isLocal(host: string): boolean {
  return host.startsWith('/') || host === 'localhost' || host === '::1' || host.startsWith('127.');
}
