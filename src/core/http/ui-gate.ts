import { refuse } from '../errors.ts';
import { isOwnHost } from './gate.ts';
import { pathOf } from './routes.ts';
import { checkForm, type HeaderIndex, indexHeaders, type RequestHead } from './http-form.ts';
import { TOKEN_HEADER } from './local-token.ts';

/**
 * The gate of svc's local page. It looks only at a request's head: it admits svc's own page and refuses other pages. It
 * does not check the session: src/local/ui/sessions.ts does that.
 */

export const UI_PATH = '/svc/ui';
export const UI_API_PATH = `${UI_PATH}/api/`;

/** The header in which the page sends the secret of its session. */
export const UI_SECRET_HEADER = 'x-svc-ui-secret';

/** Says whether a request is for the page. */
export function isUiTarget(target: string): boolean {
  if (!target.startsWith(UI_PATH)) return false;
  const next = target[UI_PATH.length];
  return next === undefined || next === '/' || next === '?';
}

export interface UiAdmission {
  readonly path: string;
  readonly query: string;
  readonly headers: HeaderIndex;
}

/** Checks a request's head. Throws ProxyError if the request may not proceed. */
export function admitUi(head: RequestHead, port: number): UiAdmission {
  const headers = indexHeaders(head.headers);
  checkForm(head, headers);
  const host = headers.get('host')?.[0]?.toLowerCase() ?? '';
  if (!isOwnHost(host, port)) {
    refuse('ORIGIN_REFUSED', 'The Host header does not name svc on this machine.');
  }
  const path = pathOf(head.target);
  checkOrigin(head, headers, host, path);
  const isApi = path.startsWith(UI_API_PATH);
  if (head.method !== 'GET' && !(isApi && head.method === 'POST')) {
    refuse('METHOD_NOT_ALLOWED', 'This path does not support this method.');
  }
  if (isApi) checkApi(head, headers);
  return { path, query: head.target.slice(path.length + 1), headers };
}

/** Refuses requests from other pages. Such a page may only link to svc's page, which contains no data by itself. */
function checkOrigin(head: RequestHead, headers: HeaderIndex, host: string, path: string): void {
  const origins = headers.get('origin') ?? [];
  if (origins.some((origin) => origin.toLowerCase() !== `http://${host}`)) {
    refuse('ORIGIN_REFUSED', 'The request comes from another web page.');
  }
  const sites = headers.get('sec-fetch-site') ?? [];
  if (sites.every((site) => site === 'same-origin' || site === 'none')) return;
  const isVisit =
    head.method === 'GET' &&
    path === UI_PATH &&
    headers.get('sec-fetch-mode')?.join() === 'navigate' &&
    headers.get('sec-fetch-dest')?.join() === 'document';
  if (!isVisit) refuse('ORIGIN_REFUSED', 'The request comes from another web page.');
}

/**
 * Refuses the credentials of model routes, a POST without an Origin, an encoded or too long body, and a body other than
 * JSON, because a form cannot send JSON.
 */
function checkApi(head: RequestHead, headers: HeaderIndex): void {
  const credentials = ['authorization', 'x-api-key', TOKEN_HEADER];
  if (credentials.some((name) => headers.has(name))) {
    refuse(
      'LOCAL_TOKEN_INVALID',
      'The API of the page accepts only the session of the page, not a token.',
    );
  }
  if (headers.has('transfer-encoding') || headers.has('content-encoding')) {
    refuse('TRANSFER_ENCODING_UNSUPPORTED', 'A body must be unencoded and have a Content-Length.');
  }
  if (head.method === 'GET') {
    if (Number(headers.get('content-length')?.[0] ?? 0) > 0) {
      refuse('REQUEST_MALFORMED', 'Only a POST request may have a body.');
    }
    return;
  }
  if (!headers.has('origin')) refuse('ORIGIN_REFUSED', 'The request has no Origin header.');
  if (headers.get('content-type')?.[0]?.toLowerCase() !== 'application/json') {
    refuse('CONTENT_TYPE_UNSUPPORTED', 'The Content-Type is not application/json.');
  }
  if (Number(headers.get('content-length')?.[0] ?? 0) > UI_BODY_BYTES_MAX) {
    refuse('BODY_TOO_LARGE', 'The body is over the limit.');
  }
}

/** Bytes of the longest body. An edited memory has at most 32,768 characters, which take less than 200 kB as JSON. */
export const UI_BODY_BYTES_MAX = 512 << 10;
