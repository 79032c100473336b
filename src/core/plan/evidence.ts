import type { MemoryState } from './memory-state.ts';
import type { Modes } from '../http/modes.ts';
import type { Plan } from './plan.ts';

/**
 * The headers that show a client what was done to its request. There is no hosted receipt behind
 * them: they and the request log are the only per-request evidence.
 */

export interface Evidence {
  readonly version: string;
  readonly requestId: string;
  readonly modes: Modes;
  readonly memoryState: MemoryState;
  readonly plan: Plan;
}

/** Name, value, name, value: ready for the response head. */
export function evidenceHeaders({
  version,
  requestId,
  modes,
  memoryState,
  plan,
}: Evidence): string[] {
  return [
    'x-svc-local-proxy',
    version,
    'x-svc-request-id',
    requestId,
    'x-svc-memory-mode',
    modes.memory,
    'x-svc-memory-state',
    memoryState,
    'x-svc-compression-mode',
    plan.compressionMode,
    'x-svc-continuity-state',
    plan.continuityState,
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
