/**
 * The reference of every ratio: the least that a relay with Node's server and undici can do. It reads
 * the request whole, sends it on, writes the answer as it comes, and stops the provider when the client
 * goes. It looks at nothing.
 */
import http from 'node:http';
import { Pool } from 'undici';

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'host',
  'expect',
  'content-length',
]);

const pool = new Pool(process.env.UPSTREAM, {
  connections: 512,
  pipelining: 1,
  keepAliveTimeout: 60_000,
  headersTimeout: 0,
  bodyTimeout: 0,
});

const server = http.createServer(
  { keepAliveTimeout: 65_000, noDelay: true },
  (incoming, outgoing) => {
    const parts = [];
    incoming.on('data', (bytes) => parts.push(bytes));
    incoming.on('end', () =>
      relay(incoming, outgoing, parts.length === 1 ? parts[0] : Buffer.concat(parts)),
    );
  },
);

function relay(incoming, outgoing, body) {
  let controller;
  let isDone = false;
  outgoing.on('close', () => {
    if (!isDone) controller?.abort(new Error('The client is gone.'));
    isDone = true;
  });
  const request = {
    path: incoming.url,
    method: incoming.method,
    headers: keepEndToEnd(incoming.rawHeaders),
    body,
  };
  pool.dispatch(request, {
    onRequestStart(started) {
      controller = started;
      if (isDone) started.abort(new Error('The client is gone.'));
    },
    onResponseStart(started, status) {
      outgoing.writeHead(status, keepEndToEnd(started.rawHeaders.map(String), true));
    },
    onResponseData(started, bytes) {
      if (outgoing.write(bytes)) return;
      started.pause();
      outgoing.once('drain', () => started.resume());
    },
    onResponseEnd() {
      isDone = true;
      outgoing.end();
    },
    onResponseError() {
      if (isDone) return;
      isDone = true;
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502).end();
    },
  });
}

function keepEndToEnd(rawHeaders, keepsLength = false) {
  const kept = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at].toLowerCase();
    if (!HOP_BY_HOP.has(name) || (keepsLength && name === 'content-length'))
      kept.push(rawHeaders[at], rawHeaders[at + 1]);
  }
  return kept;
}

server.listen(Number(process.env.PORT), '127.0.0.1');
