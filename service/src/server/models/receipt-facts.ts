import { headerOf } from '../../../../src/core/http/header-rules.ts';
import type { Route } from '../../../../src/core/http/routes.ts';
import { modeOf } from '../../../../src/core/memory-api/keys.ts';
import { isProviderError } from '../../../../src/core/plan/plan.ts';
import { MEMORY_MODES } from '../../../../src/core/http/modes.ts';
import type { KnownFacts, RequestFacts } from '../../../../src/proxy/dependencies.ts';
import type { TenantProvider } from '../../core/providers.ts';
import {
  NOTHING_DECIDED,
  type ReceiptClosing,
  type ReceiptDecisions,
  type ReceiptKind,
  type ReceiptOpening,
  type ReceiptProvider,
  type ReceiptStatus,
} from '../../core/receipts.ts';
import type { Caller } from '../../ports/control-store.ts';
import { JournalFullError, type OpenReceipt } from '../../ports/receipt-store.ts';
import type { AdmittedCall } from '../admission.ts';
import { Buckets } from '../buckets.ts';
import { refusalOf } from '../fault.ts';
import type { ServingParts } from '../parts.ts';
import type { ProviderChoiceMade } from './provider-choice.ts';

/** Makes the opening of the receipt of a request that its handler has read. */
export function openingOf(call: ModelCall, facts: KnownFacts): ReceiptOpening {
  const { place, isStreamed } = facts;
  const { provider, model = call.model } = call.chosen ?? {};
  return {
    ...headOf(call),
    streamed: isStreamed,
    space: place?.space || null,
    sessionId: place?.conversation || null,
    model: model ?? null,
    provider: provider === undefined ? null : providerOf(provider),
    decided: decisionsOf(call, facts),
  };
}

function providerOf({ providerId: id, kind, baseUrl }: TenantProvider): ReceiptProvider {
  return { id, kind, host: new URL(baseUrl).hostname };
}

/** Makes the opening of the receipt of a request that never reached its handler. */
export function refusedOpening(call: ModelCall): ReceiptOpening {
  const unknown = { streamed: false, space: null, sessionId: null, model: null, provider: null };
  return { ...headOf(call), ...unknown, decided: NOTHING_DECIDED };
}

function headOf({ receiptId, at, caller, kind, route }: ModelCall) {
  const { tenant, keyId } = caller.key;
  const dialect = 'dialect' in route ? (route.dialect ?? null) : null;
  return { receiptId, at, tenant, keyId, kind, dialect };
}

function decisionsOf({ caller }: ModelCall, facts: KnownFacts): ReceiptDecisions {
  const { modes, plan, request, recalledBlocks } = facts;
  if (modes === undefined) return NOTHING_DECIDED;
  const asked = headerOf(request.headers, 'x-svc-memory-mode');
  const { elided = [], omitted = [] } = plan.shortening ?? {};
  const isShadow = plan.continuityState === 'shadow_only';
  return {
    memory_mode: MEMORY_MODES.find((mode) => mode === asked) ?? modeOf(caller.key.scopes),
    memory_mode_effective: modes.memory,
    memory_state: facts.memoryState,
    compression_mode_requested: modes.compression,
    compression_mode: plan.compressionMode,
    continuity_state: plan.continuityState,
    original_input_tokens: plan.originalTokens,
    forwarded_input_tokens: plan.forwardedTokens,
    recalled_tokens: plan.recalledTokens,
    recalled_items: recalledBlocks,
    elided_tokens: isShadow ? 0 : plan.elidedTokens,
    elided_tool_outputs: isShadow ? 0 : elided.length,
    removed_exchanges: isShadow ? 0 : omitted.length,
    shadow_input_tokens: isShadow ? Math.max(0, plan.originalTokens - plan.elidedTokens) : null,
    memory_generation: facts.memoryGeneration ?? null,
  };
}

export function closingOf(call: ModelCall, facts: RequestFacts): ReceiptClosing {
  const { row, head, answer, uncountedTokens, hashes, modes, captured } = facts;
  const failure = failureIn(call, facts);
  const status = statusOf(facts, failure);
  const upstreamId = head && requestIdIn(head.headers);
  const hasRecords = captured !== 'failed' && captured > 0;
  return {
    status,
    httpStatus: (failure?.status ?? row.status) || null,
    errorCode: failure?.code ?? null,
    errorSource: failure === undefined ? (OF_PROVIDER.has(status) ? 'provider' : null) : 'service',
    times: timesOf(call, facts),
    captureState: captureStateOf(facts),
    capturedRecords: hasRecords ? captured : 0,
    decided: modes === undefined ? undefined : decisionsOf(call, facts),
    upstreamStatus: head?.status,
    upstreamRequestId: upstreamId,
    upstreamResponseId: answer?.id,
    modelReported: answer?.model,
    usage: answer?.usage,
    uncountedTokens,
    providerUsage: answer?.usageTold,
    requestSha256: hashes?.request,
    forwardedSha256: hashes?.forwarded,
    responseSha256: hashes?.response,
  };
}

/** Returns how a request failed; undefined if it did not. An answer that the service's stop cut is a failure. */
function failureIn({ shutdown }: ModelCall, { row, error }: RequestFacts): Failure | undefined {
  if (row.end === 'client-gone' && shutdown.isCutting) {
    return { code: 'SHUTTING_DOWN', status: row.status };
  }
  return error === undefined ? undefined : refusalOf(error);
}

/** Returns the state of the capture. 'deferred' means that the exchange is in the outbox, which soon stores it. */
function captureStateOf({ modes, captured }: RequestFacts): ReceiptClosing['captureState'] {
  if (modes?.writes !== true) return 'off';
  if (captured === 'failed') return captured;
  return captured === 0 ? 'none' : 'deferred';
}

export interface Failure {
  readonly code: string;
  readonly status: number;
}

/** Makes the closing of the receipt of a request that never reached its handler. */
export function refusedClosing(call: ModelCall, failure: Failure, totalMs: number): ReceiptClosing {
  return {
    status: failure.code === 'INTERNAL' ? 'internal_error' : 'rejected',
    httpStatus: failure.status,
    errorCode: failure.code,
    errorSource: 'service',
    times: { total: totalMs, auth: call.authMs, limiter: call.enterMs },
    captureState: 'off',
    capturedRecords: 0,
  };
}

const OF_PROVIDER: ReadonlySet<ReceiptStatus> = new Set(['upstream_error', 'upstream_interrupted']);

const UNREACHED: ReadonlySet<string> = new Set([
  'PROVIDER_UNREACHABLE',
  'PROVIDER_ADDRESS_REFUSED',
  'PROVIDER_TIMEOUT',
]);

function statusOf({ row, head }: RequestFacts, failure: Failure | undefined): ReceiptStatus {
  if (failure !== undefined) {
    if (row.end === 'client-gone') return 'internal_error';
    if (UNREACHED.has(failure.code)) return 'upstream_error';
    return failure.code === 'INTERNAL' ? 'internal_error' : 'rejected';
  }
  if (row.end === 'client-gone') return 'client_aborted';
  if (row.end === 'upstream-cut') return 'upstream_interrupted';
  return isProviderError(head?.status ?? 0) ? 'upstream_error' : 'completed';
}

function timesOf(call: ModelCall, { row, captureMs }: RequestFacts): ReceiptClosing['times'] {
  const { authMs, enterMs = 0 } = call;
  const { body = 0, read = 0, admit = 0, recall, plan = 0, head, relay } = row.ms;
  const overhead = body + read + admit + (recall ?? 0) + plan;
  let total = 0;
  for (const ms of Object.values(row.ms)) total += ms;
  return {
    total,
    auth: authMs,
    overhead,
    limiter: enterMs + admit,
    capture: captureMs,
    recall,
    upstream_first_byte: head,
    upstream_total: head === undefined || relay === undefined ? undefined : head + relay,
  };
}

function requestIdIn(headers: readonly string[]): string | undefined {
  return headerOf(headers, 'request-id') ?? headerOf(headers, 'x-request-id');
}

/**
 * The rate of receipts for requests that reach no provider, for each tenant on each node. A user who tries things needs
 * fewer, and a client in a loop fills at most 200 MB a day and node.
 */
const RATE = { perMinute: 60, burst: 120 };

/**
 * Writes receipts of requests that reach no provider: refusals, and lists of models. Requests above a tenant's rate get
 * no receipt, because receipts are kept for months. Such a request is still in the log and in the metrics.
 */
export class UnforwardedReceipts {
  readonly #parts: Pick<ServingParts, 'receipts' | 'clock'>;
  readonly #buckets = new Buckets(RATE);

  constructor(parts: Pick<ServingParts, 'receipts' | 'clock'>) {
    this.#parts = parts;
  }

  /** Writes the receipt of a list of models. Returns false if the rate allows none. Throws JournalFullError. */
  served(opening: ReceiptOpening, closing: ReceiptClosing): boolean {
    const { receipts, clock } = this.#parts;
    if (this.#buckets.take(opening.tenant, clock.monotonic()) > 0) return false;
    receipts.reject(opening, closing);
    return true;
  }

  /** Writes the receipt of a refusal. Returns false if the rate or the journal allows none. */
  refused(opening: ReceiptOpening, closing: ReceiptClosing): boolean {
    try {
      return this.served(opening, closing);
    } catch (error) {
      if (!(error instanceof JournalFullError)) throw error;
      return false;
    }
  }
}

/** The facts of one model request from the check of its key on. */
export interface ModelCall {
  readonly receiptId: string;
  /** The time in `receiptId`, in milliseconds since 1970. */
  readonly at: number;
  readonly caller: Caller;
  readonly kind: ReceiptKind;
  readonly route: Route;
  /** Milliseconds that checking the key took. */
  readonly authMs: number;
  /** Milliseconds that the limiter took to count the call, without its check of tokens. */
  enterMs?: number;
  /** `isCutting`: true once the service ends open answers early, because it stops. */
  readonly shutdown: Readonly<{ isCutting: boolean }>;
  /** True once the handler has the request; then the handler writes the receipt. */
  isHandled: boolean;
  /** Becomes false if the request ends without a receipt: see UnforwardedReceipts. */
  hasReceipt: boolean;
  /** The model that the body names; undefined before the body is read, and if it names none. */
  model?: string | undefined;
  chosen?: ProviderChoiceMade;
  /** The estimated input tokens: of the client's request at first, of the forwarded request once it is planned. */
  inputTokens?: number;
  admitted?: AdmittedCall;
  receipt?: OpenReceipt;
}

export function receiptKind(route: Route, path: string): ReceiptKind {
  if (route.kind === 'model') return 'model';
  const last = path.slice(path.lastIndexOf('/') + 1);
  return HELPERS.find((helper) => helper === last) ?? 'models';
}

const HELPERS = ['count_tokens', 'compact', 'input_tokens'] as const;
