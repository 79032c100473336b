import { pathOf } from '../../../../src/core/http/gate.ts';
import { withoutHeader } from '../../../../src/core/http/header-rules.ts';
import type { RawHeaders } from '../../../../src/core/http/headers.ts';
import {
  type BodyForm,
  type BodyPolicy,
  checkBody,
  checkForm,
  checkModes,
  indexHeaders,
  type RequestHead,
} from '../../../../src/core/http/http-form.ts';
import { findPath, type PathEntry, type Route } from '../../../../src/core/http/routes.ts';
import type { ReceiptKind } from '../../core/receipts.ts';
import type { Presented } from '../authenticator.ts';
import { errorDialectOf } from './model-answers.ts';
import { receiptKind } from './model-call.ts';

/** The heads of model requests: what each says by itself. */

export interface ModelHead {
  readonly presented: Presented;
  readonly isAnthropic: boolean;
  /** Undefined for a path that is not served. */
  readonly entry: PathEntry | undefined;
  readonly route: Route;
  readonly kind: ReceiptKind;
  /** As they came, without Content-Length: the body states its own length. */
  readonly headers: RawHeaders;
  /** Checks what is left to check, once the caller is known. Throws ProxyError. */
  form(): BodyForm;
}

/**
 * Reads a head as far as a caller without a key may learn of it. `present` reads the key. Throws
 * ProxyError, and what `present` throws.
 */
export function readModelHead(
  head: RequestHead,
  bodies: BodyPolicy,
  present: () => Presented,
): ModelHead {
  const index = indexHeaders(head.headers);
  checkForm(head, index);
  const presented = present();
  const path = pathOf(head.target);
  const isAnthropic = index.has('anthropic-version');
  const entry = findPath({ path, isAnthropic, relayPaths: [] });
  const route = entry?.route ?? ({ kind: 'relay', dialect: errorDialectOf(head) } as const);
  return {
    presented,
    isAnthropic,
    entry,
    route,
    kind: receiptKind(route, path),
    headers: withoutHeader(head.headers, 'content-length'),
    form: () => {
      if (route.kind === 'model') checkModes(index);
      return checkBody(head.method, index, bodies);
    },
  };
}
