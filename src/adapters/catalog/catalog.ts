import {
  type CatalogEntries,
  parseEntries,
  type CatalogEntry,
  sourceOfFacts,
} from '../../core/settings/catalog-entries.ts';
import { isOwnMachineUrl } from '../../core/settings/own-machine.ts';
import { type Provider, providersOf } from '../../core/settings/catalog.ts';
import type { ModelFacts } from '../../core/settings/model-facts.ts';
import {
  CATALOG_URL,
  type Fetched,
  fetchCatalog,
  type OpenUpstream,
  readEtag,
} from './catalog-feed.ts';
import { constants } from 'node:fs';
import { type FileHandle, open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { ensurePrivateFolder, isOwn } from '../files/private-folder.ts';
import { replaceFile } from '../files/replace-file.ts';

/**
 * The catalog of providers, at once and without a network. It is the copy of the last 24 hours;
 * else an older copy or the snapshot of the package, while a newer one is fetched in the
 * background. Nothing here ever fails: without a network the snapshot is enough.
 */
export interface OpenCatalog {
  /** The newest that is there now. */
  providers(): readonly Provider[];
  /** The limits and prices of a model that its maker or a provider lists under exactly this name. */
  factsOf(model: string): ModelFacts | undefined;
  /** Settles when nothing newer is under way. */
  readonly settled: Promise<void>;
  /** Ends what is under way. */
  close(): Promise<void>;
}

export interface CatalogOptions {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Absent: the network is not asked. */
  readonly open?: OpenUpstream;
}

const FRESH_MS = 24 * 60 * 60 * 1000;

export async function openCatalog(options: CatalogOptions): Promise<OpenCatalog> {
  const { folder, environment, now, open } = options;
  const cached = await readCatalogCache(folder);
  let entries = cached?.entries ?? (await snapshot());
  let providers = providersOf(entries);
  let facts = factsByModel(entries);
  const url = sourceUrl(environment);
  const stop = new AbortController();
  // A clock that was set back makes an age below zero: not fresh either.
  const age = cached === undefined ? Infinity : now() - cached.checkedAt;
  const isFresh = age >= 0 && age < FRESH_MS;
  const refresh = async (): Promise<void> => {
    if (isFresh || url === undefined || open === undefined) return;
    const request = { url, etag: cached?.etag ?? '', environment, signal: stop.signal };
    const next = nextOf(await fetchCatalog(request, open), { cached, now: now() });
    if (next === undefined || stop.signal.aborted) return;
    entries = next.entries;
    providers = providersOf(entries);
    facts = factsByModel(entries);
    // A cache that cannot be written is a request more the next time.
    await writeCatalogCache(folder, next).catch(() => undefined);
  };
  const settled = refresh();
  return {
    providers: () => providers,
    factsOf: (model) => facts.get(model),
    settled,
    close: () => {
      stop.abort(new Error('The catalog is not wanted any more.'));
      return settled;
    },
  };
}

/**
 * Chooses among the providers that list a model the one with the longest window. Resellers shorten the window, and a window
 * that svc takes for too short costs more than one that it takes for too long.
 */
function factsByModel(entries: CatalogEntries): ReadonlyMap<string, ModelFacts> {
  const found = new Map<string, ModelFacts>();
  for (const { facts } of Object.values(entries)) {
    for (const [model, listed] of Object.entries(facts)) {
      if (listed.windowTokens > (found.get(model)?.windowTokens ?? 0)) found.set(model, listed);
    }
  }
  return found;
}

function nextOf(
  fetched: Fetched | undefined,
  { cached, now }: { readonly cached: CachedCatalog | undefined; readonly now: number },
): CachedCatalog | undefined {
  if (fetched === undefined) return undefined;
  if (fetched.kind === 'new') return { ...fetched, checkedAt: now };
  return cached === undefined ? undefined : { ...cached, checkedAt: now };
}

/**
 * $SVC_CATALOG_URL: a mirror by https or on this machine. 'off', or any other value, turns the
 * network off.
 */
function sourceUrl(environment: CatalogOptions['environment']): string | undefined {
  const own = environment['SVC_CATALOG_URL'];
  if (own === undefined || own === '') return CATALOG_URL;
  const isUsable = URL.canParse(own) && (own.startsWith('https://') || isOwnMachineUrl(own));
  return isUsable ? own : undefined;
}

// 46 kB that only setup needs: read when it is asked for.
async function snapshot(): Promise<CatalogEntries> {
  const { default: value } = await import('./catalog-snapshot.json', { with: { type: 'json' } });
  return parseEntries(value) ?? {};
}

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
  const handle = await openFile(join(folder, FILE_NAME), flags).catch(() => undefined);
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
