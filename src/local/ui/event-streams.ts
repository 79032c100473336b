import type { ServerResponse } from 'node:http';
import { SAFE_HEADERS } from './page-files.ts';
import type { SessionHandle } from './sessions.ts';

/**
 * Server-sent events for the open pages. Nothing is reckoned while no page is open. Changes that come
 * close together are sent together, so that an open page costs the proxy little.
 */
export interface EventSource {
  /** Finished and open requests since the last call; undefined when nothing has changed. */
  news(): object | undefined;
  /** `notify` is called on every change, until the returned function is called. */
  watch(notify: () => void): () => void;
}

/** A person sees no difference below this. */
const TOGETHER_MS = 250;
/** Tells the page that the proxy lives, and ends the streams of sessions that have ended. */
const BEAT_MS = 15_000;
const STREAMS_MAX = 32;
/** A page that reads nothing for so long has gone. */
const UNREAD_BYTES_MAX = 1 << 20;

export class EventStreams {
  readonly #source: EventSource;
  readonly #open = new Map<ServerResponse, SessionHandle>();
  #unwatch: (() => void) | undefined;
  #soon: NodeJS.Timeout | undefined;
  #beat: NodeJS.Timeout | undefined;

  constructor(source: EventSource) {
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
