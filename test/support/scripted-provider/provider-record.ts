import type { RawHeaders } from '../../../src/core/http/header-rules.ts';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import type { Judgement } from '../strict-provider/judgement.ts';
import type { Decision } from './script.ts';

/** One request as it arrived at the provider, and what the provider sent back. */
export interface ProviderRecord {
  /** From 1, in order of arrival. */
  readonly n: number;
  /** Requests with the same number came over the same connection. */
  readonly connection: number;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly path: string;
  readonly dialect: Dialect | undefined;
  /** Order, case and repeats as on the wire. */
  readonly headers: RawHeaders;
  /** Exactly as on the wire, content coding included. */
  readonly body: Buffer;
  /** The decoded, parsed body; undefined when it is not JSON. */
  readonly json: unknown;
  /** The provider's own id of this answer, sent as `request-id` or `x-request-id`. */
  readonly answerId: string;
  /** What the script made of a model request. */
  decision: Decision | undefined;
  /** What a strict provider made of it. */
  judgement: Judgement | undefined;
  status: number;
  /** Bodies as handed to the connection: one piece an event. */
  readonly sent: Buffer[];
  /** The client closed the connection before the answer had ended. */
  isClientGone: boolean;
  /** Nothing more will be sent. */
  isOver: boolean;
}

/** The body of the answer, byte for byte. */
export function answerOf(record: ProviderRecord): Buffer {
  return Buffer.concat(record.sent);
}
