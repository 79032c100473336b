import type { Environment } from '../core/settings/config-values.ts';
import type { OpenStore } from './compose-store.ts';
import type { Terminal } from './terminal.ts';

export type Confirm = (message: string) => Promise<boolean>;

/**
 * What every command gets. Nearly all code of commands uses this instead of process.env and the streams of the process.
 */
export interface CommandContext {
  readonly environment: Environment;
  readonly terminal: Terminal;
  /** The standard input, in pieces of bytes or text. */
  readonly stdin?: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean };
  /**
   * Returns a function that asks the user a yes-or-no question; undefined without a terminal. `isDefault`: the answer
   * if the user only presses Enter; false if it is left out.
   */
  readonly asker?: (isDefault?: boolean) => Confirm | undefined;
  /** Opens the store in a data folder. Undefined for the commands of svc-service. */
  readonly openStore?: OpenStore;
}

/** One call of a command. */
export interface Call<Given extends object = object> {
  readonly context: CommandContext;
  readonly options: Given;
  readonly args: readonly string[];
}

/** Returns the path of svc's script, for processes that svc starts and clients that start svc. */
export function scriptPath(): string {
  return process.argv[1] ?? '';
}
