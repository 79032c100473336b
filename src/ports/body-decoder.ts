export interface DecodeLimits {
  /** Bound on the decoded body, in bytes. */
  readonly decodedBytesMax: number;
  /** Deadline in milliseconds, from the moment the work starts. */
  readonly deadlineMs: number;
  /** Ends the work; the promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Decodes a request body off the main thread. `encoding`: one content coding in lower case: 'identity', 'zstd',
 * 'gzip', 'deflate' or 'br'. Throws ProxyError: BODY_TOO_LARGE if a limit of size or time is exceeded,
 * BODY_UNREADABLE if the bytes are malformed or cut off, or if more bytes follow the encoded body, and
 * ENCODING_UNSUPPORTED for any other coding.
 */
export type BodyDecoder = (
  encoded: Buffer,
  encoding: string,
  limits: DecodeLimits,
) => Promise<Buffer>;
