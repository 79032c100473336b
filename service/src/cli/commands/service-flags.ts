import type { ServiceSettings } from '../../core/settings.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';

/** Flags of `svc-service init` and `start` as settings; what they mean is checked with the file. */
export interface RawServiceFlags {
  readonly host?: string;
  readonly port?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly behindProxy?: boolean;
  readonly publicUrl?: string;
  readonly rate?: string;
  /** Sources of addresses, never the addresses: an argument is seen by every user. */
  readonly databaseFrom?: string;
  readonly redisFrom?: string;
  readonly autoMigrate?: boolean;
  /** `host:port` */
  readonly metrics?: string;
}

export function serviceFlags(flags: RawServiceFlags): Readonly<Record<string, unknown>> {
  const { host, port, tlsCert: cert, tlsKey: key, behindProxy, publicUrl, rate, metrics } = flags;
  const { databaseFrom, redisFrom } = flags;
  if ((cert === undefined) !== (key === undefined)) {
    const hint = 'Give both --tls-cert and --tls-key, as paths of PEM files.';
    throw new CliError('A certificate needs its key.', hint, 2);
  }
  return {
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: numberOf(port, '--port') }),
    ...(cert === undefined ? {} : { tls: { cert, key } }),
    ...(behindProxy === undefined ? {} : { behindProxy }),
    ...(publicUrl === undefined ? {} : { publicUrl: originOf(publicUrl) }),
    ...(databaseFrom === undefined ? {} : { database: { from: databaseFrom } }),
    ...(redisFrom === undefined ? {} : { redis: { from: redisFrom } }),
    ...(metrics === undefined ? {} : { metrics: addressOf(metrics) }),
    ...(rate === undefined
      ? {}
      : { requestsPerMinute: rate === 'off' ? null : numberOf(rate, '--rate') }),
  };
}

/** Beside what the settings say of the database. */
export function withMigrations<Settings extends Pick<ServiceSettings, 'database'>>(
  settings: Settings,
  { autoMigrate }: RawServiceFlags,
): Settings {
  if (autoMigrate !== true) return settings;
  return { ...settings, database: { ...settings.database, autoMigrate } };
}

/** The address as a setting has it: without a slash at its end. */
function originOf(text: string): string {
  const origin = text.replace(/\/$/, '');
  if (/^https?:\/\/[\w.:[\]-]+$/.test(origin)) return origin;
  const hint = 'Try --public-url https://svc.example.com';
  throw new CliError('--public-url: expected an address without a path.', hint, 2);
}

function addressOf(text: string): { host: string; port: number } {
  const [, host = '', port = ''] = /^\[?([0-9A-Za-z.:_-]+?)\]?:(\d{1,5})$/.exec(text) ?? [];
  if (host !== '') return { host, port: Number(port) };
  throw new CliError('--metrics: expected an address.', 'Try --metrics 127.0.0.1:9466', 2);
}

function numberOf(text: string, flag: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw new CliError(`${flag}: expected a whole number.`, 'See: svc-service start --help', 2);
}
