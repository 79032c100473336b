import {
  captureAnswer,
  type CaptureAnswer,
  type CaptureRequest,
  itemsPage,
  type ItemsPage,
  type ItemsQuery,
  recallAnswer,
  type RecallAnswer,
  type RecallRequest,
  retrieveAnswer,
  type RetrieveAnswer,
  type RetrieveRequest,
  whoAmI,
  type WhoAmI,
  purgeReceipt,
  type PurgeReceipt,
  type PurgeRequest,
} from '../../core/memory-api/contract.ts';
import type { ServiceGate } from './gate.ts';
import type { ServiceCall, ServiceLink } from './service-link.ts';

/** The calls of the memory API that svc makes, each with a deadline and, except whoAmI(), through the gate. */

/** Deadline of calls for which a user waits at the command line. */
const LIST_MS = 10_000;
const WHOAMI_MS = 5_000;
/** Deadline of a capture. No model request waits for one: the outbox, work in the background and commands send them. */
const CAPTURE_MS = 5_000;

export class Operations {
  readonly #link: ServiceLink;
  readonly #gate: ServiceGate;
  /**
   * Called with the error of a call that failed; not if the gate stopped it. `access`: the right that the call needs.
   */
  onRefused: (error: unknown, access: 'read' | 'write') => void = () => undefined;

  constructor(link: ServiceLink, gate: ServiceGate) {
    this.#link = link;
    this.#gate = gate;
  }

  /**
   * Asks for the key's rights. The gate does not stop this call, so that svc notices when a refused key works again.
   */
  whoAmI(signal: AbortSignal, space?: string): Promise<WhoAmI> {
    const path = '/v1/svc/whoami';
    const call = { kind: 'whoami', method: 'GET', path, withinMs: WHOAMI_MS } as const;
    const query = space === undefined ? {} : { query: new URLSearchParams({ space }) };
    return this.#counted({ ...call, ...query, shape: whoAmI }, signal);
  }

  recall(body: RecallRequest, withinMs: number, signal: AbortSignal): Promise<RecallAnswer> {
    const path = '/v1/svc/memory/recall';
    const call = { kind: 'recall', method: 'POST', path, body, withinMs } as const;
    return this.#admitted({ ...call, shape: recallAnswer }, signal);
  }

  capture(body: CaptureRequest, signal: AbortSignal): Promise<CaptureAnswer> {
    const path = '/v1/svc/memory/capture';
    const call = { kind: 'capture', method: 'POST', path, body, withinMs: CAPTURE_MS } as const;
    return this.#admitted({ ...call, shape: captureAnswer }, signal);
  }

  retrieve(body: RetrieveRequest, signal: AbortSignal): Promise<RetrieveAnswer> {
    const path = '/v1/svc/memory/retrieve';
    const call = { kind: 'retrieve', method: 'POST', path, body, withinMs: LIST_MS } as const;
    return this.#admitted({ ...call, shape: retrieveAnswer }, signal);
  }

  items(filter: ItemsQuery, signal: AbortSignal): Promise<ItemsPage> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(filter)) query.set(name, String(value));
    const path = '/v1/svc/memory/items';
    const call = { kind: 'items', method: 'GET', path, query, withinMs: LIST_MS } as const;
    return this.#admitted({ ...call, shape: itemsPage }, signal);
  }

  purge(body: PurgeRequest, signal: AbortSignal): Promise<PurgeReceipt> {
    const path = '/v1/svc/memory/purges';
    const call = { kind: 'purge', method: 'POST', path, body, withinMs: LIST_MS } as const;
    return this.#admitted({ ...call, shape: purgeReceipt }, signal);
  }

  async #admitted<Answer>(call: ServiceCall<Answer>, signal: AbortSignal): Promise<Answer> {
    this.#gate.admit();
    return this.#counted(call, signal);
  }

  async #counted<Answer>(call: ServiceCall<Answer>, signal: AbortSignal): Promise<Answer> {
    // A call that is aborted before it begins is not a failure of the service.
    const wasOver = signal.aborted;
    try {
      const answer = await this.#link.call(call, signal);
      this.#gate.succeeded();
      return answer;
    } catch (error) {
      if (!wasOver) this.#gate.failed(error);
      this.onRefused(error, WRITES.has(call.kind) ? 'write' : 'read');
      throw error;
    }
  }
}

const WRITES: ReadonlySet<string> = new Set(['capture', 'purge']);
