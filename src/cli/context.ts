import type { Environment } from '../core/settings/config-values.ts';
import type { OpenStore } from './compose-store.ts';
import type { Terminal } from './terminal.ts';

export type Confirm = (message: string) => Promise<boolean>;

/** What every command gets, so that it uses neither process.env nor a stream directly. */
export interface CommandContext {
  readonly environment: Environment;
  readonly terminal: Terminal;
  /** Input for commands that read something: bytes or text in pieces. */
  readonly stdin?: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean };
  /**
   * Returns a function that asks the user on the terminal; undefined without a terminal. `isDefault` is the answer
   * when the user only presses Enter.
   */
  readonly asker?: (isDefault?: boolean) => Confirm | undefined;
  /** Opens the store in a data folder; undefined for other programs' commands. */
  readonly openStore?: OpenStore;
}

/** One call of a command. */
export interface Call<Given extends object = object> {
  readonly context: CommandContext;
  readonly options: Given;
  readonly args: readonly string[];
}

/** Returns the path of this program, for processes that it starts and clients that call it. */
export function scriptPath(): string {
  return process.argv[1] ?? '';
}
