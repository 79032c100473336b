// Makes what a release publishes, into `release/`: both tarballs, a bill of materials (CycloneDX) and the licences of
// the packages that each one bundles, and the digests of all. It publishes nothing: the workflow does, by
// `npm publish` of the very tarballs. Without --tag it is a dry run.
//
//   node scripts/release.mjs [--tag v0.1.3] [--out FOLDER]
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';

const root = join(import.meta.dirname, '..');
const { values } = parseArgs({ options: { tag: { type: 'string' }, out: { type: 'string' } } });
const out = values.out ?? join(root, 'release');

/** The largest tarball in bytes. Measured 2026-11-24: 1.38 and 0.61 MB. */
const TARBALL_BYTES_MAX = 2_500_000;
const NOTICES = 'dist/THIRD-PARTY-LICENSES.txt';
const PACKAGES = [
  { folder: root, name: 'svc-local-proxy' },
  { folder: join(root, 'service'), name: 'svc-service' },
];

try {
  release();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

function release() {
  const problems = problemsOf(values.tag);
  if (problems.length > 0) fail(problems.join('\n'));
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const everything = JSON.parse(run('npm', ['sbom', '--sbom-format', 'cyclonedx'], root));
  for (const { folder, name } of PACKAGES) pack(folder, name, everything);
  const files = readdirSync(out).toSorted(inOrder);
  const sums = files.map((file) => `${sha256(readFileSync(join(out, file)))}  ${file}`);
  writeFileSync(join(out, 'SHA256SUMS'), `${sums.join('\n')}\n`);
  for (const file of files) say(`${String(statSync(join(out, file)).size).padStart(9)}  ${file}`);
  say(values.tag === undefined ? 'Dry run: nothing is published.' : `Ready for ${values.tag}.`);
}

/** What keeps this tree from being the release of this tag. */
function problemsOf(tag) {
  const versions = PACKAGES.map(({ folder }) => manifestOf(folder).version);
  const [version] = versions;
  const found = [];
  if (new Set(versions).size > 1)
    found.push(`The packages differ in their versions: ${versions.join(', ')}.`);
  if (tag === undefined) return found;
  if (tag !== `v${version}`) found.push(`The tag is ${tag} and the version is ${version}.`);
  for (const { folder, name } of PACKAGES) {
    const log = readFileSync(join(folder, 'CHANGELOG.md'), 'utf8');
    if (!log.includes(`\n## ${version}`))
      found.push(`The CHANGELOG of ${name} has no section ${version}.`);
    if (log.includes('\n## Unreleased'))
      found.push(`The CHANGELOG of ${name} has changes under "Unreleased".`);
  }
  return found;
}

function pack(folder, name, everything) {
  const bundled = bundledBy(folder);
  writeFileSync(join(folder, NOTICES), bundled.map(noticeOf).join(''));
  const [packed] = JSON.parse(
    run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', out], folder),
  );
  if (packed.size > TARBALL_BYTES_MAX) fail(`${packed.filename} has ${packed.size} bytes.`);
  if (!packed.files.some(({ path }) => path === NOTICES))
    fail(`${packed.filename} has no licences.`);
  const { version, dependencies = {} } = manifestOf(folder);
  const shipped = [
    ...bundled.map(manifestOf),
    ...Object.entries(dependencies).map(([own, exact]) => ({ name: own, version: exact })),
  ].map((one) => `${one.name}@${one.version}`);
  const components = everything.components.filter((one) =>
    shipped.includes(`${one.name}@${one.version}`),
  );
  const missing = shipped.filter(
    (one) => !components.some((component) => `${component.name}@${component.version}` === one),
  );
  if (missing.length > 0) fail(`The bill of materials of ${name} lacks ${missing.join(', ')}.`);
  const id = { name, version, purl: `pkg:npm/${name}@${version}`, 'bom-ref': `${name}@${version}` };
  const metadata = { ...everything.metadata, component: { type: 'application', ...id } };
  const bill = { ...everything, metadata, components, dependencies: undefined };
  writeFileSync(
    join(out, `${name}-${version}.cdx.json`),
    `${JSON.stringify(bill, undefined, 2)}\n`,
  );
}

/** Builds the package, and returns the folders of the packages whose code is in its bundles, in order. */
function bundledBy(folder) {
  // Where tsup.config.ts puts them.
  const lists = join(root, '.bench', 'inputs', relative(root, folder));
  rmSync(lists, { recursive: true, force: true });
  run('npx', ['tsup', '--silent', '--metafile'], folder);
  const metafiles = readdirSync(lists, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.json'),
  );
  const folders = new Set();
  for (const file of metafiles) {
    const { inputs } = JSON.parse(readFileSync(join(lists, file), 'utf8'));
    for (const path of Object.keys(inputs)) {
      const [own] = /.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path) ?? [];
      if (own !== undefined) folders.add(join(folder, own));
    }
  }
  return [...folders].toSorted(inOrder);
}

function noticeOf(place) {
  const { name, version, license } = manifestOf(place);
  const file = readdirSync(place).find((one) => /^(?:licen[cs]e|copying)/i.test(one));
  const text =
    file === undefined ? `Licence: ${license}` : readFileSync(join(place, file), 'utf8').trim();
  return `${name} ${version}\n\n${text}\n\n${'-'.repeat(72)}\n\n`;
}

function inOrder(one, other) {
  return one < other ? -1 : 1;
}

function say(line) {
  process.stdout.write(`${line}\n`);
}

function manifestOf(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

function run(program, args, cwd) {
  const done = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    timeout: 300_000,
  });
  if (done.status !== 0) fail(`${program} ${args.join(' ')} failed:\n${done.stderr}`);
  return done.stdout;
}

function fail(problem) {
  throw new Error(problem);
}
