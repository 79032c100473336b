// Makes src/adapters/catalog/catalog-snapshot.json, the list of providers that `svc setup` knows without a
// network, from a package of the registry:
//
//   node scripts/catalog-refresh.mjs                 the version named below
//   node scripts/catalog-refresh.mjs 1.72.0          another version
//
// The package is downloaded and unpacked into a temporary folder; nothing of it is run. Only facts
// are taken: names, addresses, names of variables, ids of models. Addresses that it lacks are in
// src/core/settings/catalog.ts.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PACKAGE = '@mastra/core';
const VERSION = process.argv[2] ?? '1.71.0';
const FILE = 'package/dist/provider-registry.json';
const TARGET = join(import.meta.dirname, '..', 'src', 'adapters', 'catalog-snapshot.json');
/** What the snapshot may add to the package that people install. */
const BYTES_MAX = 150_000;

/** Whose models people search for by name; of the others the address is enough. */
const WITH_MODELS = new Set([
  'alibaba',
  'anthropic',
  'cerebras',
  'cohere',
  'deepinfra',
  'deepseek',
  'fireworks-ai',
  'google',
  'groq',
  'minimax',
  'mistral',
  'moonshotai',
  'nvidia',
  'openai',
  'openrouter',
  'togetherai',
  'xai',
  'zai',
]);

const folder = mkdtempSync(join(tmpdir(), 'svc-catalog-'));
try {
  const packed = execFileSync('npm', ['pack', `${PACKAGE}@${VERSION}`, '--silent'], {
    cwd: folder,
    encoding: 'utf8',
  });
  execFileSync('tar', ['xzf', packed.trim(), FILE], { cwd: folder });
  const registry = JSON.parse(readFileSync(join(folder, FILE), 'utf8'));
  const text = snapshotOf(registry.providers);
  if (Buffer.byteLength(text) > BYTES_MAX) throw new Error(`The snapshot is over ${BYTES_MAX} B.`);
  writeFileSync(TARGET, text);
  process.stderr.write(`${TARGET}: ${Buffer.byteLength(text)} bytes\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** One provider a line, so that a refresh can be read as a diff. */
function snapshotOf(providers) {
  const lines = Object.keys(providers)
    .toSorted()
    .map((id) => `    ${JSON.stringify(id)}: ${JSON.stringify(entryOf(id, providers[id]))}`);
  const source = `${PACKAGE} ${VERSION}, provider-registry.json (Apache-2.0): facts only`;
  return `{\n  "source": ${JSON.stringify(source)},\n  "providers": {\n${lines.join(',\n')}\n  }\n}\n`;
}

function entryOf(id, { name, apiKeyEnvVar, url, npm, models }) {
  return {
    name,
    env: [apiKeyEnvVar].flat(),
    ...(url === undefined ? {} : { api: url }),
    ...(npm === undefined ? {} : { npm }),
    ...(WITH_MODELS.has(id) ? { models } : {}),
  };
}
