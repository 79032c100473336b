import type { Environment } from '../core/settings/config-values.ts';
import type { OpenStore } from './compose-store.ts';
import type { Terminal } from './terminal.ts';

/** The dependencies of every command: it touches neither process.env nor a stream by itself. */
export interface CommandContext {
  readonly environment: Environment;
  readonly terminal: Terminal;
  /** For the commands that read something; bytes or text in pieces. */
  readonly stdin?: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean };
  /** Another store than that of the data folder: the one that a proxy has open already. */
  readonly openStore?: OpenStore;
}
