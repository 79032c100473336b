// Says what svc understands of recorded requests, one JSON line a file:
//
//   node scripts/classify.mjs FILE…                  files of the form of test/recordings/
//   node scripts/classify.mjs test/recordings/codex-0.169.0/compact/*.json
//
// A line has the file, the client, the kind of the request, its session, the project folder that the
// client states, the space that its memories belong to, and the texts that a person typed. Of a
// request that memory does not act on no text counts as typed. `error` stands for what svc cannot
// read; the exit code is then 1. Nothing is sent, and nothing is stored.
import { readFileSync } from 'node:fs';
import { buildProduct } from '../bench/lib/product.mjs';

const MODULES = {
  clients: 'src/core/request/clients.ts',
  dialects: 'src/core/dialects/dialects.ts',
  identity: 'src/core/request/identity.ts',
  space: 'src/core/request/space.ts',
  view: 'test/support/view-of.ts',
};

process.exitCode = await run(process.argv.slice(2));

async function run(files) {
  if (files.length === 0) {
    process.stderr.write('usage: node scripts/classify.mjs FILE…\n');
    return 2;
  }
  const { modules, remove } = await buildProduct(MODULES);
  try {
    const lines = files.map((file) => classify(file, modules));
    for (const line of lines) process.stdout.write(`${JSON.stringify(line)}\n`);
    return lines.some((line) => 'error' in line) ? 1 : 0;
  } finally {
    remove();
  }
}

function classify(file, { clients, dialects, identity, space, view: views }) {
  try {
    const { request } = JSON.parse(readFileSync(file, 'utf8'));
    const { path = '', body } = request;
    const headers = request.headers.flat();
    const dialect = dialectOf(path, dialects.DIALECT_DESCRIPTORS);
    if (dialect === undefined || typeof body !== 'object' || body === null) {
      const client = identity.clientOfHeaders(headers);
      return lineOf(file, { client, kind: identity.kindOfPath(path) ?? 'relayed' });
    }
    const view = views.viewRequest(Buffer.from(JSON.stringify(body)), dialect);
    if (view === undefined) return { file, error: 'svc cannot read the body' };
    const { client, kind: found, session } = identity.identify(dialect, headers, view);
    const { folder } = identity.projectOf(headers, view, client);
    const { statesFolder } = clients.clientFacts(client);
    const kind = identity.kindOfPath(path) ?? found;
    const typed = view.items.map(({ humanText }) => humanText).filter((text) => text !== '');
    return lineOf(file, {
      client,
      kind,
      session,
      project: folder ?? null,
      space: space.spaceOf(headers, { folder, client, statesFolder }),
      typed: kind === 'main' ? typed : [],
    });
  } catch (error) {
    return { file, error: error.message };
  }
}

/** `human` is the same as `typed`: test/recordings/golden-human-text.json calls it so. */
function lineOf(file, { client, kind, session = '', project = null, space = null, typed = [] }) {
  return { file, client, kind, session, project, space, typed, human: typed };
}

/** The dialect whose model path the recorded one is, or begins with. */
function dialectOf(path, descriptors) {
  const [plain] = path.split('?');
  return descriptors.find(({ modelPath }) => {
    const end = modelPath.slice('/v1'.length);
    return plain.endsWith(end) || plain.includes(`${end}/`);
  })?.name;
}
