import type { Route } from '../../../../src/core/http/routes.ts';
import type { ReceiptKind } from '../../core/receipts.ts';
import type { Caller } from '../../ports/control-store.ts';
import type { OpenReceipt } from '../../ports/receipts.ts';
import type { AdmittedCall } from '../admission.ts';
import type { ProviderChoiceMade } from './provider-choice.ts';
import type { KnownFacts } from '../../../../src/proxy/dependencies.ts';

/** One model request of a caller, from the key on: what its parts tell each other. */
export interface ModelCall {
  readonly receiptId: string;
  /** Milliseconds since 1970: the time in the id. */
  readonly at: number;
  readonly caller: Caller;
  readonly kind: ReceiptKind;
  readonly route: Route;
  /** Milliseconds that the look-up of the key took. */
  readonly authMs: number;
  /** Milliseconds that counting the call took, before its tokens were checked. */
  enterMs?: number;
  readonly shutdown: Readonly<{ isCutting: boolean }>;
  /** From here on its handler writes the receipt. */
  isHandled: boolean;
  /** False where no receipt could be written. */
  hasReceipt: boolean;
  /** As the body names it; undefined while it is not read, and where it names none. */
  model?: string | undefined;
  chosen?: ProviderChoiceMade;
  /** The estimate with which it was admitted. */
  inputTokens?: number;
  admitted?: AdmittedCall;
  receipt?: OpenReceipt;
  /** The facts that the opening of its receipt tells. */
  opened?: KnownFacts;
}

/** The name of the receipt's kind, by the path of the request. */
export function receiptKind(route: Route, path: string): ReceiptKind {
  if (route.kind === 'model') return 'model';
  const last = path.slice(path.lastIndexOf('/') + 1);
  return HELPERS.find((helper) => helper === last) ?? 'models';
}

const HELPERS = ['count_tokens', 'compact', 'input_tokens'] as const;
