import { lstatSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databaseFile, stateFile } from '../adapters/files/database-file.ts';
import { readConfigFile } from '../adapters/files/config-file.ts';
import { configFolder } from '../adapters/files/own-folders.ts';
import type { HostedSettings } from '../adapters/memory-client/open-hosted-memory.ts';
import { CodeFiles } from '../adapters/projects/code-files.ts';
import { readOutputFile } from '../adapters/files/output-files.ts';
import { type EmbeddedStore, openEmbeddedStore } from '../adapters/store/embedded-store.ts';
import { rememberOwnSecrets } from '../core/redaction/own-secrets.ts';
import { parseAccess, parseMemory, soundUpstreams } from '../core/settings/config-schema.ts';
import type { Environment } from '../core/settings/config-values.ts';
import { ownSecretsOf } from '../core/settings/own-secrets.ts';
import type { MemorySettings } from '../core/settings/settings.ts';
import type { Code, ProvenanceStore } from '../ports/provenance.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { LocalStore } from '../ports/local-store.ts';
import type { MemoryDesk } from '../ports/memory-desk.ts';
import type { Memory } from '../ports/memory.ts';
import type { RequestLog } from '../ports/request-log.ts';
import { configError } from './setup/load-config.ts';

/** The store as commands use it. A running proxy may have the same files open. */
export interface CliStore {
  readonly memory: Memory;
  readonly requests: RequestLog;
  readonly ledger: Ledger;
  /** Reads the files that memories are about; undefined with a memory service, which does not know these files. */
  readonly code?: { readonly reader: Code; readonly provenance: ProvenanceStore } | undefined;
  /** The operations for managing memories; undefined with a memory service. */
  readonly desk?: MemoryDesk | undefined;
  /** Reads a left-out output from its file in `outputs/`, which works even where the database cannot be opened. */
  readOutput(ref: string): string | undefined;
  close(): Promise<void>;
}

export interface StoreOptions {
  /** Leads to the configuration, which may name a memory service. Undefined: open only the store on this machine. */
  readonly environment?: Environment;
  /** True if the command only reads: if there is no store, it gets an empty temporary one. */
  readonly isReader?: boolean;
  /** Tells the user something while the command continues, for example that a damaged file was renamed. */
  readonly report: (line: string) => void;
}

export type OpenStore = (dataFolder: string, options: StoreOptions) => Promise<CliStore>;

export async function openStoreForCli(
  dataFolder: string,
  { environment, isReader, report }: StoreOptions,
): Promise<CliStore> {
  const settings = environment === undefined ? undefined : await memorySettings(environment);
  const temporary = isReader === true && hasNoStore(dataFolder) ? temporaryFolder() : undefined;
  const store = openEmbeddedStore({ folder: temporary ?? dataFolder, report });
  const hosted =
    settings?.kind === 'hosted' ? await openHosted(settings, store, report) : undefined;
  return {
    memory: hosted?.memory ?? store.memory,
    requests: store.requestLog,
    ledger: store.ledger,
    code:
      hosted === undefined ? { reader: new CodeFiles(), provenance: store.provenance } : undefined,
    desk: hosted === undefined ? store.desk : undefined,
    readOutput: (ref) => readOutputFile(dataFolder, ref),
    close: async () => {
      await hosted?.close();
      await store.close();
      if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
    },
  };
}

/** Says whether the folder has no store. False on an error, which opening the store then reports. */
function hasNoStore(folder: string): boolean {
  try {
    if (!isThere(folder)) return true;
    return (
      statSync(folder).isDirectory() &&
      !isThere(databaseFile(folder)) &&
      !isThere(stateFile(folder))
    );
  } catch {
    return false;
  }
}

/** Says whether something is at the path, even a link whose target is missing. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Makes a temporary folder for an empty store; undefined if there is no place for temporary files. */
function temporaryFolder(): string | undefined {
  try {
    return mkdtempSync(join(tmpdir(), 'svc-empty-'));
  } catch {
    return undefined;
  }
}

/** Deadline of a recall for which a user waits at the command line, in milliseconds. */
const RECALL_MS = 10_000;

async function openHosted(
  settings: HostedSettings,
  { memory: mirror }: EmbeddedStore,
  report: StoreOptions['report'],
) {
  const { openHostedMemory } = await import('../adapters/memory-client/open-hosted-memory.ts');
  return openHostedMemory({ settings, recallMs: RECALL_MS, mirror, report });
}

/**
 * Returns the settings of the memory; undefined without a configuration. Throws CliError or FileError if they cannot be
 * read, because they may name a memory service.
 */
async function memorySettings(environment: Environment): Promise<MemorySettings | undefined> {
  const file = await readConfigFile(configFolder(environment));
  if (file === undefined) return undefined;
  const { access } = parseAccess(file.value, environment);
  const { memory, problems } = parseMemory(file.value, environment);
  // An upstream whose key is a variable that is not set here must not leave the keys of the others unmasked.
  const upstreams = soundUpstreams(file.value, environment);
  rememberOwnSecrets(ownSecretsOf({ ...access, ...(memory && { memory }), upstreams }));
  if (memory === undefined) throw configError(file.path, problems);
  return memory;
}

/** Opens the store on this machine, even if the configuration names a memory service. */
export function openLocalStore(folder: string, report: (line: string) => void): LocalStore {
  return openEmbeddedStore({ folder, report });
}
