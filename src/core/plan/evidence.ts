import type { MemoryState } from './continuity.ts';
import type { Modes } from '../http/modes.ts';
import { NOTHING_PLANNED, type Plan } from './plan.ts';

/** Writes the headers that show a client what svc did to its request. */

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
