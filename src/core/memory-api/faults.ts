import { generation } from './words.ts';
import { type Infer, integer, members, oneOf, orNull, text, time } from './shape.ts';

/** The errors of the memory API. A code never changes, because clients rely on it. */

interface FaultRow {
  readonly status: number;
  readonly type: Infer<typeof faultType>;
  readonly retry: RetryAction;
  /** The value of the header x-should-retry, which overrides the retry rules of provider SDKs. */
  readonly shouldRetry?: boolean;
}

const faultType = oneOf(
  'authentication_error',
  'permission_error',
  'not_found_error',
  'conflict_error',
  'invalid_request_error',
  'rate_limit_error',
  'api_error',
);

const retryAction = oneOf(
  'none',
  'same_request',
  'after_delay',
  'refresh_generation',
  'new_idempotency_key',
  'reauthenticate',
);
export type RetryAction = Infer<typeof retryAction>;

const UNAUTHORIZED = {
  status: 401,
  type: 'authentication_error',
  retry: 'reauthenticate',
} as const;
const CONFLICT = { status: 409, type: 'conflict_error', shouldRetry: false } as const;
const FORBIDDEN = { status: 403, type: 'permission_error', retry: 'none' } as const;
const INVALID = { type: 'invalid_request_error', retry: 'none' } as const;
const UNAVAILABLE = { status: 503, type: 'api_error', retry: 'after_delay' } as const;

export const FAULTS = {
  AUTH_MISSING: UNAUTHORIZED,
  AUTH_INVALID: UNAUTHORIZED,
  AUTH_REVOKED: UNAUTHORIZED,
  AUTH_EXPIRED: UNAUTHORIZED,
  /** The key was rotated, and the grace period of this secret has ended. */
  AUTH_STALE: UNAUTHORIZED,
  SCOPE_DENIED: FORBIDDEN,
  SPACE_DENIED: FORBIDDEN,
  TENANT_SUSPENDED: FORBIDDEN,
  PLAN_LIMIT_REACHED: FORBIDDEN,
  NOT_FOUND: { status: 404, type: 'not_found_error', retry: 'none' },
  METHOD_NOT_ALLOWED: { status: 405, ...INVALID },
  STALE_GENERATION: { ...CONFLICT, retry: 'refresh_generation' },
  IDEMPOTENCY_CONFLICT: { ...CONFLICT, retry: 'new_idempotency_key' },
  IDEMPOTENCY_IN_PROGRESS: { ...CONFLICT, retry: 'same_request', shouldRetry: true },
  /** The object to be created exists already. */
  CONFLICT: { ...CONFLICT, retry: 'none' },
  PAYLOAD_TOO_LARGE: { status: 413, ...INVALID },
  UNSUPPORTED_ENCODING: { status: 415, ...INVALID },
  INVALID_JSON: { status: 400, ...INVALID },
  INVALID_REQUEST: { status: 422, ...INVALID },
  RATE_LIMIT_EXCEEDED: { status: 429, type: 'rate_limit_error', retry: 'after_delay' },
  RATE_LIMITER_UNAVAILABLE: UNAVAILABLE,
  STORE_UNAVAILABLE: UNAVAILABLE,
  VAULT_UNAVAILABLE: UNAVAILABLE,
  SHUTTING_DOWN: UNAVAILABLE,
  INTERNAL: { status: 500, type: 'api_error', retry: 'none' },
} as const satisfies Record<string, FaultRow>;

export type FaultCode = keyof typeof FAULTS;

const CODES = Object.keys(FAULTS).filter((code): code is FaultCode => code in FAULTS);

export const faultBody = members({
  error: members(
    {
      code: oneOf(...CODES),
      type: faultType,
      message: text({ max: 1000 }),
      request_id: text({ max: 128 }),
      retry: members({ action: retryAction }, { after_ms: integer(0) }),
    },
    {
      param: orNull(text({ max: 256 })),
      details: members(
        {},
        { current_generation: generation, current_commit_seq: integer(0), first_seen_at: time },
      ),
    },
  ),
});
export type FaultBody = Infer<typeof faultBody>;

export interface FaultNote {
  /** A constant text with safe values in it, never a key, a stored text or a header. */
  readonly message: string;
  readonly requestId: string;
  readonly param?: string;
  readonly afterMs?: number;
  readonly details?: FaultBody['error']['details'];
}

/** Builds the body of an error answer. Its status and the header x-should-retry are in FAULTS. */
export function faultOf(code: FaultCode, note: FaultNote): FaultBody {
  const { type, retry: action } = FAULTS[code];
  const { message, requestId, param, afterMs, details } = note;
  return {
    error: {
      code,
      type,
      message,
      ...(param === undefined ? {} : { param }),
      request_id: requestId,
      retry: afterMs === undefined ? { action } : { action, after_ms: afterMs },
      ...(details === undefined ? {} : { details }),
    },
  };
}
