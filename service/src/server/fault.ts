import { ERROR_ROWS, type ErrorCode, ProxyError } from '../../../src/core/errors.ts';
import {
  type FaultBody,
  type FaultCode,
  FAULTS,
  type RetryAction,
} from '../../../src/core/memory-api/faults.ts';

/**
 * The errors of the service's own code, in one table: the codes of the memory contract, and those of the model routes.
 * The code that the local proxy and the service share throws ProxyError, and `refusalOf` converts it.
 */

interface ServiceRow {
  readonly status: number;
  readonly retry: RetryAction;
  /** What the caller of a model route can do about it. */
  readonly hint?: string;
}

const AGAIN = { retry: 'same_request', hint: 'Send it again in a moment.' } as const;
const LATER = { status: 503, retry: 'after_delay', hint: 'Send it again in a moment.' } as const;

const ROWS = {
  ...FAULTS,
  SPACE_DENIED: {
    ...FAULTS.SPACE_DENIED,
    hint: 'Set x-svc-memory-space to a space that the key may use.',
  },
  STORE_UNAVAILABLE: LATER,
  SHUTTING_DOWN: LATER,
  VAULT_UNAVAILABLE: {
    ...LATER,
    hint: 'The operator can find the cause with: svc-service vault verify',
  },
  JOURNAL_FULL: { ...LATER, hint: 'The operator can find the cause with: svc-service doctor' },
  INTERNAL: {
    ...FAULTS.INTERNAL,
    hint: 'Report this to the operator with the x-svc-receipt-id.',
  },
  MODEL_NOT_FOUND: { status: 404, retry: 'none', hint: 'Name one of the allowed models.' },
  MODEL_AMBIGUOUS: {
    status: 422,
    retry: 'none',
    hint: 'Name exactly one model, as a string.',
  },
  PROVIDER_NOT_CONFIGURED: {
    status: 422,
    retry: 'none',
    hint: 'The operator adds a provider with: svc-service providers add',
  },
  PROVIDER_UNREACHABLE: { status: 502, ...AGAIN },
  PROVIDER_TIMEOUT: { status: 504, ...AGAIN },
  PROVIDER_ADDRESS_REFUSED: {
    status: 502,
    retry: 'none',
    hint: 'The provider must be https on a public address, or in a network that the operator allows.',
  },
} as const satisfies Record<string, ServiceRow>;

export type ServiceCode = keyof typeof ROWS;

export interface FaultDetails {
  /** Milliseconds after which the same call may succeed. */
  readonly afterMs?: number;
  readonly param?: string;
  readonly details?: FaultBody['error']['details'];
  /** The methods that the path has; only with METHOD_NOT_ALLOWED. */
  readonly allow?: string;
}

/** The refusal of a call. The message is a constant plus safe fields, never a key, a text or the value of a header. */
export class ServiceFault extends Error {
  override readonly name = 'ServiceFault';
  readonly code: ServiceCode;
  readonly more: FaultDetails;

  constructor(code: ServiceCode, message: string, more: FaultDetails = {}) {
    super(message);
    this.code = code;
    this.more = more;
  }

  /** Returns the code if the memory contract has it, otherwise INTERNAL. */
  get contractCode(): FaultCode {
    return isOf(FAULTS, this.code) ? this.code : 'INTERNAL';
  }
}

/** Makes the refusal of a call that is not valid. `param`: the header or member that is at fault. */
export function invalid(message: string, param?: string): ServiceFault {
  return new ServiceFault('INVALID_REQUEST', message, param === undefined ? {} : { param });
}

/** Renamed codes: a service has no upstream of its own, so the error names the tenant's provider. */
const NAMES: Readonly<Partial<Record<ErrorCode, ServiceCode>>> = {
  UPSTREAM_NOT_CONFIGURED: 'PROVIDER_NOT_CONFIGURED',
  UPSTREAM_UNREACHABLE: 'PROVIDER_UNREACHABLE',
  UPSTREAM_ADDRESS_REFUSED: 'PROVIDER_ADDRESS_REFUSED',
  UPSTREAM_TIMEOUT: 'PROVIDER_TIMEOUT',
};

/** Errors that a service reports differently from the local proxy. */
const IN_SERVICE: Readonly<Partial<Record<ErrorCode, Partial<ServiceRow>>>> = {
  // Without a readable model, svc cannot check whether the key may use it, so it must not forward the request.
  BODY_UNREADABLE: {
    status: 422,
    hint: 'Send one JSON object, whole, in the encoding that Content-Encoding names.',
  },
  BODY_TOO_LARGE: { hint: 'Send a smaller body.' },
  ROUTE_UNKNOWN: {
    hint: 'The base URL ends in /v1 for OpenAI-style clients, and not for Anthropic-style clients.',
  },
  UPGRADE_REFUSED: { hint: 'Use plain HTTP: the service relays JSON and server-sent events.' },
};

export interface Refusal extends ServiceRow {
  readonly code: string;
}

/** Returns the code with which a service answers an error, with its status, its retry action and its hint. */
export function serviceError(code: ErrorCode | ServiceCode): Refusal {
  const name = isOf(ERROR_ROWS, code) ? (NAMES[code] ?? code) : code;
  if (isOf(ROWS, name)) return { code: name, ...ROWS[name] };
  const { status, retry, hint } = ERROR_ROWS[name];
  const action = status === 503 ? 'after_delay' : retry ? 'same_request' : 'none';
  return { code: name, status, retry: action, hint, ...IN_SERVICE[name] };
}

export function refusalOf(thrown: unknown): Refusal {
  const isKnown = thrown instanceof ServiceFault || thrown instanceof ProxyError;
  return serviceError(isKnown ? thrown.code : 'INTERNAL');
}

function isOf<Table extends object>(table: Table, code: PropertyKey): code is keyof Table {
  return code in table;
}
