import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createPlainServer } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { ServedCatalog } from '../../src/adapters/catalog/served-catalog.ts';
import { openCatalog, type OpenCatalog } from '../../src/adapters/catalog/catalog.ts';
import type { OpenUpstream } from '../../src/adapters/catalog/catalog-feed.ts';
import { createUpstream } from '../../src/adapters/network/undici-upstream.ts';
import { makeCertificate } from '../support/certificate.ts';
import { tempFolder } from '../support/cli.ts';

const HOUR = 60 * 60 * 1000;
let certificate: { key: string; cert: string };

beforeAll(() => {
  certificate = makeCertificate('catalog.test');
});

interface Reply {
  status: number;
  body: Buffer | string;
  headers?: Record<string, string>;
  /** Sends the head, and then nothing more. */
  hangs?: boolean;
}

/** A catalog with one provider that no snapshot has. */
function catalogWith(id: string): string {
  const entry = {
    name: 'New one',
    env: ['NEW_KEY'],
    api: 'https://new.example.com/v1',
    models: { 'new-model': { limit: { context: 500_000, output: 32_000 } } },
  };
  const others = Array.from({ length: 30 }, (_, at) => [`p${at}`, { name: `P ${at}`, env: [] }]);
  return JSON.stringify({ ...Object.fromEntries(others), [id]: entry });
}

async function startSource(reply: Reply) {
  const seen: { url: string | undefined; headers: Record<string, unknown> }[] = [];
  const server: Server = createServer(certificate, ({ url, headers }, answer) => {
    seen.push({ url, headers });
    answer.writeHead(reply.status, reply.headers);
    if (reply.hangs === true) answer.write(' ');
    else answer.end(reply.body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  // The name leads to this machine here alone; everything else is the adapter as it is.
  const open: OpenUpstream = (settings, limits) =>
    createUpstream({ ...settings, allowPrivate: true }, limits, {
      ca: certificate.cert,
      resolve: (_, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
    });
  return { seen, reply, open, url: `https://catalog.test:${port}/api.json` };
}

function openAt(
  folder: string,
  { url, open, now = 0 }: { url: string; open: OpenUpstream; now?: number },
): Promise<OpenCatalog> {
  return openCatalog({ ...placeOf(folder, { url, open }), now: () => now });
}

function placeOf(folder: string, { url, open }: { url: string; open: OpenUpstream }) {
  return { folder, environment: { SVC_CATALOG_URL: url }, open };
}

function ids(catalog: OpenCatalog): string[] {
  return catalog.providers().map(({ id }) => id);
}

test('the snapshot is there at once; what comes meanwhile takes its place and is kept, 0600', async () => {
  const source = await startSource({ status: 200, body: catalogWith('new-one') });
  const folder = join(tempFolder(), 'cache');
  const catalog = await openAt(folder, source);
  expect(ids(catalog)).toContain('fireworks-ai');
  await catalog.settled;
  expect(ids(catalog)).toContain('new-one');
  expect(ids(catalog)).not.toContain('fireworks-ai');
  expect(statSync(join(folder, 'catalog.json')).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  // Nothing of this machine or its keys is in the question.
  expect(source.seen).toHaveLength(1);
  expect(Object.keys(source.seen[0]?.headers ?? {}).toSorted()).toEqual([
    'accept',
    'accept-encoding',
    'connection',
    'host',
  ]);
});

// spec: 4.5-catalog-cache, 8-catalog-24-hours
test('within 24 hours nobody is asked again; after them the old copy serves while it is checked', async () => {
  const reply: Reply = { status: 200, body: catalogWith('new-one'), headers: { etag: '"v1"' } };
  const source = await startSource(reply);
  const folder = tempFolder();
  await (
    await openAt(folder, source)
  ).settled;
  await (
    await openAt(folder, { ...source, now: 24 * HOUR - 1 })
  ).settled;
  expect(source.seen).toHaveLength(1);
  reply.status = 304;
  reply.body = '';
  const stale = await openAt(folder, { ...source, now: 24 * HOUR });
  expect(ids(stale)).toContain('new-one');
  await stale.settled;
  expect(source.seen[1]?.headers['if-none-match']).toBe('"v1"');
  // Unchanged: fresh again for a day.
  await (
    await openAt(folder, { ...source, now: 48 * HOUR - 1 })
  ).settled;
  expect(source.seen).toHaveLength(2);
  reply.status = 200;
  reply.body = catalogWith('newest');
  const next = await openAt(folder, { ...source, now: 48 * HOUR });
  await next.settled;
  expect(ids(next)).toContain('newest');
});

test('a packed answer is unpacked', async () => {
  const headers = { 'content-encoding': 'gzip' };
  const source = await startSource({ status: 200, body: gzipSync(catalogWith('packed')), headers });
  const catalog = await openAt(tempFolder(), source);
  await catalog.settled;
  expect(ids(catalog)).toContain('packed');
});

test('a bomb, an endless body, a redirect, an error or another format change nothing', async () => {
  const gzip = { 'content-encoding': 'gzip' };
  const bomb = gzipSync(Buffer.alloc(33 * 1024 * 1024, ' '));
  const replies: Reply[] = [
    { status: 200, body: bomb, headers: gzip },
    { status: 200, body: Buffer.alloc(9 * 1024 * 1024, ' ') },
    { status: 302, body: '', headers: { location: 'https://127.0.0.1/' } },
    { status: 500, body: catalogWith('new-one') },
    { status: 304, body: '' },
    { status: 200, body: '<html>' },
    { status: 200, body: '{"error":"no"}' },
    { status: 200, body: 'not packed', headers: gzip },
  ];
  for (const reply of replies) {
    const source = await startSource(reply);
    const folder = join(tempFolder(), 'cache');
    const catalog = await openAt(folder, source);
    await catalog.settled;
    expect(ids(catalog)).toContain('fireworks-ai');
    expect(() => statSync(folder)).toThrow('ENOENT');
  }
});

test('whoever leaves meanwhile does not wait for the network', async () => {
  const source = await startSource({ status: 200, body: '', hangs: true });
  const catalog = await openAt(tempFolder(), source);
  await catalog.close();
  expect(ids(catalog)).toContain('fireworks-ai');
});

test('R35: only https and this machine are asked, and a name that leads to it is refused', async () => {
  let asked = 0;
  const open: OpenUpstream = (settings, limits) => {
    asked += 1;
    return createUpstream(settings, limits);
  };
  for (const url of ['off', 'no', 'http://example.com/api.json', 'file:///etc/passwd']) {
    await (
      await openAt(tempFolder(), { url, open })
    ).settled;
  }
  expect(asked).toBe(0);
  const { seen, url } = await startSource({ status: 200, body: catalogWith('x') });
  const catalog = await openAt(tempFolder(), {
    url: url.replace('catalog.test', 'localhost'),
    open,
  });
  await catalog.settled;
  expect([asked, seen.length]).toEqual([1, 0]);
  const plain = createPlainServer((_, answer) => void answer.end(catalogWith('mirror')));
  plain.listen(0, '127.0.0.1');
  await once(plain, 'listening');
  onTestFinished(() => void plain.close());
  const { port } = plain.address() as AddressInfo;
  const mirror = await openAt(tempFolder(), { url: `http://127.0.0.1:${port}/m.json`, open });
  await mirror.settled;
  expect(ids(mirror)).toContain('mirror');
});

// spec: 2.3-catalog-refresh
test('a service answers from the copy that it has, and fetches a newer one once a day for the next question', async () => {
  const source = await startSource({ status: 200, body: catalogWith('served') });
  let now = 1e12;
  const catalog = new ServedCatalog({ ...placeOf(tempFolder(), source), now: () => now });
  onTestFinished(() => catalog.close());
  const names = async () => (await catalog.providers()).map(({ id }) => id);
  expect(await names()).toContain('fireworks-ai');
  await expect.poll(names).toContain('served');
  now += 23 * HOUR;
  await names();
  expect(source.seen).toHaveLength(1);
  source.reply.body = catalogWith('next-day');
  now += 2 * HOUR;
  expect(await names()).toContain('served');
  await expect.poll(names).toContain('next-day');
  // A source that is away costs one try in ten minutes, and the copy stays.
  source.reply.status = 500;
  now += 25 * HOUR;
  expect(await names()).toContain('next-day');
  await expect.poll(() => source.seen.length).toBe(3);
  now += 60_000;
  expect(await names()).toContain('next-day');
  expect(source.seen).toHaveLength(3);
});

test('the first question about a model fetches the catalog, and the next ones have its facts', async () => {
  const source = await startSource({ status: 200, body: catalogWith('maker') });
  const folder = tempFolder();
  const open = () => {
    const catalog = new ServedCatalog({ ...placeOf(folder, source), now: () => 1e12 });
    onTestFinished(() => catalog.close());
    return catalog;
  };
  const first = open();
  expect(first.factsOf('new-model')).toBeUndefined();
  const facts = { windowTokens: 500_000, inputTokensMax: 500_000, outputTokensMax: 32_000 };
  await expect.poll(() => first.factsOf('new-model')).toEqual(facts);
  expect(first.factsOf('other-model')).toBeUndefined();
  await first.close();
  // Another process reads the copy.
  const second = open();
  await expect.poll(() => second.factsOf('new-model')).toEqual(facts);
  expect(source.seen).toHaveLength(1);
});

test('a cache that is broken, a link, or of the future is no cache', async () => {
  const source = await startSource({ status: 500, body: '' });
  const broken = tempFolder();
  writeFileSync(join(broken, 'catalog.json'), '{"checkedAt":0,"providers":{');
  const first = await openAt(broken, source);
  await first.settled;
  expect(ids(first)).toContain('fireworks-ai');
  const linked = tempFolder();
  writeFileSync(join(linked, 'other'), `{"checkedAt":0,"providers":${catalogWith('linked')}}`);
  symlinkSync(join(linked, 'other'), join(linked, 'catalog.json'));
  const second = await openAt(linked, source);
  await second.settled;
  expect(ids(second)).not.toContain('linked');
  const future = tempFolder();
  const text = `{"checkedAt":9000000000000,"providers":${catalogWith('future')}}`;
  writeFileSync(join(future, 'catalog.json'), text);
  const before = source.seen.length;
  const catalog = await openAt(future, source);
  await catalog.settled;
  expect(ids(catalog)).toContain('future');
  expect(source.seen.length).toBe(before + 1);
  expect(readFileSync(join(future, 'catalog.json'), 'utf8')).toBe(text);
});

test('a folder that cannot be written costs nothing but the copy', async () => {
  const source = await startSource({ status: 200, body: catalogWith('new-one') });
  const parent = tempFolder();
  const folder = join(parent, 'cache');
  writeFileSync(folder, 'a file');
  const catalog = await openAt(folder, source);
  await catalog.settled;
  expect(ids(catalog)).toContain('new-one');
  const open = join(parent, 'open');
  mkdirSync(open);
  chmodSync(open, 0o755);
  await (
    await openAt(open, source)
  ).settled;
  // R40: svc did not make this folder, so it neither changes its mode nor writes into it.
  expect(statSync(open).mode & 0o777).toBe(0o755);
  expect(readdirSync(open)).toEqual([]);
});

test('the snapshot is in files of its own, and nothing that starts the proxy has it', () => {
  const dist = join(import.meta.dirname, '../../dist');
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' });
  const holders = files.filter(
    (name) =>
      /\.c?js$/.test(name) && readFileSync(join(dist, name), 'utf8').includes('provider-registry'),
  );
  expect(holders.toSorted()).toEqual([
    expect.stringMatching(/^catalog-snapshot-\w+\.js$/),
    'quick/catalog.cjs',
  ]);
});
