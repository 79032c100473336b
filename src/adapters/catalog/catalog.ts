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
import { join } from 'node:path';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { ensurePrivateFolder, isOwn } from '../files/private-folder.ts';
import { replaceFile } from '../files/replace-file.ts';
import { withFile } from '../projects/bounded-read.ts';

/**
 * The catalog of providers and their models. openCatalog() returns it without a network: from the cached copy, or else
 * from the snapshot in the package. If there is no copy, or it was last checked more than 24 hours ago, a newer one is
 * downloaded in the background. A failed download is ignored.
 */
export interface OpenCatalog {
  /** Returns the newest catalog that has been loaded. */
  providers(): readonly Provider[];
  /** Returns limits and prices of a model; undefined if no provider lists exactly this name. */
  factsOf(model: string): ModelFacts | undefined;
  /** Resolves when the background download has ended. */
  readonly settled: Promise<void>;
  close(): Promise<void>;
}

export interface CatalogOptions {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Opens a connection for the download; undefined: do not download. */
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
  // The age is negative if the clock was set back. Download the catalog then too.
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
    // If the cache cannot be written, the next process downloads the catalog again.
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
 * Returns facts by model. If several providers list a model, the entry with the longest context window counts:
 * resellers shorten windows, and a window assumed too short costs more than one assumed too long.
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
 * Returns the address to download from: that in $SVC_CATALOG_URL, which must be https or on this machine, or
 * CATALOG_URL if the variable is not set. Any other value, such as 'off', switches downloads off.
 */
function sourceUrl(environment: CatalogOptions['environment']): string | undefined {
  const own = environment['SVC_CATALOG_URL'];
  if (own === undefined || own === '') return CATALOG_URL;
  const isUsable = URL.canParse(own) && (own.startsWith('https://') || isOwnMachineUrl(own));
  return isUsable ? own : undefined;
}

/** Loads the snapshot in the package. It has 46 kB, so it is imported only if there is no cached copy. */
async function snapshot(): Promise<CatalogEntries> {
  const { default: value } = await import('./catalog-snapshot.json', { with: { type: 'json' } });
  return parseEntries(value) ?? {};
}

/** The last downloaded catalog in the cache folder. If it is lost, svc downloads it again. */
export interface CachedCatalog {
  readonly entries: CatalogEntries;
  /** The entity tag; '' if the source gave none. */
  readonly etag: string;
  /** When the source last confirmed or sent this catalog, in milliseconds since 1970. */
  readonly checkedAt: number;
}

const FILE_NAME = 'catalog.json';
/** Largest cache file that is read. The file has 560 kB in 2026. */
const BYTES_MAX = 16 * 1024 * 1024;

/** Reads the cached copy and validates it like a download; undefined if it cannot be used. */
export async function readCatalogCache(folder: string): Promise<CachedCatalog | undefined> {
  return withFile(join(folder, FILE_NAME), async (file, { uid, size }) => {
    if (!isOwn(uid) || size > BYTES_MAX) return undefined;
    const value: unknown = JSON.parse(await file.readFile('utf8'));
    if (!isRecord(value) || !Number.isFinite(value['checkedAt'])) return undefined;
    const entries = parseEntries(value);
    if (entries === undefined) return undefined;
    return { entries, etag: readEtag(value['etag']), checkedAt: Number(value['checkedAt']) };
  });
}

/** Writes the copy atomically, with mode 0600 from the start. Throws errors of the file system. */
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
