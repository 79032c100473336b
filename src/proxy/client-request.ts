import type { ServerResponse } from 'node:http';
import type { RawHeaders } from '../core/http/headers.ts';
import type { Encoding } from '../core/http/http-form.ts';
import type { Route } from '../core/http/routes.ts';

/** A request that passed the gate: routed, its token checked, its body read and decoded. */
export interface ClientRequest {
  /** `req_` and 24 characters; the client sees it as x-svc-request-id. */
  readonly id: string;
  readonly route: Route;
  readonly method: string;
  /** Path and query exactly as received. */
  readonly target: string;
  readonly headers: RawHeaders;
  /** Decoded; undefined when the request had none. */
  readonly body: Buffer | undefined;
  /** The same body as the client encoded it; undefined where it did not. */
  readonly encoded?: EncodedBody | undefined;
  /** Clock.monotonic() when the request head was in. */
  readonly startedAt: number;
}

export interface EncodedBody {
  readonly bytes: Buffer;
  readonly encoding: Encoding;
}

/**
 * Answers one request. local/server.ts turns an error that it throws into the client's error shape.
 */
export type Handler = (request: ClientRequest, outgoing: ServerResponse) => Promise<void>;
