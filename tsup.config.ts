import { join } from 'node:path';
import { defineConfig } from 'tsup';

// One file per lazily loaded command group, with every dependency inside: a cold `svc config token`
// reads one small file instead of walking node_modules. Workers are entries of their own.
export default defineConfig({
  entry: {
    main: 'src/cli/main.ts',
    'store-worker': 'src/adapters/store/worker.ts',
    'zstd-worker': 'src/adapters/zstd-worker.ts',
  },
  format: 'esm',
  platform: 'node',
  target: 'node20',
  splitting: true,
  minify: true,
  sourcemap: false,
  clean: true,
  // Everything but the native addon, which finds its binaries next to its own package.
  noExternal: [/^(?!@photostructure\/sqlite|node:)/],
  external: ['@photostructure/sqlite', 'node:sqlite'],
  esbuildOptions(options) {
    options.alias = { undici: join(import.meta.dirname, 'undici-pool.cjs') };
  },
  // undici and fzstd are CommonJS inside: they call require() for Node's own modules.
  banner: {
    js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
  },
});
