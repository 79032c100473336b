import { join } from 'node:path';
import { build } from 'tsup';

/** Bundles a TypeScript file of test/support, with the store's worker beside it; its path. */
export async function buildChild(name: string): Promise<string> {
  const root = join(import.meta.dirname, '..', '..');
  // Inside the package: the native driver is found through node_modules.
  const outDir = join(root, 'node_modules', '.cache', `svc-${name}-${process.pid}`);
  await build({
    config: false,
    silent: true,
    entry: {
      [name]: join(root, 'test', 'support', `${name}.ts`),
      'store-worker': join(root, 'src', 'adapters', 'store', 'worker.ts'),
    },
    outDir,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['@photostructure/sqlite'],
  });
  return join(outDir, `${name}.js`);
}
