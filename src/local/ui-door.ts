import type { IncomingMessage, ServerResponse } from 'node:http';
import type { UiAdmission } from '../core/http/ui-gate.ts';

/** The page, as the listener calls it. Its code is loaded at the first request for it. */
export interface UiDoor {
  /** Returns the fragment of a new one-time link. */
  newLink(): string;
  /** Answers a call. Never rejects: it answers its own errors. */
  answer(call: UiCall): Promise<void>;
  /** Ends the page's event streams, so that the listener can close. */
  close(): void;
}

export interface UiCall {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly admission: UiAdmission;
  readonly port: number;
}
