/**
 * The stand-in provider, a process of its own on raw sockets: `node provider.mjs PORT`, or with TLS on a
 * second port: `node provider.mjs PORT TLS-PORT KEY-FILE CERTIFICATE-FILE`.
 *
 * How it answers is set by `POST /__bench/mode`; what it saw is told by `/__bench/report`, forgotten by
 * `/__bench/reset`; `/__bench/step` releases the next event of a stream that goes step by step, and
 * `/__bench/finish` ends all paced ones.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import tls from 'node:tls';
import { now } from './clock.mjs';
import { Http1Parser } from './http1.mjs';
import { ANSWER_HEADERS, STREAMS, dialectOf, jsonAnswer, padding } from './provider-answers.mjs';

const DEFAULT_MODE = {
  /** 'json', 'sse', or 'silent': never answers. */
  kind: 'json',
  status: 200,
  jsonBytes: 1500,
  events: 4,
  eventChars: 40,
  /** Events in one write. */
  eventsPerWrite: 1,
  /** Events a second; 0: as fast as the reader takes them. */
  rate: 0,
  /** Each event waits for `/__bench/step`. */
  isStepped: false,
  /** The socket is reset after so many events. */
  diesAfter: Infinity,
  /** Digest and headers of requests go into the report. */
  isRecorded: false,
};

/** A report names the newest requests only; no suite looks at more. */
const RECORDS_MAX = 400;
const CHUNK_END = Buffer.from('\r\n');
const BODY_END = Buffer.from('0\r\n\r\n');
/** Blocks written before the loop may look at other sockets. */
const WRITES_IN_A_ROW = 64;

let mode = DEFAULT_MODE;
let seen = { requests: 0, sentBytes: 0, records: [] };
let openSockets = 0;
let releaseStep = () => {};
/** Paced streams end with their next event. */
let isFinishing = false;

class ProviderConnection {
  #socket;
  #isClosed = false;
  #incoming;
  #current;

  constructor(socket) {
    this.#socket = socket;
    openSockets += 1;
    const parser = new Http1Parser(false, this);
    socket.on('data', (bytes) => parser.feed(bytes));
    socket.on('error', () => {});
    socket.on('close', () => this.#close());
  }

  onHead({ firstLine, headers }) {
    const path = firstLine.split(' ')[1];
    const isControl = path.startsWith('/__bench/');
    const hash = mode.isRecorded && !isControl ? createHash('sha256') : undefined;
    this.#incoming = { path, headers, isControl, hash, bytes: 0, parts: [] };
    if (headers.expect !== undefined) this.#socket.write('HTTP/1.1 100 Continue\r\n\r\n');
  }

  onData(bytes) {
    this.#incoming.bytes += bytes.length;
    this.#incoming.hash?.update(bytes);
    if (this.#incoming.isControl) this.#incoming.parts.push(Buffer.from(bytes));
  }

  onEnd() {
    const { path, headers, isControl, hash, bytes, parts } = this.#incoming;
    this.#incoming = undefined;
    if (isControl) {
      this.#control(path, Buffer.concat(parts).toString());
      return;
    }
    seen.requests += 1;
    const record = { path, bytes, receivedAt: now() };
    if (mode.isRecorded) Object.assign(record, { digest: hash.digest('hex'), headers });
    this.#current = record;
    seen.records.push(record);
    if (seen.records.length > RECORDS_MAX) seen.records.shift();
    if (mode.kind === 'json') this.#answerJson(dialectOf(path), mode);
    if (mode.kind === 'sse') this.#answerStream(dialectOf(path), mode);
  }

  #answerJson(dialect, { status, jsonBytes }) {
    const body = jsonAnswer(dialect, jsonBytes);
    const head = `HTTP/1.1 ${status} OK\r\ncontent-type: application/json\r\n${ANSWER_HEADERS[dialect]}content-length: ${body.length}\r\n\r\n`;
    this.#socket.write(Buffer.concat([Buffer.from(head), body]));
    this.#current.isAnswered = true;
  }

  #answerStream(dialect, answer) {
    const head = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n${ANSWER_HEADERS[dialect]}transfer-encoding: chunked\r\n\r\n`;
    const { start, delta, end } = STREAMS[dialect];
    const stream = { ...answer, delta, finish: () => this.#finish(end()) };
    this.#write(Buffer.concat([Buffer.from(head), chunkOf(start())]));
    if (answer.isStepped) this.#stepEvents(stream, 0);
    else if (answer.rate > 0) this.#paceEvents(stream, 0, now());
    else this.#pourEvents(stream);
  }

  /** The next event goes when the driver says that it has read the one before. */
  #stepEvents(stream, sent) {
    releaseStep = () => {
      if (this.#isClosed) return;
      if (sent === stream.events) {
        stream.finish();
        return;
      }
      this.#write(chunkOf(stream.delta(`@${sent}@`)));
      this.#stepEvents(stream, sent + 1);
    };
  }

  /** Each event carries the time at which it was written. */
  #paceEvents(stream, sent, startedAt) {
    if (this.#isClosed) return;
    if (sent === stream.events || isFinishing) {
      stream.finish();
      return;
    }
    if (sent === stream.diesAfter) {
      this.#current.diedAt = now();
      this.#socket.resetAndDestroy();
      return;
    }
    this.#write(chunkOf(stream.delta(`@${now().toFixed(4)}@${padding(stream.eventChars)}`)));
    const nextAt = startedAt + ((sent + 1) * 1000) / stream.rate;
    setTimeout(() => this.#paceEvents(stream, sent + 1, startedAt), Math.max(0, nextAt - now()));
  }

  #pourEvents({ events, eventsPerWrite, eventChars, delta, finish }) {
    const block = chunkOf(delta(padding(eventChars)).repeat(eventsPerWrite));
    let left = Math.ceil(events / eventsPerWrite);
    const pour = () => {
      for (let writes = 0; writes < WRITES_IN_A_ROW && left > 0; writes += 1) {
        if (this.#isClosed) return;
        left -= 1;
        if (!this.#write(block) && left > 0) {
          this.#socket.once('drain', pour);
          return;
        }
      }
      if (left > 0) setImmediate(pour);
      else finish();
    };
    pour();
  }

  #finish(lastEvents) {
    if (this.#isClosed) return;
    this.#write(chunkOf(lastEvents));
    this.#write(BODY_END);
    this.#current.isAnswered = true;
  }

  #write(bytes) {
    seen.sentBytes += bytes.length;
    return this.#socket.write(bytes);
  }

  #close() {
    this.#isClosed = true;
    openSockets -= 1;
    if (this.#current !== undefined && !this.#current.isAnswered) this.#current.abortedAt = now();
    if (this.#incoming !== undefined) {
      seen.records.push({
        path: this.#incoming.path,
        bytes: this.#incoming.bytes,
        isPartial: true,
      });
    }
  }

  #control(path, text) {
    if (path.endsWith('/mode')) mode = { ...DEFAULT_MODE, ...JSON.parse(text) };
    if (path.endsWith('/mode')) isFinishing = false;
    if (path.endsWith('/finish')) isFinishing = true;
    if (path.endsWith('/reset')) seen = { requests: 0, sentBytes: 0, records: [] };
    if (path.endsWith('/step')) releaseStep();
    const body = path.endsWith('/report') ? JSON.stringify({ ...seen, openSockets }) : '{}';
    this.#socket.write(
      `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  }
}

function chunkOf(text) {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, CHUNK_END]);
}

const server = net.createServer({ noDelay: true }, (socket) => new ProviderConnection(socket));
const [port, tlsPort, keyFile, certificateFile] = process.argv.slice(2);
server.listen(Number(port), '127.0.0.1');

if (tlsPort !== undefined) {
  const files = { key: readFileSync(keyFile), cert: readFileSync(certificateFile) };
  const serve = (socket) => new ProviderConnection(socket);
  const secure = tls.createServer({ ...files, noDelay: true }, serve);
  secure.listen(Number(tlsPort), '127.0.0.1');
}
