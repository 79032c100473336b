export interface DecodeLimits {
  /** Bytes that the body may have once it is decoded. */
  readonly decodedBytesMax: number;
  /** Milliseconds from the moment the work starts. */
  readonly deadlineMs: number;
  /** Ends the work when the caller stops waiting; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Takes the content encoding off a request body, off the main thread, whole or not at all.
 * `encoding` is one content coding in lower case: 'identity', 'zstd', 'gzip', 'deflate' or 'br'.
 * Throws ProxyError: BODY_TOO_LARGE over a limit of size or time, BODY_UNREADABLE when the bytes
 * are malformed, cut off, or followed by others, ENCODING_UNSUPPORTED for any other coding.
 */
export type BodyDecoder = (
  encoded: Buffer,
  encoding: string,
  limits: DecodeLimits,
) => Promise<Buffer>;
