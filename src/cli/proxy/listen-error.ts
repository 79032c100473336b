import { codeOf } from '../../adapters/files/file-error.ts';
import { otherPort } from '../listing.ts';
import { CliError } from '../cli-error.ts';

/** Why a listener cannot have its address, and what to do: of `svc start` and `svc-service start`. */

export interface WantedAddress {
  readonly host: string;
  readonly port: number;
  /** The command that takes the flags: 'svc start'. */
  readonly command: string;
  /** The command that shows which program has the port. */
  readonly look: string;
  /** The port that the command uses by default: 8765. */
  readonly usualPort: number;
}

/** Undefined for an error that is about something else. */
export function listenError(error: unknown, wanted: WantedAddress): CliError | undefined {
  const { host, port, command, look, usualPort } = wanted;
  const code = codeOf(error);
  if (code === 'EADDRINUSE') {
    return new CliError(
      `Another program uses port ${port} on ${host}, or svc runs there already.`,
      `Check with: ${look}. Use another port with: ${command} --port ${otherPort(port)}`,
    );
  }
  if (code === 'EACCES') {
    const hint = `Use a port above 1023: ${command} --port ${usualPort}`;
    return new CliError(`svc does not have the permission to use port ${port}.`, hint);
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    const hint = `Use an address of this machine: ${command} --host 127.0.0.1`;
    return new CliError(`${host} is not an address of this machine.`, hint);
  }
  return undefined;
}
