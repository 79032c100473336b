import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type CatalogEntries,
  type CatalogEntry,
  parseEntries,
  sourceOfFacts,
} from '../../core/settings/catalog-entries.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { readEtag } from './catalog-feed.ts';
import { ensurePrivateFolder, isOwn } from '../files/private-folder.ts';
import { replaceFile } from '../files/replace-file.ts';

/** The catalog as it came last, in the folder for caches. Losing it costs one request. */
export interface CachedCatalog {
  readonly entries: CatalogEntries;
  /** '' where the source gave none. */
  readonly etag: string;
  /** When the source was last asked, milliseconds since 1970. */
  readonly checkedAt: number;
}

const FILE_NAME = 'catalog.json';
/** 560 kB in 2026. */
const BYTES_MAX = 16 * 1024 * 1024;

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** Undefined if there is no usable copy. The copy is validated like a fresh download. */
export async function readCatalogCache(folder: string): Promise<CachedCatalog | undefined> {
  const flags = O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);
  const handle = await open(join(folder, FILE_NAME), flags).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    return await readFrom(handle);
  } catch {
    return undefined;
  } finally {
    await handle.close();
  }
}

async function readFrom(handle: FileHandle): Promise<CachedCatalog | undefined> {
  const stat = await handle.stat();
  if (!stat.isFile() || !isOwn(stat.uid) || stat.size > BYTES_MAX) return undefined;
  const value: unknown = JSON.parse(await handle.readFile('utf8'));
  if (!isRecord(value) || !Number.isFinite(value['checkedAt'])) return undefined;
  const entries = parseEntries(value);
  if (entries === undefined) return undefined;
  return { entries, etag: readEtag(value['etag']), checkedAt: Number(value['checkedAt']) };
}

/** Whole or not at all, 0600 from the first byte. Throws what the file system throws. */
export async function writeCatalogCache(folder: string, catalog: CachedCatalog): Promise<void> {
  await ensurePrivateFolder(folder);
  const { entries, etag, checkedAt } = catalog;
  const providers = Object.fromEntries(
    Object.entries(entries).map(([id, entry]) => [id, { ...entry, facts: sourcesOf(entry) }]),
  );
  await replaceFile(join(folder, FILE_NAME), JSON.stringify({ checkedAt, etag, providers }));
}

function sourcesOf({ facts }: CatalogEntry): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(facts).map(([id, one]) => [id, sourceOfFacts(one)]));
}
