import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Options } from 'tsup';

// Not import.meta.dirname: the configuration of the service imports this file, and is bundled with it.
const ROOT = dirname(fileURLToPath(import.meta.url));

// svc speaks HTTP/1.1 to providers, whatever they offer. Loading Node's own HTTP/2 for undici takes
// 4 ms of every start.
const withoutHttp2: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'without-http2',
  setup(build) {
    const contents = "module.exports = () => { throw new Error('HTTP/2 is not spoken here.'); };";
    const isMeant = /[\\/]undici[\\/]lib[\\/]dispatcher[\\/]client-h2\.js$/;
    build.onLoad({ filter: isMeant }, () => ({ contents }));
  },
};

/** The same in every bundle, and for the same sources and packages. */
export function buildDigest(sources: readonly string[], manifest: string): string {
  const hash = createHash('sha256');
  for (const source of sources.map((folder) => join(ROOT, folder))) {
    const names = readdirSync(source, { recursive: true, encoding: 'utf8' });
    const files = names.filter((name) => /\.(?:ts|cjs|json)$/.test(name)).toSorted();
    for (const name of files) hash.update(`${name}\n`).update(readFileSync(join(source, name)));
  }
  return hash
    .update(readFileSync(join(ROOT, manifest)))
    .digest('base64url')
    .slice(0, 12);
}

/**
 * `npm install -g .` links the clone, so its dist is the installed program: it must be whole at every moment.
 * What is built is moved file by file, each by one rename. A command reads its entry first, so the entries
 * (names without a hash) go last.
 */
export function moveTo(part: string, options: Options, product = ''): Options {
  // Each build has a folder of its own, so that two at once do not write into each other's.
  const next = join(ROOT, product, '.dist-next', String(process.pid));
  const from = join(next, part === '' ? 'main' : part);
  const to = join(ROOT, product, 'dist', part);
  return {
    ...options,
    outDir: from,
    onSuccess: async () => {
      const names = filesIn(from).toSorted((one, other) => hashLength(other) - hashLength(one));
      for (const name of names) {
        // What `tsup --metafile` says of the inputs is for scripts/release.mjs, and is never packed.
        const isList = name.startsWith('metafile-');
        const place = isList ? join(ROOT, '.bench', 'inputs', product, part, name) : join(to, name);
        mkdirSync(dirname(place), { recursive: true });
        renameSync(join(from, name), place);
      }
      for (const name of filesIn(to)) {
        const isOther = part === '' && /^(?:quick|ui)[\\/]/.test(name);
        if (!isOther && !names.includes(name)) rmSync(join(to, name), { force: true });
      }
      rmSync(from, { recursive: true, force: true });
      if (readdirSync(next).length === 0) rmSync(next, { recursive: true, force: true });
    },
  };
}

function filesIn(folder: string): string[] {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** 8 characters behind the last dash; 0 for an entry. */
function hashLength(name: string): number {
  return /-([A-Z0-9]{8})\.js$/.exec(name)?.[1]?.length ?? 0;
}

const PLAIN_ASSERT = join(ROOT, 'src/adapters/network/assert.cjs');

const common: Options = {
  define: { SVC_BUILD: JSON.stringify(buildDigest(['src'], 'package.json')) },
  platform: 'node',
  target: 'node20',
  minify: true,
  sourcemap: false,
  // Everything but the native addon, which finds its binaries next to its own package.
  noExternal: [/^(?!@photostructure\/sqlite|node:)/],
  external: ['@photostructure/sqlite', 'node:sqlite'],
  // tsup would resolve `node:assert` before the alias below.
  removeNodeProtocol: false,
  esbuildPlugins: [withoutHttp2],
  esbuildOptions(options) {
    options.alias = {
      undici: join(ROOT, 'src/adapters/network/undici-pool.cjs'),
      'node:assert': PLAIN_ASSERT,
      assert: PLAIN_ASSERT,
      // Its other build finds its own files by a require that no bundler can follow.
      'jsonc-parser': 'jsonc-parser/lib/esm/main.js',
    };
  },
};

// One letter beyond Latin-1 makes V8 hold the whole file in two bytes a letter. esbuild escapes such letters in strings,
// so they are left in patterns and comments alone, where an escape means the same.
const inAscii: NonNullable<Options['plugins']>[number] = {
  name: 'in-ascii',
  renderChunk(code) {
    return { code: code.replaceAll(/[^\0-\x7f]/g, escaped) };
  },
};

function escaped(unit: string): string {
  return String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

// conf comes with a compiler of JSON schemas, a quarter of all code of svc, and is needed once: to
// write the first configuration.
const withoutConf: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'without-conf',
  setup(build) {
    const contents = "module.exports = require('./conf.cjs').default";
    build.onResolve({ filter: /^conf$/ }, ({ path }) => ({ path, namespace: 'later' }));
    build.onLoad({ filter: /^conf$/, namespace: 'later' }, () => ({ contents }));
    build.onResolve({ filter: /^\.\/conf\.cjs$/ }, ({ path }) => ({ path, external: true }));
  },
};

// Where the proxy runs is code for `svc print-config` alone. A client that
// asks for the token again and again does not pay for it.
const LATER = ['running-access'];
const withoutLater: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'without-later',
  setup(build) {
    for (const name of LATER) {
      build.onResolve({ filter: new RegExp(`/${name}\\.ts$`) }, ({ kind }) =>
        kind === 'entry-point' ? undefined : { path: `./${name}.cjs`, external: true },
      );
    }
  },
};

// The page's server is loaded when somebody asks for the page first, and the catalog of models when a request names a
// model that svc does not know.
// The store is loaded by a hook only where no proxy runs, and the HTTP client only where the memory is a service.
const ASKED_FOR = [
  [/\/compose-ui\.ts$/, 'ui'],
  [/\/served-catalog\.ts$/, 'catalog'],
  [/\/answer-from-store\.ts$/, 'hook-store'],
  [/^undici$/, 'undici'],
] as const;
const withoutAskedFor: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'without-asked-for',
  setup(build) {
    for (const [filter, file] of ASKED_FOR) {
      build.onResolve({ filter }, ({ kind }) =>
        kind === 'entry-point' ? undefined : { path: `./${file}.cjs`, external: true },
      );
    }
  },
};

/** One file per lazily loaded command group, with every dependency inside: nothing walks node_modules. */
export const commands: Options = {
  ...common,
  format: 'esm',
  splitting: true,
  // undici and fzstd are CommonJS inside: they call require() for Node's own modules.
  banner: {
    js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
  },
};

/** One file for each entry. */
export const standalone: Options = {
  ...common,
  format: 'cjs',
  // For import.meta.url.
  shims: true,
  splitting: false,
  esbuildOptions(options, context) {
    common.esbuildOptions?.(options, context);
    // A name with an alias never comes to a plugin.
    delete options.alias?.['undici'];
    // require() instead: import() would load the loader of ES modules.
    options.supported = { ...options.supported, 'dynamic-import': false };
  },
  esbuildPlugins: [withoutHttp2, withoutConf, withoutLater, withoutAskedFor],
  plugins: [inAscii],
};

export default defineConfig([
  moveTo('', { ...commands, entry: { main: 'src/cli/main.ts' } }),
  // The commands that clients run all the time, and `svc start` with its workers: one file each, and
  // none of the loader of ES modules, which alone costs 7 ms of CPU in every thread.
  moveTo('quick', {
    ...standalone,
    entry: {
      quick: 'src/cli/program/quick.ts',
      start: 'src/cli/program/quick-start.ts',
      statusline: 'src/cli/program/quick-statusline.ts',
      hook: 'src/cli/program/quick-hook.ts',
      'hook-store': 'src/cli/hook/answer-from-store.ts',
      'running-access': 'src/cli/clients/running-access.ts',
      ui: 'src/cli/compose-ui.ts',
      undici: 'src/adapters/network/undici-pool.cjs',
      catalog: 'src/adapters/catalog/served-catalog.ts',
      conf: 'node_modules/conf/dist/source/index.js',
      'store-worker': 'src/adapters/store/worker.ts',
      'zstd-worker': 'src/adapters/encoding/zstd-worker.ts',
    },
  }),
  // The page. Its files' names hold a hash of their content, so that a browser may keep them for ever.
  moveTo('ui', {
    entry: { app: 'src/ui/main.tsx' },
    tsconfig: 'src/ui/tsconfig.json',
    platform: 'browser',
    target: 'es2022',
    format: 'iife',
    minify: true,
    sourcemap: false,
    splitting: false,
    noExternal: [/./],
    outExtension: () => ({ js: '.js' }),
    esbuildOptions(options) {
      options.entryNames = '[name]-[hash]';
      options.legalComments = 'none';
    },
  }),
]);
