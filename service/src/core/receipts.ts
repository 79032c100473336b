import type { Dialect } from '../../../src/core/conversation/view.ts';
import { type Usage, usageNumbers } from '../../../src/core/dialects/dialect-answer.ts';
import { canonicalJson } from '../../../src/core/memory-api/canonical.ts';
import { isoTime } from '../../../src/core/memory/times.ts';
import type { ContinuityState, MemoryState } from '../../../src/core/plan/continuity.ts';
import { maskSecrets } from '../../../src/core/redaction/redaction.ts';
import type { CompressionMode, MemoryMode } from '../../../src/core/http/modes.ts';
import type { ProviderKind } from './providers.ts';

/**
 * A receipt records what the service did with one request. It holds names, ids, states, counts, times and hashes, but
 * no text of a conversation, no path, no query and no credential. It is made of two parts: the opening has the facts
 * before the provider is called, and the closing says how the request ended.
 */

export type ReceiptKind = 'model' | 'count_tokens' | 'compact' | 'input_tokens' | 'models';

export type ReceiptStatus = (typeof RECEIPT_STATUSES)[number];

export const RECEIPT_STATUSES = [
  'completed',
  'client_aborted',
  'upstream_error',
  'upstream_interrupted',
  'rejected',
  'internal_error',
  /** The process ended before it wrote how the request ended. */
  'unknown',
] as const;

export type CaptureReceiptState = 'off' | 'none' | 'stored' | 'partial' | 'deferred' | 'failed';

/** The decisions of svc about one request, as its receipt states them. */
export interface ReceiptDecisions {
  /** The mode that the caller asked for, or else the default mode of its key. */
  readonly memory_mode: MemoryMode;
  readonly memory_mode_effective: MemoryMode;
  readonly memory_state: MemoryState;
  readonly compression_mode_requested: CompressionMode;
  readonly compression_mode: CompressionMode;
  readonly continuity_state: ContinuityState;
  readonly original_input_tokens: number;
  readonly forwarded_input_tokens: number;
  readonly recalled_tokens: number;
  readonly recalled_items: number;
  readonly elided_tokens: number;
  readonly elided_tool_outputs: number;
  readonly removed_exchanges: number;
  /** In shadow mode: the tokens that would have been forwarded. Null in other modes. */
  readonly shadow_input_tokens: number | null;
  readonly memory_generation: string | null;
}

const SESSION_CHARS = 256;
const SPACE_CHARS = 128;
const NAME_CHARS = 256;

/** The decisions of a request that failed before svc decided anything. */
export const NOTHING_DECIDED: ReceiptDecisions = {
  memory_mode: 'off',
  memory_mode_effective: 'off',
  memory_state: 'off',
  compression_mode_requested: 'passthrough',
  compression_mode: 'passthrough',
  continuity_state: 'not_applicable',
  original_input_tokens: 0,
  forwarded_input_tokens: 0,
  recalled_tokens: 0,
  recalled_items: 0,
  elided_tokens: 0,
  elided_tool_outputs: 0,
  removed_exchanges: 0,
  shadow_input_tokens: null,
  memory_generation: null,
};

export interface ReceiptProvider {
  readonly id: string;
  readonly kind: ProviderKind;
  readonly host: string;
}

export interface ReceiptOpening {
  readonly receiptId: string;
  /** Milliseconds since 1970: the time in the id. */
  readonly at: number;
  readonly tenant: string;
  readonly keyId: string;
  readonly kind: ReceiptKind;
  readonly dialect: Dialect | null;
  readonly streamed: boolean;
  readonly space: string | null;
  readonly sessionId: string | null;
  /**
   * The model that the caller named, or else the provider's default model; null if svc knows neither, as before it has
   * read the body.
   */
  readonly model: string | null;
  readonly provider: ReceiptProvider | null;
  readonly decided: ReceiptDecisions;
}

/** The steps whose milliseconds a receipt states. `overhead` ends when the request is sent to the provider. */
const STEPS = [
  'auth',
  'capture',
  'limiter',
  'overhead',
  'recall',
  'upstream_first_byte',
  'upstream_total',
] as const;

/** Milliseconds of each step. */
export type ReceiptTimes = {
  readonly [Step in (typeof STEPS)[number]]?: number | undefined;
} & { readonly total: number };

export interface ReceiptClosing {
  readonly status: ReceiptStatus;
  /** The status sent to the client; null if no response head was sent or the status is unknown. */
  readonly httpStatus: number | null;
  readonly errorCode: string | null;
  readonly errorSource: 'service' | 'provider' | null;
  readonly times: ReceiptTimes;
  readonly captureState: CaptureReceiptState;
  readonly capturedRecords: number;
  /**
   * The decisions at the end, which replace those of the opening: they differ, for example, if the provider refused the
   * changed request. Undefined if they are not known.
   */
  readonly decided?: ReceiptDecisions | undefined;
  readonly upstreamStatus?: number | undefined;
  readonly upstreamRequestId?: string | undefined;
  readonly upstreamResponseId?: string | undefined;
  readonly modelReported?: string | undefined;
  readonly usage?: Usage | undefined;
  /** Estimated output tokens that the provider has not counted. They count against budgets, but are in no receipt. */
  readonly uncountedTokens?: number | undefined;
  /** The provider's own `usage` object. */
  readonly providerUsage?: unknown;
  /** Hex digests of the decoded request body, of the forwarded body and of the relayed answer. */
  readonly requestSha256?: string | undefined;
  readonly forwardedSha256?: string | undefined;
  readonly responseSha256?: string | undefined;
}

/** The process that made the receipt, with the number that the process gave to it. */
export interface ReceiptIssuer {
  readonly version: string;
  readonly node: string;
  /** Counts the receipts of a node and tenant: 1, 2, 3 … */
  readonly seq: number;
}

/** The closing of a receipt whose process ended before it wrote a closing. */
export const NODE_LOST: ReceiptClosing = {
  status: 'unknown',
  httpStatus: null,
  errorCode: 'NODE_LOST',
  errorSource: 'service',
  times: { total: 0 },
  captureState: 'none',
  capturedRecords: 0,
};

/** The name of the method by which svc estimates input tokens, so that receipts can be compared. */
const ESTIMATOR = 'svc-bytes/1';

/**
 * Returns the opening, in which a text that is too long for a receipt is cut or left out. Callers choose these texts,
 * which use memory that all tenants share until the receipt is stored.
 */
export function boundedOpening(opening: ReceiptOpening): ReceiptOpening {
  const { sessionId, space, model } = opening;
  return {
    ...opening,
    sessionId: sessionId?.slice(0, SESSION_CHARS) ?? null,
    space: space?.slice(0, SPACE_CHARS) ?? null,
    model: shortName(model) ?? null,
  };
}

/**
 * Returns the closing without too long texts, and with only the numbers of the provider's usage: see boundedOpening().
 */
export function boundedClosing(closing: ReceiptClosing): ReceiptClosing {
  return {
    ...closing,
    upstreamRequestId: shortName(closing.upstreamRequestId),
    upstreamResponseId: shortName(closing.upstreamResponseId),
    modelReported: shortName(closing.modelReported),
    providerUsage: usageNumbers(closing.providerUsage),
  };
}

function shortName(text: string | null | undefined): string | undefined {
  return text !== null && text !== undefined && text.length <= NAME_CHARS ? text : undefined;
}

/** Makes the receipt of a call in the form that the contract publishes, without its signature. */
export function receiptOf(
  opening: ReceiptOpening,
  closing: ReceiptClosing,
  issuer: ReceiptIssuer,
): Receipt {
  const { provider } = opening;
  const decided = closing.decided ?? opening.decided;
  const total = wholeMs(closing.times.total);
  return {
    ...decided,
    api_key_id: opening.keyId,
    capture_state: closing.captureState,
    captured_records: closing.capturedRecords,
    // `total` comes from the monotonic clock, so a receipt never ends before it begins.
    completed_at: isoTime(opening.at + total),
    created_at: isoTime(opening.at),
    dialect: opening.dialect,
    error_code: closing.errorCode,
    error_source: closing.errorSource,
    estimator: ESTIMATOR,
    forwarded_sha256: closing.forwardedSha256 ?? null,
    http_status: closing.httpStatus,
    issuer: { node: issuer.node, seq: issuer.seq, service_version: issuer.version },
    kind: opening.kind,
    latency_ms: latencyOf(closing.times, total),
    model_reported: nameOrNull(closing.modelReported),
    model_requested: nameOrNull(opening.model ?? undefined),
    object: 'svc.receipt',
    output_tokens: outputOf(closing),
    provider_id: provider?.id ?? null,
    provider_kind: provider?.kind ?? null,
    provider_usage: usageNumbers(closing.providerUsage) ?? null,
    receipt_id: opening.receiptId,
    request_sha256: closing.requestSha256 ?? null,
    response_sha256: closing.responseSha256 ?? null,
    schema: 'svc.receipt/1',
    session_id: opening.sessionId === null ? null : cut(opening.sessionId, SESSION_CHARS),
    space: opening.space === null ? null : cut(opening.space, SPACE_CHARS),
    status: closing.status,
    streamed: opening.streamed,
    tenant_id: opening.tenant,
    upstream_host: provider?.host ?? null,
    upstream_request_id: nameOrNull(closing.upstreamRequestId),
    upstream_response_id: nameOrNull(closing.upstreamResponseId),
    upstream_status: closing.upstreamStatus ?? null,
  };
}

/**
 * Returns the provider's count of the output; null if the answer has no usage, or counts no output where svc estimates
 * some.
 */
function outputOf({ usage, uncountedTokens = 0 }: ReceiptClosing): number | null {
  if (usage === undefined || (usage.output === 0 && uncountedTokens > 0)) return null;
  return usage.output;
}

/**
 * Returns the canonical JSON of a receipt, which svc signs. Every receipt has a canonical JSON, because no text in a
 * receipt contains half a surrogate pair.
 */
export function receiptText(receipt: Receipt): string {
  return canonicalJson(receipt) ?? '';
}

export interface Receipt {
  readonly object: 'svc.receipt';
  readonly receipt_id: string;
  readonly tenant_id: string;
  readonly api_key_id: string;
  readonly status: ReceiptStatus;
  readonly issuer: {
    readonly node: string;
    readonly seq: number;
    readonly service_version: string;
  };
  readonly [member: string]: unknown;
}

/**
 * Makes a head: it states the number of the last receipt that a node has stored for a tenant. If a receipt with a
 * smaller number is missing, it is not stored yet or was removed.
 */
export function headOf(
  { node, tenant, lastSeq }: HeadFacts,
  { at, isClosed }: { readonly at: string; readonly isClosed: boolean },
) {
  return {
    object: 'svc.receipt_head',
    node,
    tenant_id: tenant,
    last_seq: lastSeq,
    /** True if the node makes no further receipts for the tenant. */
    closed: isClosed,
    at,
  } as const;
}

/**
 * Makes a total: it states how many receipts a tenant ever had. The number comes from the sums of usage, which are
 * kept longer than receipts. If the total exceeds the sum of the heads, a head was deleted or replaced by an older one.
 */
export function totalOf({ tenant, receipts, at }: TotalFacts) {
  return { object: 'svc.receipt_total', tenant_id: tenant, receipts, at } as const;
}

interface TotalFacts {
  readonly tenant: string;
  readonly receipts: number;
  readonly at: string;
}

export interface HeadFacts {
  readonly tenant: string;
  readonly node: string;
  readonly lastSeq: number;
}

function latencyOf(times: ReceiptTimes, total: number): object {
  return { ...Object.fromEntries(STEPS.map((step) => [step, msOrNull(times[step])])), total };
}

/** Bound on stated milliseconds: 24 days, longer than any request. */
const MS_MAX = 2 ** 31;

function wholeMs(ms: number): number {
  return Number.isFinite(ms) ? Math.min(Math.max(0, Math.round(ms)), MS_MAX) : 0;
}

function msOrNull(ms: number | undefined): number | null {
  return ms === undefined ? null : wholeMs(ms);
}

/** Matches names of models and ids of providers' answers. A name or id that does not match is null in a receipt. */
const NAME = /^[\w.:@/+~-]{1,256}$/;

/** Returns the text if it matches NAME, else null. A name with a secret becomes `[masked]`. */
function nameOrNull(text: string | undefined): string | null {
  if (text === undefined || !NAME.test(text)) return null;
  return maskSecrets(text).text === text ? text : '[masked]';
}

/** Cuts a text to `charsMax` characters. Replaces half a surrogate pair, because canonical JSON cannot contain it. */
function cut(text: string, charsMax: number): string {
  return text.slice(0, charsMax).replaceAll(/\p{Surrogate}/gu, '\u{FFFD}');
}
