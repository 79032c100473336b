import { parseShape, type Shape } from '../../../src/core/memory-api/shape.ts';
import type { AuditActor } from '../core/audit.ts';
import { mayUse, type StoredKey } from '../../../src/core/memory-api/keys.ts';
import type { SpaceChoice, SpaceState, TenantStore } from '../ports/service-store.ts';
import type { CallHead } from './gate.ts';
import { ServiceFault } from './fault.ts';
import type { ServingParts } from './parts.ts';

/** One call that was let in, as its operation sees it. */
export interface Call {
  readonly requestId: string;
  readonly key: StoredKey;
  /** The administrator, for a call through the console; undefined where a key calls. */
  readonly actor?: AuditActor;
  /** The part of the store that belongs to the key's tenant; an operation has no other. */
  readonly store: TenantStore;
  readonly head: CallHead;
  /** The last part of the path, where the path has one. */
  readonly parameter: string;
  readonly body: Buffer | undefined;
  /** Fires when the caller does not wait any more. */
  readonly signal: AbortSignal;
  /** The same moment, in milliseconds since 1970. */
  readonly deadlineAt: number;
  /** Milliseconds since 1970 when the call came. */
  readonly now: number;
}

export interface Reply {
  /** 200 when undefined. */
  readonly status?: number;
  readonly body: string;
  /** JSON when undefined. */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Operation = (call: Call, service: ServiceState) => Promise<Reply>;

/** The state that all operations share. */
export interface ServiceState {
  readonly parts: Pick<ServingParts, 'clock' | 'randomBytes' | 'signer' | 'settings'>;
}

/**
 * The state of a space as the store reported it during this call, for an answer at the deadline. An
 * earlier state may have another generation, because other nodes purge too. Nearly every call is
 * answered long before its deadline, so the store is asked when half of the time has passed.
 */
export class StateOfCall {
  #last: SpaceState | undefined;
  readonly #timer: NodeJS.Timeout;

  constructor({ store, signal, now, deadlineAt }: StateCall, space: string) {
    const ask = (): void => {
      if (this.#last !== undefined) return;
      store.spaceState(space, signal).then(
        (state) => (this.#last ??= state),
        () => undefined,
      );
    };
    this.#timer = setTimeout(ask, Math.max(0, (deadlineAt - now) / 2));
  }

  /** A later one, with what the call itself has changed. */
  note(state: SpaceState): SpaceState {
    this.#last = state;
    return state;
  }

  get last(): SpaceState | undefined {
    return this.#last;
  }

  /** The call has its answer. */
  end(): void {
    clearTimeout(this.#timer);
  }
}

type StateCall = Pick<Call, 'store' | 'signal' | 'now' | 'deadlineAt'>;

export function replyJson(value: unknown): Reply {
  return { body: JSON.stringify(value) };
}

/** Throws ServiceFault INVALID_JSON or INVALID_REQUEST. */
export function readBody<Value>({ body }: Call, shape: Shape<Value>): Value {
  return readValue(parseBody(body), shape);
}

/** Throws ServiceFault INVALID_JSON. */
export function parseBody(body: Buffer | undefined): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new ServiceFault('INVALID_JSON', 'The body is not JSON in UTF-8.');
  }
}

export function readValue<Value>(value: unknown, shape: Shape<Value>): Value {
  const parsed = parseShape(shape, value);
  if (parsed.problems === undefined) return parsed.value;
  // Problems name members, never their values.
  const message = `The call does not match the contract: ${parsed.problems.join('; ')}.`;
  throw new ServiceFault('INVALID_REQUEST', message.slice(0, MESSAGE_CHARS_MAX));
}

/** The contract's. */
const MESSAGE_CHARS_MAX = 1000;

/** Throws ServiceFault SPACE_DENIED. */
export function checkSpaces(key: StoredKey, spaces: readonly string[]): void {
  if (spaces.every((space) => mayUse(key, space))) return;
  throw new ServiceFault('SPACE_DENIED', 'The key may not use this space.', { param: 'space' });
}

/** One space, or all that the key may use. */
export function chooseSpaces(key: StoredKey, space: string | undefined): SpaceChoice {
  if (space === undefined) return { globs: key.spaces };
  checkSpaces(key, [space]);
  return { space };
}
