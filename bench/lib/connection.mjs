/** One keep-alive connection of the driver, one request at a time, with a stamp on what it reads. */
import net from 'node:net';
import { now } from './clock.mjs';
import { Http1Parser } from './http1.mjs';

/** The bytes of a request, made once and sent many times. */
export function encodeRequest({ host, path, method = 'POST', headers = {}, body }) {
  const all = { accept: '*/*', 'user-agent': 'bench/1', ...headers };
  if (body !== undefined)
    Object.assign(all, { 'content-type': 'application/json', 'content-length': body.length });
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(
    `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n${lines.join('')}\r\n`,
    'latin1',
  );
  return body === undefined ? head : Buffer.concat([head, body]);
}

export class Connection {
  #address;
  #socket;
  #parser;
  #pending;
  #readAt = 0;
  #keepAlive = true;

  constructor({ host, port }) {
    this.#address = { host, port, noDelay: true };
  }

  get socket() {
    return this.#socket;
  }

  connect() {
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.#address);
      this.#socket = socket;
      this.#parser = new Http1Parser(true, this);
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        // What broke is seen by `close`, which follows every error.
        socket.on('error', () => {});
        resolve();
      });
      socket.on('data', (bytes) => {
        if (this.#socket === socket) this.#read(bytes);
      });
      socket.on('close', () => {
        if (this.#socket === socket) this.#close();
      });
    });
  }

  /**
   * Resolves when the answer ended or broke, never rejects: { status, headers, bytes, sentAt, firstByteAt,
   * endedAt, failure }. `failure` is undefined for a whole answer. Options: onHead(), onData(bytes,
   * readAt, answer).
   */
  async request(bytes, { onHead, onData } = {}) {
    const answer = { status: 0, headers: {}, bytes: 0, sentAt: 0, firstByteAt: 0, endedAt: 0 };
    if (this.#socket === undefined) {
      const failure = await this.connect().then(
        () => undefined,
        (error) => error.code ?? 'refused',
      );
      if (failure !== undefined) return { ...answer, failure };
    }
    return new Promise((resolve) => {
      this.#pending = { answer, resolve, onHead, onData };
      answer.sentAt = now();
      this.#socket.write(bytes);
    });
  }

  close() {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.destroy();
    this.#finish('closed by us');
  }

  onHead({ firstLine, headers }) {
    const status = Number(firstLine.slice(9, 12));
    if (this.#pending === undefined || status < 200) return;
    Object.assign(this.#pending.answer, { status, headers });
    this.#keepAlive = !/close/i.test(headers.connection ?? '');
    this.#pending.onHead?.();
  }

  onData(bytes) {
    if (this.#pending === undefined) return;
    const { answer, onData } = this.#pending;
    if (answer.bytes === 0) answer.firstByteAt = this.#readAt;
    answer.bytes += bytes.length;
    onData?.(bytes, this.#readAt, answer);
  }

  onEnd() {
    this.#finish();
    if (!this.#keepAlive) this.close();
  }

  #read(bytes) {
    this.#readAt = now();
    this.#parser.feed(bytes);
  }

  #close() {
    this.#socket = undefined;
    this.#readAt = now();
    if (!this.#parser.close()) this.#finish('broken');
  }

  #finish(failure) {
    const pending = this.#pending;
    if (pending === undefined) return;
    this.#pending = undefined;
    pending.answer.endedAt = failure === undefined ? this.#readAt : now();
    if (failure !== undefined) pending.answer.failure = failure;
    pending.resolve(pending.answer);
  }
}
