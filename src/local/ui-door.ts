import type { IncomingMessage, ServerResponse } from 'node:http';
import type { UiAdmission } from '../core/http/ui-gate.ts';

/**
 * The server of the page, as the listener calls it. Its code is loaded at the first request for the page or for a link.
 */
export interface UiDoor {
  /** Returns the part after # of a new link, which works once. */
  newLink(): string;
  /** Answers a request of the page. Never rejects: an error becomes an answer too. */
  answer(call: UiCall): Promise<void>;
  /** Ends the event streams of open pages, so that the listener can close. */
  close(): void;
}

export interface UiCall {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly admission: UiAdmission;
  readonly port: number;
}
