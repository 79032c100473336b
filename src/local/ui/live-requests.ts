import type { ServerResponse } from 'node:http';
import type { NewsEvent } from '../../ports/ui-api.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import type { InFlight } from '../../proxy/in-flight.ts';
import { SAFE_HEADERS } from './page-files.ts';
import type { SessionHandle } from './sessions.ts';

/** Bound on the finished requests in one message to a page. Older ones are left out. */
const FINISHED_MAX = 100;
/** Interval at which pages get the open requests, in milliseconds: their states change without an event. */
const LOOK_MS = 1000;

/** Returns a row for a list: without its items and references, which make most of its size. */
export function listed(row: RequestRow): RequestRow {
  const { items: _, elidedRefs: __, ...rest } = row;
  return rest;
}

/** Collects which requests begin and end, for open pages. It watches requests only while watch() is in use. */
export class LiveRequests {
  readonly #inFlight: InFlight;
  #finished: RequestRow[] = [];
  #hasNews = false;

  constructor(inFlight: InFlight) {
    this.#inFlight = inFlight;
  }

  open(): readonly RequestRow[] {
    return this.#inFlight.rows().map(listed);
  }

  /** Returns the open requests, and those that have finished since the last call; undefined if nothing has changed. */
  news(): NewsEvent | undefined {
    if (!this.#hasNews) return undefined;
    this.#hasNews = false;
    return { open: this.open(), finished: this.#finished.splice(0) };
  }

  /**
   * Calls `notify` at every change, and every LOOK_MS while a request is open, until the returned function is called.
   */
  watch(notify: () => void): () => void {
    const unwatch = this.#inFlight.watch((row) => {
      if (row !== undefined) this.#finished = [...this.#finished, listed(row)].slice(-FINISHED_MAX);
      this.#hasNews = true;
      notify();
    });
    const timer = setInterval(() => {
      if (this.open().length === 0) return;
      this.#hasNews = true;
      notify();
    }, LOOK_MS).unref();
    return () => {
      clearInterval(timer);
      unwatch();
    };
  }
}

/** Time in which changes are collected for one message, in milliseconds. A user does not notice it. */
const TOGETHER_MS = 250;
/**
 * Interval of messages that show that the proxy is alive, in milliseconds. Instead of such a message, the stream of an
 * ended session is closed.
 */
const BEAT_MS = 15_000;
const STREAMS_MAX = 32;
/** Bound on the bytes that a page has not read yet. A page with more counts as gone. */
const UNREAD_BYTES_MAX = 1 << 20;

/** Sends the changes of requests to all open pages, as server-sent events. */
export class EventStreams {
  readonly #source: LiveRequests;
  readonly #open = new Map<ServerResponse, SessionHandle>();
  #unwatch: (() => void) | undefined;
  #soon: NodeJS.Timeout | undefined;
  #beat: NodeJS.Timeout | undefined;

  constructor(source: LiveRequests) {
    this.#source = source;
  }

  open(outgoing: ServerResponse, session: SessionHandle): void {
    const [oldest] = this.#open.keys();
    if (this.#open.size >= STREAMS_MAX && oldest !== undefined) oldest.end();
    outgoing.writeHead(200, {
      ...SAFE_HEADERS,
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
    });
    outgoing.write(': open\n\n');
    this.#open.set(outgoing, session);
    outgoing.on('close', () => this.#forget(outgoing));
    if (this.#open.size === 1) this.#start();
  }

  close(): void {
    for (const outgoing of this.#open.keys()) outgoing.end();
  }

  #start(): void {
    this.#source.news();
    this.#unwatch = this.#source.watch(() => {
      this.#soon ??= setTimeout(() => this.#tell(), TOGETHER_MS).unref();
    });
    this.#beat = setInterval(() => this.#send(': beat\n\n'), BEAT_MS).unref();
  }

  #forget(outgoing: ServerResponse): void {
    this.#open.delete(outgoing);
    if (this.#open.size > 0) return;
    this.#unwatch?.();
    clearInterval(this.#beat);
    clearTimeout(this.#soon);
    this.#soon = undefined;
  }

  #tell(): void {
    this.#soon = undefined;
    const news = this.#source.news();
    if (news !== undefined) this.#send(`data: ${JSON.stringify(news)}\n\n`);
  }

  #send(text: string): void {
    for (const [outgoing, session] of this.#open) {
      if (!session.isOpen() || outgoing.writableLength > UNREAD_BYTES_MAX) outgoing.end();
      else outgoing.write(text);
    }
  }
}
