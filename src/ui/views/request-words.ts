import type { RequestRow } from '../../ports/request-log.ts';
import { hrefOf } from '../client/router.ts';
import { short } from '../format.ts';

/** Short words about one request, for every view that lists some. */

export function sizeText({ originalInputTokens: came, forwardedInputTokens: went }: RequestRow) {
  return came === went ? short(came) : `${short(came)} → ${short(went)}`;
}

export function requestHref({ id }: RequestRow): string {
  return hrefOf('request', { id });
}
