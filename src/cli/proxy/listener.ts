import { codeOf } from '../../adapters/files/file-error.ts';
import { otherPort } from '../listing.ts';
import { CliError, type ExitCode } from '../cli-error.ts';
import type { Terminal } from '../terminal.ts';

/** The address that a server could not use. */
interface WantedAddress {
  readonly host: string;
  readonly port: number;
  /** The command that has --host and --port, for example 'svc start'. */
  readonly command: string;
  /** The command that shows which program uses the port, for example 'svc doctor'. */
  readonly look: string;
  /** The default port of the command, for example 8765. */
  readonly usualPort: number;
}

/** Returns why a server cannot use its address, and what to do; undefined if `error` has another cause. */
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

type StopEvent = 'SIGINT' | 'SIGTERM' | 'uncaughtException';

/** The members of `process` that waitForStop() uses. */
export interface SignalSource {
  on(event: StopEvent, listener: (detail: unknown) => void): unknown;
  off(event: StopEvent, listener: (detail: unknown) => void): unknown;
  exit(code: number): void;
}

/** Time for sockets to close after a stop, in milliseconds. Then the process ends, because a service manager waits. */
const LINGER_MS = 500;

interface Stoppable {
  /** Lets open answers finish, and ends the server. */
  stop(): Promise<void>;
}

/**
 * Waits until a proxy or service has stopped, and returns its exit code. The first signal lets answers finish, the
 * second ends the process at once. An uncaught error acts like a first signal; after the first signal it has no effect.
 */
export async function waitForStop(
  running: Stoppable,
  signals: SignalSource,
  terminal: Terminal,
): Promise<ExitCode> {
  const listeners = new Map<StopEvent, (detail: unknown) => void>();
  const code = await new Promise<ExitCode>((resolve) => {
    let isStopping = false;
    const stopWith = (end: ExitCode): void => {
      if (isStopping) {
        signals.exit(end === 0 ? 1 : end);
        return;
      }
      isStopping = true;
      running.stop().then(
        () => resolve(end),
        () => resolve(1),
      );
    };
    listeners.set('SIGINT', () => {
      if (!isStopping)
        terminal.note('svc stops when open answers have finished. Press again to stop now.');
      stopWith(130);
    });
    listeners.set('SIGTERM', () => stopWith(0));
    listeners.set('uncaughtException', (error) => {
      // svc is waiting for open answers. An error in one of them must not cut the others.
      if (isStopping) return;
      // The message may quote a request, so svc prints only the kind of error.
      const kind = error instanceof Error ? error.name : 'unknown error';
      terminal.error(`An unexpected error (${kind}): svc stops.`);
      stopWith(1);
    });
    for (const [event, listener] of listeners) signals.on(event, listener);
  });
  for (const [event, listener] of listeners) signals.off(event, listener);
  setTimeout(() => signals.exit(code), LINGER_MS).unref();
  return code;
}
