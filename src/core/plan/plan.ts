import { type Edit, insertBlock } from './item-edits.ts';
import {
  continuityState,
  type ContinuityState,
  effectiveMode,
  type Outcome,
  type MemoryState,
} from './continuity.ts';
import type { Placement } from '../recall/injections.ts';
import { referenceOf } from '../memory/reference.ts';
import type { LedgerEntry } from '../ledger/entries.ts';
import type { CompressionMode, Modes } from '../http/modes.ts';
import { isOmitted, type Omission, omit, type Omitting } from '../shortening/omissions.ts';
import { elisionEdits, type Replacement, type ToolOutput } from '../shortening/outputs.ts';
import type { RequestView } from '../conversation/view.ts';

/** Plans a request: which byte ranges change, and which compression mode and continuity state svc reports. */

export interface Shortening {
  /** Tool outputs that are left out. In shadow mode they are only measured. */
  readonly elided: readonly Replacement[];
  /** Whole exchanges that are left out. */
  readonly omitted: readonly Omission[];
  readonly outcome: Outcome;
  /** The number of tool calls in this request with which the model read left-out outputs again. */
  readonly readings?: number;
  /** Outputs and exchanges that are left out for the first time. */
  readonly added?: ReadonlySet<ToolOutput | Omission>;
  /**
   * A batch is what one request was the first to leave out. It is recorded at an item of that request. These are the
   * marks (see markOf) of the items of all batches that this request leaves out; undefined if they are not known.
   */
  readonly batches?: readonly string[] | undefined;
  /** The names (see backMark) of the texts of these batches that this request nevertheless has in full. */
  readonly whole?: readonly string[];
  /** The ledger entries that record `added`. If the provider refuses the request, svc takes them back. */
  readonly recorded?: readonly LedgerEntry[];
}

export interface PlanFacts {
  readonly view: RequestView;
  readonly modes: Modes;
  readonly placements: readonly Placement[];
  readonly shortening: Shortening;
  /** Edits of the lifetime in the client's cache marks; see longCacheEdits. */
  readonly cacheMarks: readonly Edit[];
  /** The edit that asks the provider to clear old tool outputs; see clearingEdit. */
  readonly clearing?: Edit | undefined;
}

export interface Plan {
  readonly edits: readonly Edit[];
  /** True if svc asks the provider to clear old tool outputs. */
  readonly asksToClear?: true;
  /** The mode that took effect; see effectiveMode. */
  readonly compressionMode: CompressionMode;
  readonly continuityState: ContinuityState;
  readonly originalTokens: number;
  readonly forwardedTokens: number;
  readonly recalledTokens: number;
  readonly elidedItems: number;
  readonly elidedTokens: number;
  /** References of the newest left-out outputs, with which a user can read them. */
  readonly elidedRefs: readonly string[];
  /**
   * What was left out of this request, and why not more. Undefined in shadow mode, and for a request that was not
   * planned.
   */
  readonly shortening?: Shortening | undefined;
}

/** The plan of a request that was only relayed, or that stopped before it was planned. */
export const NOTHING_PLANNED: Plan = {
  edits: [],
  compressionMode: 'passthrough',
  continuityState: 'not_applicable',
  originalTokens: 0,
  forwardedTokens: 0,
  recalledTokens: 0,
  elidedItems: 0,
  elidedTokens: 0,
  elidedRefs: [],
};

// Bound on references, so that a row of the request log stays short.
const REFS_MAX = 10;

export function makePlan(facts: PlanFacts): Plan {
  const { view, modes, shortening } = facts;
  const omitting = omit(view, shortening.omitted);
  // Shadow mode only measures. It forwards the request without any edit.
  const isShadow = modes.compression === 'shadow';
  const { edits, recalledTokens } = isShadow ? NOTHING_CHANGED : changesOf(facts, omitting);
  const elidedTokens = shortening.elided.reduce((sum, { saved }) => sum + saved, omitting.saved);
  return {
    edits,
    ...(facts.clearing !== undefined && !isShadow && { asksToClear: true as const }),
    compressionMode: effectiveMode(modes.compression, shortening.outcome),
    continuityState: continuityState(modes.compression, shortening.outcome),
    originalTokens: view.tokens,
    forwardedTokens: isShadow ? view.tokens : view.tokens + recalledTokens - elidedTokens,
    recalledTokens,
    elidedItems: shortening.elided.length + omitting.items,
    elidedTokens,
    elidedRefs: shortening.elided.slice(-REFS_MAX).map(({ output }) => referenceOf(output.digest)),
    shortening: isShadow ? undefined : shortening,
  };
}

interface Changes {
  readonly edits: readonly Edit[];
  readonly recalledTokens: number;
}

const NOTHING_CHANGED: Changes = { edits: [], recalledTokens: 0 };

function changesOf(
  { view, placements, shortening, cacheMarks, clearing }: PlanFacts,
  omitting: Omitting,
): Changes {
  const edits: Edit[] = [...elisionEdits(shortening.elided), ...omitting.edits, ...cacheMarks];
  if (clearing !== undefined) edits.push(clearing);
  let recalledTokens = 0;
  for (const { item, block, form, tokens } of placements) {
    // If the exchange with the block is left out, so is the block.
    if (isOmitted(item, shortening.omitted)) continue;
    const insertion = insertBlock(view, item, { block, form });
    if (insertion.length === 0) continue;
    edits.push(...insertion);
    recalledTokens += tokens;
  }
  return { edits, recalledTokens };
}

/**
 * Why svc did not read a body. 'unparseable': the body does not match its dialect, nests too deeply, or has an element
 * with too many parts (strings, and bytes outside strings); or the request has no body; or its route is no model route.
 * 'too_large': the body exceeds READ_LIMITS.
 */
export type Unread = 'unparseable' | 'too_large';

/** Returns the plan for a body that svc did not read or failed to change: the client's own bytes. */
export function untouchedPlan(
  modes: Modes,
  tokens: number,
  outcome: Unread | 'recall_degraded',
): Plan {
  return {
    ...NOTHING_PLANNED,
    compressionMode: effectiveMode(modes.compression, outcome),
    continuityState: continuityState(modes.compression, outcome),
    originalTokens: tokens,
    forwardedTokens: tokens,
  };
}

// --- the headers that show a client what svc did to its request

/** The program that answers the request: the local proxy, or a service. */
export type Issuer =
  | { readonly kind: 'local-proxy'; readonly version: string }
  /** A service writes a receipt for the request, under the request's id. */
  | { readonly kind: 'service' };

export interface Evidence {
  readonly issuer: Issuer;
  readonly requestId: string;
  readonly modes: Modes;
  readonly memoryState: MemoryState;
  readonly plan: Plan;
}

/** Returns the headers as name, value, name, value. */
export function evidenceHeaders(evidence: Evidence): string[] {
  const { plan } = evidence;
  return [
    ...stateHeaders(evidence),
    'x-svc-original-input-tokens',
    String(plan.originalTokens),
    'x-svc-forwarded-input-tokens',
    String(plan.forwardedTokens),
    'x-svc-recalled-tokens',
    String(plan.recalledTokens),
    'x-svc-elided-items',
    String(plan.elidedItems),
    'x-svc-elided-tokens',
    String(plan.elidedTokens),
  ];
}

/** Returns the headers of a request that svc only relays: they have no counts. */
export function relayedEvidence(facts: Omit<Evidence, 'memoryState' | 'plan'>): string[] {
  return stateHeaders({ ...facts, memoryState: 'off', plan: NOTHING_PLANNED });
}

/** Returns the headers of a model request that stopped before svc read it. */
export function unreadEvidence(facts: Omit<Evidence, 'memoryState' | 'plan'>): string[] {
  return evidenceHeaders({ ...facts, memoryState: 'off', plan: NOTHING_PLANNED });
}

function stateHeaders({ issuer, requestId, modes, memoryState, plan }: Evidence): string[] {
  return [
    ...issuerHeaders(issuer, requestId),
    'x-svc-memory-mode',
    modes.memory,
    'x-svc-memory-state',
    memoryState,
    'x-svc-compression-mode',
    plan.compressionMode,
    'x-svc-continuity-state',
    plan.continuityState,
  ];
}

/** Returns the header with which a service says that an error came from the provider; none for other answers. */
export function sourceHeaders(issuer: Issuer, providerStatus: number): string[] {
  const isTold = issuer.kind === 'service' && isProviderError(providerStatus);
  return isTold ? ['x-svc-error-source', 'provider'] : [];
}

/** Says whether a status is that of an error, or of a redirect, which svc does not follow. */
export function isProviderError(status: number): boolean {
  return status >= 300;
}

function issuerHeaders(issuer: Issuer, requestId: string): string[] {
  return issuer.kind === 'service'
    ? ['x-svc-request-id', requestId, 'x-svc-receipt-id', requestId]
    : ['x-svc-local-proxy', issuer.version, 'x-svc-request-id', requestId];
}
