import type { Dialect } from '../../../src/core/conversation/view.ts';

/** What can go wrong at a provider, on purpose. `after` counts events. */
export type FaultKind =
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly message?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Drops the connection without an answer. */
  | { readonly kind: 'reset' }
  /** Never answers. */
  | { readonly kind: 'hang' }
  /** Waits before the first event. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** Breaks the connection in the middle of the stream. */
  | { readonly kind: 'cut'; readonly after: number }
  /** Ends the stream cleanly, without its terminal event. */
  | { readonly kind: 'end'; readonly after: number }
  /** Pauses in the middle of the stream. */
  | { readonly kind: 'stall'; readonly after: number; readonly ms: number }
  /** Ends the stream with the dialect's error event. */
  | { readonly kind: 'errevent'; readonly after: number }
  /** Sends these bytes between two events. */
  | { readonly kind: 'inject'; readonly after: number; readonly raw: string }
  /** Holds the connection open after the last event. */
  | { readonly kind: 'tail'; readonly ms: number };

export type Fault = FaultKind & {
  /** Which requests: all when absent. */
  readonly path?: RegExp;
  readonly hasTools?: boolean;
  /** Which of the matching requests, from 1; all when absent. */
  readonly nth?: readonly number[];
};

export interface FaultFacts {
  readonly path: string;
  readonly hasTools: boolean;
}

/** Counts requests per fault, so that a fault can strike the second one alone. */
export class FaultPlan {
  readonly #faults: readonly Fault[];
  readonly #seen = new Map<Fault, number>();

  constructor(faults: readonly Fault[]) {
    this.#faults = faults;
  }

  strike(facts: FaultFacts): Fault | undefined {
    return this.#faults.find((fault) => {
      if (fault.path?.test(facts.path) === false) return false;
      if (fault.hasTools !== undefined && fault.hasTools !== facts.hasTools) return false;
      const seen = (this.#seen.get(fault) ?? 0) + 1;
      this.#seen.set(fault, seen);
      return fault.nth === undefined || fault.nth.includes(seen);
    });
  }
}

const MESSAGES_ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

/** A provider's error in the dialect's own shape. */
export function errorBodyOf(
  dialect: Dialect | undefined,
  status: number,
  message = `scripted ${status}`,
): object {
  if (dialect === 'anthropic_messages') {
    const fallback = status >= 500 ? 'api_error' : 'invalid_request_error';
    const type = MESSAGES_ERROR_TYPES[status] ?? fallback;
    return { type: 'error', error: { type, message }, request_id: 'req_scripted' };
  }
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message, type, param: null, code: status === 401 ? 'invalid_api_key' : null } };
}

/** The event with which a provider gives up in the middle of a stream. */
export function errorEventOf(dialect: Dialect): string {
  const message = 'Overloaded';
  switch (dialect) {
    case 'anthropic_messages': {
      const error = { type: 'overloaded_error', message };
      return `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`;
    }
    case 'openai_responses': {
      const error = { code: 'server_is_overloaded', message };
      const response = { id: 'resp_scripted', object: 'response', status: 'failed', error };
      const data = { type: 'response.failed', sequence_number: 99, response };
      return `event: response.failed\ndata: ${JSON.stringify(data)}\n\n`;
    }
    case 'openai_chat_completions':
      return `data: ${JSON.stringify({ error: { message, code: 503 } })}\n\n`;
  }
}
