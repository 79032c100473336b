import type { Readable } from 'node:stream';
import type { Environment } from '../../core/settings/config-values.ts';
import type { HookStore, HookStoreOptions } from '../compose-hook.ts';

/** The third argument of a `svc hook` that runs in the background, while no user waits. */
export const IN_BACKGROUND = '--background';

export interface HookCall {
  readonly client: string;
  readonly event: string;
  readonly stdin: Readable;
  readonly environment: Environment;
}

export interface HookParts {
  print(answer: string): Promise<void>;
  /** Opens the memory for the hook; undefined: openHookStore(). */
  openStore?(options: HookStoreOptions): Promise<HookStore>;
  /** Deadline of the whole hook in milliseconds; undefined: the time that a user may wait. */
  readonly wholeMs?: number;
}

/**
 * How a hook has ended. `done`: nothing is left to do. `late`: the exchanges are not stored yet, because another
 * program holds a lock, so a background process must store them. A function: call it to close the store that the hook
 * has opened.
 */
export type HookEnd = 'done' | 'late' | (() => Promise<void>);
