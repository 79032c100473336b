interface ErrorRow {
  readonly status: number;
  /** True if the same request may succeed when it is sent again. Clients obey `x-should-retry`. */
  readonly retry?: true;
  readonly hint: string;
}

/**
 * Every way in which a request can fail inside svc. A code is part of the interface, so it never changes. A hint tells
 * the user what to do. A service translates this table into its own: service/src/server/fault.ts.
 */
const ERRORS = {
  LOCAL_TOKEN_INVALID: {
    status: 401,
    hint: 'Print the token with: svc config token',
  },
  LOGIN_REFUSED: {
    status: 401,
    hint: 'To use a login, run: svc setup --login claude (or codex). To use a provider key, start the client with svc run.',
  },
  LOGIN_MISSING: {
    status: 401,
    hint: 'Log in with the client itself and start it with svc run, or set up a provider key: svc setup',
  },
  LOGIN_AMBIGUOUS: {
    status: 401,
    hint: 'Send one credential: unset the key, or log out.',
  },
  LOGIN_CLIENT_REFUSED: {
    status: 403,
    hint: 'Other programs need a provider key: svc setup --upstream',
  },
  REQUEST_MALFORMED: {
    status: 400,
    hint: 'Send one well-formed HTTP/1.1 request with one Host and one of each credential header.',
  },
  ORIGIN_REFUSED: {
    status: 403,
    hint: 'svc answers programs on this machine, not web pages. Use http://127.0.0.1 with the configured port and no Origin header.',
  },
  ROUTE_UNKNOWN: {
    status: 404,
    hint: 'The base URL ends in /v1 for OpenAI-style clients, and not for Anthropic-style clients. proxy.relayPaths adds further paths.',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    hint: 'The Allow header names the methods of this path.',
  },
  UPSTREAM_NOT_CONFIGURED: { status: 404, hint: 'Add the provider with: svc setup' },
  REQUEST_TIMEOUT: {
    status: 408,
    retry: true,
    hint: 'Send the headers within 10 seconds and the whole body within 60.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    hint: 'For model requests of this size, raise proxy.bodyBytesMax; for bodies in zstd also proxy.zstdBytesMax.',
  },
  BODY_UNREADABLE: {
    status: 400,
    hint: 'Send the body whole, in the encoding that Content-Encoding names.',
  },
  ENCODING_UNSUPPORTED: {
    status: 415,
    hint: 'Use one of identity, zstd, gzip, deflate or br, once.',
  },
  CONTENT_TYPE_UNSUPPORTED: {
    status: 415,
    hint: 'Send Content-Type: application/json.',
  },
  EXPECTATION_FAILED: {
    status: 417,
    hint: 'Send no Expect header but Expect: 100-continue.',
  },
  MODE_INVALID: {
    status: 422,
    hint: 'x-svc-memory-mode: off, read, write or read-write. x-svc-compression-mode: passthrough, shadow or deterministic.',
  },
  UPGRADE_REFUSED: {
    status: 426,
    hint: 'Use plain HTTP: svc relays JSON and server-sent events.',
  },
  HEADERS_TOO_MANY: {
    status: 431,
    hint: 'Send at most 100 headers and 64 KiB of them.',
  },
  INTERNAL: {
    status: 500,
    hint: 'Run svc doctor, and report this with the x-svc-request-id.',
  },
  TRANSFER_ENCODING_UNSUPPORTED: {
    status: 501,
    hint: 'Use Content-Length or Transfer-Encoding: chunked.',
  },
  UPSTREAM_UNREACHABLE: { status: 502, retry: true, hint: 'Check the provider with: svc doctor' },
  UPSTREAM_ADDRESS_REFUSED: {
    status: 502,
    hint: 'The provider must be https on a public address, or its upstream needs "allowPrivate": true.',
  },
  SHUTTING_DOWN: {
    status: 503,
    retry: true,
    hint: 'Start svc again with: svc start',
  },
  TOO_BUSY: {
    status: 503,
    retry: true,
    hint: 'Send it again in a moment, or send fewer large requests at once.',
  },
  UPSTREAM_TIMEOUT: { status: 504, retry: true, hint: 'Check the provider with: svc doctor' },
  HTTP_VERSION_UNSUPPORTED: {
    status: 505,
    hint: 'Use HTTP/1.1. In front of svc, nginx needs proxy_http_version 1.1.',
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_ROWS: Readonly<Record<ErrorCode, ErrorRow>> = ERRORS;

/** Stops a request. The message is a constant text with safe values in it: never a header, a body or a key. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  get status(): number {
    return ERROR_ROWS[this.code].status;
  }

  get retry(): boolean {
    return ERROR_ROWS[this.code].retry ?? false;
  }

  /** What the user can do, in one or two short sentences. */
  get hint(): string {
    return ERROR_ROWS[this.code].hint;
  }
}

export function refuse(code: ErrorCode, message: string): never {
  throw new ProxyError(code, message);
}

/** Why the memory did not answer. Each reason has a state in `x-svc-memory-state`: `degraded_` and the reason. */
export type MemoryFailure = 'timeout' | 'unavailable' | 'denied' | 'rate_limited' | 'invalid';

export class MemoryError extends Error {
  override readonly name = 'MemoryError';
  readonly reason: MemoryFailure;

  constructor(reason: MemoryFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
