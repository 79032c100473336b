import type { Readable } from 'node:stream';
import type { Environment } from '../../core/settings/config-values.ts';
import type { HookStore, HookStoreOptions } from '../compose-hook.ts';

/** The third argument of `svc hook` in a background process, for which no user waits. */
export const IN_BACKGROUND = '--background';

export interface HookCall {
  readonly client: string;
  readonly event: string;
  readonly stdin: Readable;
  readonly environment: Environment;
}

export interface HookParts {
  print(answer: string): Promise<void>;
  /** Opens the memory for the hook; undefined: use openHookStore(). */
  openStore?(options: HookStoreOptions): Promise<HookStore>;
  /** Deadline of the whole hook in milliseconds; undefined: that of a hook for which the user waits. */
  readonly wholeMs?: number;
}

/**
 * How a hook has ended. `done`: nothing is left to do. `late`: another program holds a lock, so the exchanges are not
 * stored yet, and a background process must store them. A function: the caller must call it, to close the store.
 */
export type HookEnd = 'done' | 'late' | (() => Promise<void>);
