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

/** `late`: what was said is not kept yet. A function closes what the answer has opened. */
export type HookEnd = 'done' | 'late' | (() => Promise<void>);
