/**
 * The product's own modules, built from src as they are now. Node 20 reads no TypeScript, and the
 * store's worker has to lie beside the module that starts it, so they are built into one folder.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'tsup';

const root = join(import.meta.dirname, '..', '..');

/** `entries`: modules by name, as paths from the repository's root. */
export async function buildProduct(entries) {
  const outDir = join(root, '.bench', `product-${process.pid}`);
  await build({
    config: false,
    silent: true,
    clean: true,
    entry: Object.fromEntries(
      Object.entries(entries).map(([name, path]) => [name, join(root, path)]),
    ),
    outDir,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    splitting: true,
    // Where the test helpers look for the recordings.
    define: { 'import.meta.dirname': JSON.stringify(join(root, 'test', 'support')) },
    noExternal: [/^(?!@photostructure\/sqlite|node:)/],
    external: ['@photostructure/sqlite', 'node:sqlite'],
  });
  const modules = {};
  for (const name of Object.keys(entries)) {
    if (!name.endsWith('-worker')) modules[name] = await import(join(outDir, `${name}.js`));
  }
  return { modules, remove: () => rmSync(outDir, { recursive: true, force: true }) };
}

/** A store of its own for one measurement, gone afterwards. */
export async function withStore({ store }, work) {
  const parent = join(root, '.bench');
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, 'store-'));
  const report = (line) => process.stderr.write(`# ${line}\n`);
  const opened = store.openEmbeddedStore({ folder, report });
  try {
    return await work(opened, folder);
  } finally {
    await opened.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
