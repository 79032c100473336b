import type { Settings } from '../core/settings.ts';
import { CliError } from './cli-error.ts';
import type { Terminal } from './terminal.ts';

/** The composition root: the only place where adapters meet ports. */

export interface StartProxyOptions {
  readonly settings: Settings;
  readonly dataFolder: string;
  readonly configFile: string;
  readonly terminal: Terminal;
  readonly quiet: boolean;
}

export interface RunningProxy {
  readonly host: string;
  /** The port that the system gave, where the settings say 0. */
  readonly port: number;
  /** Takes no more requests, lets running answers finish, closes everything. */
  stop(): Promise<void>;
  /**
   * Takes over settings of a changed file from the next request on: the local token at once, host
   * and port never. Absent where that needs a restart.
   */
  apply?(settings: Settings): void;
}

/** Throws the server's own error (EADDRINUSE, EACCES) when the address cannot be had. */
export async function startProxy(_options: StartProxyOptions): Promise<RunningProxy> {
  throw new CliError('This build has no proxy in it.', 'Use a released version of svc.');
}
