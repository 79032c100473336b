/**
 * `npm run bench:blocking`: the longest time for which one request holds up all others, for bodies that
 * are made to do so, and the memory that many large bodies take at once. Needs `npm run build`.
 */
import { fork } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import * as zlib from 'node:zlib';
import { messageWith, postMessages, startSvc } from '../lib/svc-process.mjs';
import { BODIES } from './bodies.mjs';

const root = join(import.meta.dirname, '..', '..');
const MODES = {
  'memory on': {},
  'memory off': { 'x-svc-memory-mode': 'off' },
  passthrough: { 'x-svc-compression-mode': 'passthrough' },
};
const MIB = 1 << 20;
const AT_ONCE = 60;

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', default: '' },
    modes: { type: 'string', default: Object.keys(MODES).join(',') },
    skip: { type: 'string', default: '' },
    encodings: { type: 'string', default: 'identity,gzip,br,zstd' },
    bin: { type: 'string', default: join(root, 'bin', 'svc.js') },
  },
});

async function run() {
  mkdirSync(join(root, '.bench'), { recursive: true });
  const folder = mkdtempSync(join(root, '.bench', 'blocking-'));
  const provider = fork(import.meta.filename, ['provider'], { stdio: 'inherit' });
  try {
    const providerPort = await new Promise((resolve) => provider.once('message', resolve));
    if (options.skip !== 'blocking') await measureBlocking(folder, providerPort);
    if (options.skip !== 'memory') await measureMemory(folder, providerPort);
  } finally {
    provider.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureBlocking(folder, providerPort) {
  process.stdout.write(
    'Longest delay of the event loop, ms: at first sight, sent again; answer, ms.\n',
  );
  for (const [name, makeBody] of Object.entries(BODIES)) {
    if (!name.includes(options.only)) continue;
    const body = makeBody();
    for (const mode of options.modes.split(',')) {
      const svc = await startProbed(folder, providerPort);
      // The first request of a process compiles what it needs; that is measured by another bench.
      for (let at = 0; at < 3; at += 1) await send(svc.port, Buffer.from(WARM), MODES[mode]);
      await new Promise((resolve) => setTimeout(resolve, 1500));
      const line = await measureOne(svc, body, MODES[mode]);
      process.stdout.write(`${name.padEnd(36)}${mode.padEnd(14)}${line}\n`);
      await svc.stop();
    }
  }
}

const WARM =
  '{"model":"claude","max_tokens":64,"messages":[{"role":"user","content":"Which port?"}]}';

async function measureOne(svc, body, headers) {
  await svc.longestMs();
  const startedAt = performance.now();
  const answer = await Promise.race([
    send(svc.port, body, headers),
    new Promise((resolve) => setTimeout(resolve, 60_000, { status: 'none in 60 s', state: '' })),
  ]);
  const tookMs = performance.now() - startedAt;
  if (typeof answer.status === 'string') return answer.status;
  // What is kept afterwards is work of the same request.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const longestMs = await svc.longestMs();
  await send(svc.port, body, headers);
  const againMs = await svc.longestMs();
  return `${longestMs.toFixed(0).padStart(7)}${againMs.toFixed(0).padStart(7)}${tookMs.toFixed(0).padStart(8)}  ${answer.status} ${answer.state}`;
}

async function measureMemory(folder, providerPort) {
  process.stdout.write(
    `\nResident MB with ${AT_ONCE} bodies of 62 MiB at once; statuses; seconds.\n`,
  );
  const text = Buffer.alloc(62 * MIB, 'svc remembers what was said. ');
  const plain = Buffer.concat([
    Buffer.from('{"model":"claude","max_tokens":64,"messages":[{"role":"user","content":"'),
    text,
    Buffer.from('"}]}'),
  ]);
  for (const encoding of options.encodings.split(',')) {
    const encoded = encode(plain, encoding);
    if (encoded === undefined) continue;
    const svc = await startProbed(folder, providerPort);
    await send(svc.port, Buffer.from(WARM), {});
    const before = svc.residentMb();
    let peak = 0;
    const timer = setInterval(() => (peak = Math.max(peak, svc.residentMb())), 20);
    const startedAt = performance.now();
    await svc.longestMs();
    const headers = encoding === 'identity' ? {} : { 'content-encoding': encoding };
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, () => send(svc.port, encoded, headers)),
    );
    const seconds = (performance.now() - startedAt) / 1000;
    const longestMs = await svc.longestMs();
    await new Promise((resolve) => setTimeout(resolve, 4000));
    clearInterval(timer);
    const statuses = countBy(answers);
    process.stdout.write(
      `${encoding.padEnd(10)}before ${before.toFixed(0)}  peak ${peak.toFixed(0)}  after ${svc.residentMb().toFixed(0)}  ${JSON.stringify(statuses)}  ${seconds.toFixed(1)} s  loop ${longestMs.toFixed(0)} ms\n`,
    );
    await svc.stop();
  }
}

function countBy(answers) {
  const counts = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function encode(plain, encoding) {
  if (encoding === 'identity') return plain;
  if (encoding === 'gzip') return zlib.gzipSync(plain);
  if (encoding === 'br')
    return zlib.brotliCompressSync(plain, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } });
  if (encoding === 'deflate') return zlib.deflateSync(plain);
  return zlib.zstdCompressSync === undefined ? encodeZstd(plain) : zlib.zstdCompressSync(plain);
}

/** Where Node has no zstd: repeated blocks hold the text, which is spaces then. */
function encodeZstd(plain) {
  const head = Buffer.from(
    '{"model":"claude","max_tokens":64,"messages":[{"role":"user","content":"',
  );
  const tail = Buffer.from('"}]}');
  const block = (size, kind, isLast) => {
    const header = (size << 3) | (kind << 1) | (isLast ? 1 : 0);
    return Buffer.from([header & 0xff, (header >> 8) & 0xff, header >> 16]);
  };
  const pieces = [
    Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58]),
    block(head.length, 0, false),
    head,
  ];
  for (let at = 0; at < plain.length / (128 << 10); at += 1) {
    pieces.push(block(128 << 10, 1, false), Buffer.from('x'));
  }
  return Buffer.concat([...pieces, block(tail.length, 0, true), tail]);
}

async function startProbed(folder, providerPort) {
  const svc = await startSvc(mkdtempSync(join(folder, 'home-')), providerPort, {
    node: ['--require', join(import.meta.dirname, 'probe.cjs')],
    bin: options.bin,
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  });
  const longestMs = () =>
    new Promise((resolve) => {
      svc.child.once('message', (message) => resolve(message.longestMs));
      svc.child.send('longest');
    });
  return { ...svc, longestMs };
}

async function send(port, body, headers) {
  try {
    const { status, headers: told } = await postMessages({ port }, body, headers);
    const state = ['continuity', 'memory'].map((it) => told[`x-svc-${it}-state`]).join(' ');
    return { status, state };
  } catch (error) {
    return { status: error.code, state: '' };
  }
}

/** Takes each body as it comes and answers it. */
function serveProvider() {
  const answer = messageWith('Noted.');
  const server = http.createServer((incoming, outgoing) => {
    incoming.resume();
    incoming.on('end', () => {
      outgoing.writeHead(200, {
        'content-type': 'application/json',
        'content-length': answer.length,
      });
      outgoing.end(answer);
    });
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
}

if (process.argv[2] === 'provider') serveProvider();
else await run();
