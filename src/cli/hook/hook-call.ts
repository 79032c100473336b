import type { Readable } from 'node:stream';
import type { Environment } from '../../core/settings/config-values.ts';
import type { HookStore, HookStoreOptions } from '../compose-hook.ts';

/** One run of `svc hook`. */

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
  /** Milliseconds for everything up to the answer; absent: as long as a person may wait. */
  readonly wholeMs?: number;
}

/** What is still to be closed after the answer. */
export type Close = () => Promise<void>;
