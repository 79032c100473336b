import type { RawHeaders } from '../../../src/core/http/header-rules.ts';

/** Reads HTTP/1.1 messages out of bytes that were recorded on the wire. */
export interface WireMessage {
  readonly startLine: string;
  readonly headers: RawHeaders;
  /** Chunk framing removed, content coding kept. */
  readonly body: Buffer;
  /** The message was recorded to its end. */
  readonly isWhole: boolean;
}

interface Body {
  readonly bytes: Buffer;
  readonly end: number;
  readonly isWhole: boolean;
}

/** In order. The last one may have been cut off. */
export function readWireMessages(bytes: Buffer): readonly WireMessage[] {
  const messages: WireMessage[] = [];
  let at = 0;
  while (at < bytes.length) {
    const headEnd = bytes.indexOf('\r\n\r\n', at);
    if (headEnd === -1) break;
    const [startLine = '', ...lines] = bytes.toString('latin1', at, headEnd).split('\r\n');
    const headers = lines.flatMap(nameAndValue);
    const body = readBody(bytes, headEnd + 4, { startLine, headers });
    messages.push({ startLine, headers, body: body.bytes, isWhole: body.isWhole });
    at = body.end;
  }
  return messages;
}

export function headerIn(headers: RawHeaders, name: string): string | undefined {
  const at = headers.findIndex((it, index) => index % 2 === 0 && it.toLowerCase() === name);
  return at === -1 ? undefined : headers[at + 1];
}

function nameAndValue(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon), line.slice(colon + 1).trim()];
}

function readBody(
  bytes: Buffer,
  start: number,
  head: { readonly startLine: string; readonly headers: RawHeaders },
): Body {
  const length = headerIn(head.headers, 'content-length');
  if (headerIn(head.headers, 'transfer-encoding') === 'chunked') return readChunks(bytes, start);
  if (length !== undefined) return readLength(bytes, start, Number(length));
  // An answer without a length ends with its connection; a request without one has no body.
  const isAnswer = head.startLine.startsWith('HTTP/');
  const isInterim = /^HTTP\/1\.1 (1\d\d|204|304)/.test(head.startLine);
  const end = isAnswer && !isInterim ? bytes.length : start;
  return { bytes: bytes.subarray(start, end), end, isWhole: true };
}

function readLength(bytes: Buffer, start: number, length: number): Body {
  const body = bytes.subarray(start, start + length);
  return { bytes: body, end: start + length, isWhole: body.length === length };
}

function readChunks(bytes: Buffer, start: number): Body {
  const chunks: Buffer[] = [];
  let at = start;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const size = lineEnd === -1 ? NaN : Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    if (Number.isNaN(size)) break;
    chunks.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
    if (size === 0) return { bytes: Buffer.concat(chunks), end: at, isWhole: at <= bytes.length };
  }
  return { bytes: Buffer.concat(chunks), end: bytes.length, isWhole: false };
}
