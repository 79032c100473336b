import { asRecord } from '../../core/bytes/json-fields.ts';
import { isWholeReference } from '../../core/memory/reference.ts';

/** A call of the page's API, such as `GET now`, with the function that answers it. The session was checked before. */
export type UiRoute = readonly [name: string, answer: (call: ApiCall) => Promise<ApiAnswer>];

export interface ApiCall {
  readonly query: URLSearchParams;
  readonly body: unknown;
}

/** An answer to the page, sent as JSON. */
export type ApiAnswer = object;

/** An error that answers a call. Its message is for the user, and contains nothing of the request. */
export class UiRefusal extends Error {
  override readonly name = 'UiRefusal';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Deadline of a call to the memory, in milliseconds, while the user waits. A slower memory counts as unavailable. */
const WAIT_MS = 10_000;

export function deadline(): AbortSignal {
  return AbortSignal.timeout(WAIT_MS);
}

/** Returns a value of the query. Throws UiRefusal if it is missing, empty or too long. */
export function textIn(query: URLSearchParams, name: string, charsMax: number): string {
  const value = query.get(name);
  if (value === null || value === '' || value.length > charsMax) throw invalid(name);
  return value;
}

export function optionalTextIn(
  query: URLSearchParams,
  name: string,
  charsMax: number,
): string | undefined {
  const value = query.get(name);
  return value === null || value === '' ? undefined : textIn(query, name, charsMax);
}

export function numberIn(
  query: URLSearchParams,
  name: string,
  { fallback, max }: { readonly fallback: number; readonly max: number },
): number {
  const value = query.get(name);
  if (value === null) return fallback;
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0 || number > max) throw invalid(name);
  return number;
}

export function invalid(name: string): UiRefusal {
  return new UiRefusal(400, 'invalid', `The call has no valid “${name}”.`);
}

/** Bound on the references in one call. */
const REFS_MAX = 500;

/** Returns a member of a call's body. Throws UiRefusal if it is missing, no text, blank or too long. */
export function memberText(body: unknown, name: string, charsMax: number): string {
  const value = asRecord(body)[name];
  if (typeof value !== 'string' || value.trim() === '' || value.length > charsMax) {
    throw invalid(name);
  }
  return value;
}

export function optionalMember(body: unknown, name: string, charsMax: number): string | undefined {
  const value = asRecord(body)[name];
  return value === undefined || value === null || value === ''
    ? undefined
    : memberText(body, name, charsMax);
}

export function isRefs(value: unknown): value is readonly string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > REFS_MAX) return false;
  return value.every((ref) => typeof ref === 'string' && isWholeReference(ref));
}
