import {
  closed,
  flag,
  integer,
  listOf,
  type Infer,
  oneOf,
  orNull,
  parseShape,
  such,
  text,
} from '../../../src/core/memory-api/shape.ts';
import type { Egress } from './providers.ts';
import { isOwnMachine } from '../../../src/core/settings/own-machine.ts';

/**
 * The settings of the service, from service.json in its folder. The only secret that they may contain is a password in
 * the address of a database or of Redis. With `from` instead of `url` they name a source of the address instead.
 */

/** The default port. It differs from the proxy's 8765, so one machine can run both. */
export const SERVICE_PORT = 8766;

const HOST = /^[0-9A-Za-z.:_-]{1,255}$/;
const path = text({ min: 1, max: 4096 });
/** Matches a network, such as 10.1.0.0/16. */
const NETWORK = /^[0-9a-fA-F.:]{2,45}\/\d{1,3}$/;
const GIB = 1024 ** 3;

/** Matches the id of a master key. */
export const MASTER_KEY_ID = /^mk_[0-9a-z]{8}$/;

const MASTER_KEY_FROM = /^(?:file:\/|env:[A-Za-z_]|command:\S)/;

export function isMasterKeySource(from: string): boolean {
  return from.length <= 4096 && MASTER_KEY_FROM.test(from);
}

const masterKeySource = closed({
  id: text({ pattern: MASTER_KEY_ID }),
  from: text({ max: 4096, pattern: MASTER_KEY_FROM }),
});

/** `url`: an address, which may contain a password. `from`, which is safer: a source of the address elsewhere. */
const addressAt = (pattern: RegExp) => ({
  url: text({ min: 1, max: 4096, pattern }),
  from: text({ max: 4096, pattern: MASTER_KEY_FROM }),
});
const hasOneAddress = (value: { readonly url?: string; readonly from?: string }): boolean =>
  value.url === undefined || value.from === undefined;
const ONE_ADDRESS = 'must have either url or from, not both';

const serviceSettings = such(
  closed(
    { version: oneOf(1), host: text({ pattern: HOST }), port: integer(0, 65_535) },
    {
      /** Paths of the PEM files of the certificate and its key. */
      tls: closed({ cert: path, key: path }),
      /** True if a proxy in front ends TLS. The service then accepts plain HTTP on any address. */
      behindProxy: flag,
      /** Calls of one key per minute; null means no limit. */
      requestsPerMinute: orNull(integer(1, 1_000_000)),
      /** Bound on one space, in canonical bytes of its records. */
      spaceBytesMax: integer(1, 1024 * GIB),
      /** The sources of the vault's master keys, never the keys themselves. */
      vault: closed({ keys: listOf(masterKeySource, { max: 64 }) }),
      /** Serves metrics as text on a separate address. */
      metrics: closed({ host: text({ pattern: HOST }), port: integer(0, 65_535) }),
      /** The address by which clients reach the service. */
      publicUrl: text({ max: 512, pattern: /^https?:\/\/[\w.:[\]-]+$/ }),
      /** Where providers may be, in addition to public addresses on the ports 443 and 8443. */
      egress: closed(
        {},
        {
          ports: listOf(integer(1, 65_535), { max: 64 }),
          allow: listOf(text({ max: 64, pattern: NETWORK }), { max: 64 }),
        },
      ),
      /** A PostgreSQL database, used instead of the file. */
      database: such(
        closed(
          {},
          {
            ...addressAt(/^postgres(?:ql)?:\/\//),
            /** True if the operator guarantees that only a standby with every acknowledged commit is promoted. */
            trustFailover: flag,
            /** True if a starting service runs missing migrations. */
            autoMigrate: flag,
          },
        ),
        hasOneAddress,
        ONE_ADDRESS,
      ),
      /** The Redis server on which several nodes count limits together. */
      redis: such(closed({}, addressAt(/^rediss?:\/\//)), hasOneAddress, ONE_ADDRESS),
      /** Days for which audit events are kept; undefined means for ever. */
      auditDays: integer(1, 36_500),
      /** The time in milliseconds that recall may add to a model request. */
      recallMs: integer(10, 10_000),
      /** The time in milliseconds that open calls get to finish at shutdown. */
      drainMs: integer(0, 600_000),
    },
  ),
  ({ host, tls, behindProxy }) => tls !== undefined || behindProxy === true || isOwnMachine(host),
  'needs tls, or behindProxy, to listen beyond loopback',
);
export type ServiceSettings = Infer<typeof serviceSettings>;

/** The default for `drainMs`: longer than the 5 s for which a client waits for a capture. */
export const DRAIN_MS = 10_000;

export const SERVICE_DEFAULTS = { version: 1, host: '127.0.0.1', port: SERVICE_PORT } as const;

/** Returns the settings, or problems for the user. The problems name members and repeat no value. */
export function parseServiceSettings(value: unknown): {
  readonly settings?: ServiceSettings;
  readonly problems: readonly string[];
} {
  const parsed = parseShape(serviceSettings, value);
  return parsed.problems === undefined
    ? { settings: parsed.value, problems: [] }
    : { problems: parsed.problems };
}

/** The warning for an operator whose service does not know its public address. */
export const NO_PUBLIC_URL =
  'The service does not know its public address, so it leaves no tool output out of model requests: ' +
  'clients could not read it again.';
export const PUBLIC_URL_FIX =
  'Set "publicUrl" in service.json to the address that clients use, or give --public-url https://HOST.';

export function egressOf({ egress = {} }: Pick<ServiceSettings, 'egress'>): Egress {
  return { ports: egress.ports ?? [], allow: egress.allow ?? [] };
}

/**
 * Returns the address by which clients reach the service: `publicUrl`, or the address where it listens, if that is
 * loopback with a fixed port and no proxy is in front. Otherwise undefined.
 */
export function publicUrlOf(settings: ServiceSettings): string | undefined {
  const { publicUrl, host, port, tls, behindProxy } = settings;
  const isOwn = isOwnMachine(host) && behindProxy !== true && port !== 0;
  if (publicUrl !== undefined || !isOwn) return publicUrl;
  const name = host.includes(':') ? `[${host}]` : host;
  return `${tls === undefined ? 'http' : 'https'}://${name}:${port}`;
}
