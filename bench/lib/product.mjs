/**
 * The product's own modules, built from src as they are now. Node 20 reads no TypeScript, and the
 * store's worker has to lie where the module looks that starts it, so they are built into one folder.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'tsup';

const root = join(import.meta.dirname, '..', '..');

/**
 * `entries`: modules by name, as paths from the repository's root. `changes`: places of source
 * files that are others in this build.
 */
export async function buildProduct(entries, changes = []) {
  builds += 1;
  const outDir = join(root, '.bench', `product-${process.pid}-${builds}`);
  const isWorker = ([name]) => name.endsWith('-worker');
  const workers = Object.entries(entries).filter(isWorker);
  const imported = Object.entries(entries).filter((entry) => !isWorker(entry));
  const shared = {
    config: false,
    silent: true,
    outDir,
    platform: 'node',
    target: 'node20',
    noExternal: [/^(?!@photostructure\/sqlite|node:|pg$)/],
    // What asks for modules while it runs cannot be a part of an ES module.
    external: ['@photostructure/sqlite', 'node:sqlite', 'pg'],
    esbuildPlugins: [changing(changes)],
  };
  await build({
    ...shared,
    clean: true,
    entry: Object.fromEntries(imported.map(([name, path]) => [name, join(root, path)])),
    format: 'esm',
    splitting: true,
    // Where the test helpers look for the recordings.
    define: { 'import.meta.dirname': JSON.stringify(join(root, 'test', 'support')) },
  });
  if (workers.length > 0) {
    await build({
      ...shared,
      entry: Object.fromEntries(workers.map(([name, path]) => [`quick/${name}`, join(root, path)])),
      format: 'cjs',
      // For import.meta.url.
      shims: true,
    });
  }
  const modules = {};
  for (const [name] of imported) modules[name] = await import(join(outDir, `${name}.js`));
  return { modules, remove: () => rmSync(outDir, { recursive: true, force: true }) };
}

/** A module is loaded once by its path, so each build has its own. */
let builds = 0;

/** One plugin for all: only the first one that answers for a file is heard. */
function changing(changes) {
  return {
    name: 'changing',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const own = changes.filter(({ file }) => path === join(root, file));
        if (own.length === 0) return undefined;
        return { contents: own.reduce(changed, readFileSync(path, 'utf8')), loader: 'ts' };
      });
    },
  };
}

/** Throws unless there is exactly one such place. */
function changed(source, { file, from, to }) {
  const parts = source.split(from);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${from}`);
  return parts.join(to);
}

/** A store of its own for one measurement, gone afterwards. */
export async function withStore(modules, work) {
  const { folder, remove } = makeStoreFolder();
  try {
    return await withStoreIn(folder, modules, work);
  } finally {
    remove();
  }
}

/** A folder for stores that are opened one after the other. */
export function makeStoreFolder() {
  const parent = join(root, '.bench');
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, 'store-'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export async function withStoreIn(folder, { store }, work) {
  const report = (line) => process.stderr.write(`# ${line}\n`);
  const opened = store.openEmbeddedStore({ folder, report });
  try {
    return await work(opened, folder);
  } finally {
    await opened.close();
  }
}
