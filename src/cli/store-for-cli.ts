import { existsSync } from 'node:fs';
import { databaseFile } from '../adapters/store/database.ts';
import { openEmbeddedStore } from '../adapters/store/embedded-store.ts';
import type { Memory } from '../ports/memory.ts';
import type { RequestLog } from '../ports/request-log.ts';

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
  /** Which driver was loaded: Node's own or the package. */
  readonly driver: string;
  /** Undefined when there is nothing to report; else what is wrong, for people. */
  readonly problem?: string;
}

export type OpenStore = (dataFolder: string) => Promise<CliStore>;

export async function openStoreForCli(dataFolder: string): Promise<CliStore> {
  const store = openEmbeddedStore({ folder: dataFolder, report: ignore });
  return { memory: store.memory, requests: store.requestLog, close: () => store.close() };
}

/** Undefined where there is no store yet: looking must not make one. */
export async function inspectStore(dataFolder: string): Promise<StoreHealth | undefined> {
  if (!existsSync(databaseFile(dataFolder))) return undefined;
  const reported: string[] = [];
  const store = openEmbeddedStore({ folder: dataFolder, report: (line) => reported.push(line) });
  try {
    const { sqliteVersion, driver } = await store.health();
    const problem = reported[0];
    return { sqliteVersion, driver, ...(problem === undefined ? {} : { problem }) };
  } finally {
    await store.close();
  }
}

// A command that lists memories fails with its own error when the store cannot be used.
function ignore(): void {}
