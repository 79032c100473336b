import type { Memory } from '../ports/memory.ts';
import type { RequestLog } from '../ports/request-log.ts';
import { CliError } from './cli-error.ts';

/** The store as commands see it, beside a proxy that may be running on it. */
export interface CliStore {
  readonly memory: Memory;
  readonly requests: RequestLog;
  close(): Promise<void>;
}

/** What doctor tells of the store. */
export interface StoreHealth {
  /** The release of SQLite that the driver brings. */
  readonly sqliteVersion: string;
  readonly driver: 'builtin' | 'package';
  /** Undefined when there is nothing to report; else what is wrong, for people. */
  readonly problem?: string;
}

export type OpenStore = (dataFolder: string) => Promise<CliStore>;

export async function openStoreForCli(_dataFolder: string): Promise<CliStore> {
  throw new CliError('This build has no memory store in it.', 'Use a released version of svc.');
}

/** Does not make a store where there is none. */
export async function inspectStore(_dataFolder: string): Promise<StoreHealth> {
  throw new CliError('This build has no memory store in it.', 'Use a released version of svc.');
}
