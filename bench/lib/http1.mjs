/**
 * The smallest HTTP/1.1 message parser that measures well, for both directions. Node's own client
 * costs more than the proxies that we measure; this one does no work on a byte of a body.
 *
 * It trusts its peers, which are ours: it is no parser for the open network.
 */

const HEAD_END = Buffer.from('\r\n\r\n');
const [LF, CR, SEMICOLON] = [10, 13, 59];

/** The first line and the headers, names in lower case, repeated values joined with a comma. */
export function parseHead(text) {
  const [firstLine, ...lines] = text.split('\r\n');
  const headers = Object.create(null);
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return { firstLine, headers };
}

export class Http1Parser {
  #isAnswer;
  #handlers;
  #state = 'head';
  /** Bytes of the body or of the chunk that are still to come. */
  #left = 0;
  #isChunkExtension = false;
  #trailerChars = 0;
  #partialHead;

  /** Handlers: onHead({ firstLine, headers }), onData(bytes), onEnd(). */
  constructor(isAnswer, handlers) {
    this.#isAnswer = isAnswer;
    this.#handlers = handlers;
  }

  feed(bytes) {
    let at = 0;
    while (at < bytes.length) at = this.#read(bytes, at);
  }

  /** The peer closed: true when that was a proper end of a message, or between two. */
  close() {
    if (this.#state === 'until-close') {
      this.#end();
      return true;
    }
    return this.#state === 'head' && this.#partialHead === undefined;
  }

  #read(bytes, at) {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes, at);
      case 'body':
      case 'chunk':
        return this.#readCounted(bytes, at);
      case 'chunk-size':
        return this.#readChunkSize(bytes, at);
      case 'chunk-end':
        if (bytes[at] === LF) this.#state = 'chunk-size';
        return at + 1;
      case 'trailer':
        return this.#readTrailer(bytes, at);
      default:
        this.#handlers.onData(bytes.subarray(at));
        return bytes.length;
    }
  }

  #readHead(bytes, at) {
    const before = this.#partialHead ?? Buffer.alloc(0);
    const head =
      before.length === 0 ? bytes.subarray(at) : Buffer.concat([before, bytes.subarray(at)]);
    const end = head.indexOf(HEAD_END);
    if (end === -1) {
      this.#partialHead = Buffer.from(head);
      return bytes.length;
    }
    this.#partialHead = undefined;
    const { firstLine, headers } = parseHead(head.latin1Slice(0, end));
    this.#handlers.onHead({ firstLine, headers });
    // `100 Continue` is followed by the real head.
    if (!(this.#isAnswer && / 1\d\d\b/.test(firstLine.slice(8, 13))))
      this.#beginBody(firstLine, headers);
    return at + end + HEAD_END.length - before.length;
  }

  #beginBody(firstLine, headers) {
    const length = headers['content-length'];
    if (headers['transfer-encoding']?.toLowerCase().includes('chunked')) this.#state = 'chunk-size';
    else if (length !== undefined && Number(length) > 0) this.#expect('body', Number(length));
    else if (this.#isAnswer && length === undefined && !/ (?:204|304)\b/.test(firstLine))
      this.#state = 'until-close';
    else this.#end();
  }

  #expect(state, bytes) {
    this.#state = state;
    this.#left = bytes;
  }

  #readCounted(bytes, at) {
    const end = Math.min(at + this.#left, bytes.length);
    this.#left -= end - at;
    this.#handlers.onData(bytes.subarray(at, end));
    if (this.#left > 0) return end;
    if (this.#state === 'body') this.#end();
    else this.#state = 'chunk-end';
    return end;
  }

  #readChunkSize(bytes, at) {
    const code = bytes[at];
    if (code === LF) {
      this.#isChunkExtension = false;
      this.#state = this.#left === 0 ? 'trailer' : 'chunk';
    } else if (code === SEMICOLON) {
      this.#isChunkExtension = true;
    } else if (code !== CR && !this.#isChunkExtension) {
      this.#left = this.#left * 16 + Number.parseInt(String.fromCharCode(code), 16);
    }
    return at + 1;
  }

  #readTrailer(bytes, at) {
    const code = bytes[at];
    if (code === LF && this.#trailerChars === 0) this.#end();
    else if (code === LF) this.#trailerChars = 0;
    else if (code !== CR) this.#trailerChars += 1;
    return at + 1;
  }

  #end() {
    this.#state = 'head';
    this.#left = 0;
    this.#handlers.onEnd();
  }
}
