import { CliError } from '../cli-error.ts';

/** Flags of `svc service init` and `start` as settings; what they mean is checked with the file. */
export interface RawServiceFlags {
  readonly host?: string;
  readonly port?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly behindProxy?: boolean;
  readonly rate?: string;
}

export function serviceFlags(flags: RawServiceFlags): Readonly<Record<string, unknown>> {
  const { host, port, tlsCert: cert, tlsKey: key, behindProxy, rate } = flags;
  if ((cert === undefined) !== (key === undefined)) {
    const hint = 'Give --tls-cert and --tls-key, both as paths of PEM files.';
    throw new CliError('A certificate and its key belong together.', hint, 2);
  }
  return {
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: numberOf(port, '--port') }),
    ...(cert === undefined ? {} : { tls: { cert, key } }),
    ...(behindProxy === undefined ? {} : { behindProxy }),
    ...(rate === undefined
      ? {}
      : { requestsPerMinute: rate === 'off' ? null : numberOf(rate, '--rate') }),
  };
}

function numberOf(text: string, flag: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw new CliError(`${flag}: expected a whole number.`, 'See: svc service start --help', 2);
}
