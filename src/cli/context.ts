import type { Environment } from '../core/settings/config-values.ts';
import type { OpenStore } from './compose-store.ts';
import type { Terminal } from './terminal.ts';

/** Asks a person. */
export type Confirm = (message: string) => Promise<boolean>;

/** The dependencies of every command: it touches neither process.env nor a stream by itself. */
export interface CommandContext {
  readonly environment: Environment;
  readonly terminal: Terminal;
  /** For the commands that read something; bytes or text in pieces. */
  readonly stdin?: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean };
  /** Returns a function that asks a person on the terminal; undefined without a terminal. `isDefault`: the Enter key. */
  readonly asker?: (isDefault?: boolean) => Confirm | undefined;
  /** Opens the store in a data folder; undefined for the commands of other programs. */
  readonly openStore?: OpenStore;
}

/** One call of a command. */
export interface Call<Given extends object = object> {
  readonly context: CommandContext;
  readonly options: Given;
  /** All arguments in their order. */
  readonly args: readonly string[];
}

/** The script of this very program, for a process that it starts and for clients that call it. */
export function scriptPath(): string {
  return process.argv[1] ?? '';
}
