import { join } from 'node:path';
import { build, type Options } from 'tsup';

const WORKERS = {
  'store-worker': { product: '', file: 'src/adapters/store/worker.ts' },
  'service-store-worker': { product: 'service', file: 'src/adapters/service-store/worker.ts' },
} as const;

/** Bundles a TypeScript file of the product's test/support, with its store's worker where it looks for it; its path. */
export async function buildChild(
  name: string,
  workerName: keyof typeof WORKERS = 'store-worker',
): Promise<string> {
  const root = join(import.meta.dirname, '..', '..');
  // Inside the package: the native driver is found through node_modules.
  const outDir = join(root, 'node_modules', '.cache', `svc-${name}-${process.pid}`);
  const shared = {
    config: false,
    silent: true,
    outDir,
    platform: 'node',
    target: 'node20',
    external: ['@photostructure/sqlite'],
  } satisfies Options;
  const { product, file } = WORKERS[workerName];
  const entry = { [name]: join(root, product, 'test', 'support', `${name}.ts`) };
  await build({ ...shared, entry, format: 'esm' });
  const worker = join(root, product, file);
  // With shims for import.meta.url.
  await build({
    ...shared,
    entry: { [`quick/${workerName}`]: worker },
    format: 'cjs',
    shims: true,
  });
  return join(outDir, `${name}.js`);
}
