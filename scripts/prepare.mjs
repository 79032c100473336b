// npm runs this as `prepare`: after `npm ci` and `npm install` in a clone, for `npm pack`, for
// `npm install -g .` and when the package is installed from a git URL. It builds dist where it is
// missing or older than the sources. It never runs for a package from the registry.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const SOURCES = ['src', 'package.json', 'package-lock.json', 'tsup.config.ts'];
/** The last file of each of the two sets of bundles. */
const BUILT = ['dist/main.js', 'dist/quick/start.cjs'];
/** Set for the `npm ci` below, which would otherwise run this file again. */
const GUARD = 'SVC_PREPARING';

/** Set by `npm install -g`. Passed on, they would make the inner `npm ci` a global one, which npm refuses. */
const OF_OUTER_NPM = /^npm_config_(?:global|location|prefix|local_prefix|save)/i;

if (process.env[GUARD] !== '1' && !isBuilt()) build();

function build() {
  const bundler = join(root, 'node_modules', 'tsup', 'dist', 'cli-default.js');
  const own = Object.entries(process.env).filter(([name]) => !OF_OUTER_NPM.test(name));
  const env = { ...Object.fromEntries(own), [GUARD]: '1' };
  // `npm install -g .` links a clone whose own packages may not be installed yet.
  if (!existsSync(bundler)) run(process.execPath, [join('scripts', 'ensure-installed.mjs')], env);
  run(process.execPath, [bundler, '--silent'], env);
}

function run(program, args, env) {
  // npm pack --json prints its result on stdout, so everything here goes to stderr.
  const options = { cwd: root, env, stdio: ['ignore', process.stderr, 'inherit'] };
  const { status } = spawnSync(program, args, options);
  if (status === 0) return;
  process.stderr.write('svc could not be built. To see why, run: npm ci && npm run build\n');
  process.exit(1);
}

function isBuilt() {
  const built = BUILT.map((name) => join(root, name));
  if (!built.every((path) => existsSync(path))) return false;
  const oldest = Math.min(...built.map((path) => statSync(path).mtimeMs));
  return SOURCES.every((name) => newestIn(join(root, name)) <= oldest);
}

function newestIn(path) {
  const own = statSync(path).mtimeMs;
  if (!statSync(path).isDirectory()) return own;
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return Math.max(own, ...names.map((name) => statSync(join(path, name)).mtimeMs));
}
