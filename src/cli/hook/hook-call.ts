import type { Readable } from 'node:stream';
import type { Environment } from '../../core/settings/config-values.ts';
import type { HookStore, HookStoreOptions } from '../compose-hook.ts';

/** One run of `svc hook`. */

/** The third argument of a hook that was handed over: nobody waits for it. */
export const IN_BACKGROUND = '--background';

export interface HookCall {
  readonly client: string;
  readonly event: string;
  readonly stdin: Readable;
  readonly environment: Environment;
  /** This program. */
  readonly script: string;
}

export interface HookParts {
  print(answer: string): Promise<void>;
  /** Absent: the one of this machine. */
  openStore?(options: HookStoreOptions): Promise<HookStore>;
  /** Milliseconds for everything; absent: as long as a person may wait. */
  readonly wholeMs?: number;
}

/**
 * How a hook has ended. `done`: nothing is left to do. `late`: the words of the session are not stored yet, because
 * another program holds a lock, so a hook in the background stores them. A function: call it to close the store that
 * the hook has opened.
 */
export type HookEnd = 'done' | 'late' | (() => Promise<void>);
