import type { ExpectedBody, RequestHead } from './http-form.ts';

/**
 * The last head that a connection had admitted, and what it meant. A client sends nearly the same head
 * with every request of a connection, so a head that is alike is not checked again. A refusal is never
 * remembered.
 */
export class LastHead<Meaning> {
  #last: Remembered<Meaning> | undefined;

  /** Undefined where no head like this one is remembered. */
  find(head: RequestHead): Found<Meaning> | undefined {
    const last = this.#last;
    if (last === undefined || !isAlike(last, head)) return undefined;
    const { meaning, lengthAt } = last;
    return { meaning, length: lengthAt === -1 ? undefined : Number(head.headers[lengthAt]) };
  }

  keep(head: RequestHead, meaning: Meaning): void {
    this.#last = charsOf(head) > REMEMBERED_CHARS_MAX ? undefined : remember(head, meaning);
  }

  forget(): void {
    this.#last = undefined;
  }
}

/** Real heads have 1,000 to 4,000 characters. With 2,048 connections svc remembers 32 MiB at most. */
const REMEMBERED_CHARS_MAX = 16_384;

/** Heads that are admitted have each of them once at most. */
const SECRETS: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'x-svc-local-token']);

export interface Found<Meaning> {
  readonly meaning: Meaning;
  /** Content-Length as this head states it, or NaN; undefined where the head has none. */
  readonly length: number | undefined;
}

interface Remembered<Meaning> {
  readonly head: RequestHead;
  readonly meaning: Meaning;
  /** The place of the value of Content-Length, which differs from body to body; -1 where there is none. */
  readonly lengthAt: number;
  /** The places of the values that are secret. */
  readonly secretsAt: readonly number[];
}

function remember<Meaning>(head: RequestHead, meaning: Meaning): Remembered<Meaning> {
  const secretsAt: number[] = [];
  let lengthAt = -1;
  for (let at = 0; at < head.headers.length; at += 2) {
    const name = head.headers[at]?.toLowerCase() ?? '';
    if (name === 'content-length') lengthAt = at + 1;
    else if (SECRETS.has(name)) secretsAt.push(at + 1);
  }
  return { head, meaning, lengthAt, secretsAt };
}

function isAlike({ head: one, lengthAt, secretsAt }: Remembered<unknown>, other: RequestHead) {
  if (one.method !== other.method || one.target !== other.target) return false;
  if (one.httpVersion !== other.httpVersion) return false;
  if (one.headers.length !== other.headers.length) return false;
  // First: a value that is unequal elsewhere then tells nothing about a secret.
  for (const at of secretsAt) {
    if (!isSameSecret(one.headers[at] ?? '', other.headers[at] ?? '')) return false;
  }
  for (let at = 0; at < one.headers.length; at += 1) {
    if (at !== lengthAt && !secretsAt.includes(at) && one.headers[at] !== other.headers[at]) {
      return false;
    }
  }
  return true;
}

/**
 * In a time that does not depend on the place of the first difference: a proxy in front may put several
 * callers on one connection.
 */
function isSameSecret(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  // By code units: every one of them counts.
  for (let at = 0; at < one.length; at += 1) {
    // oxlint-disable-next-line unicorn/prefer-code-point
    difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  }
  return difference === 0;
}

function charsOf({ target, headers }: RequestHead): number {
  let chars = target.length;
  for (const part of headers) chars += part.length;
  return chars;
}

/**
 * The body of a head that is like an admitted one, but for its length. Undefined: the checks have to decide.
 */
export function bodyAgain(
  body: ExpectedBody | undefined,
  length: number | undefined,
): { readonly body: ExpectedBody | undefined } | undefined {
  if (length === undefined) return { body };
  if (body?.length === undefined) return undefined;
  return length > 0 && length <= body.wireBytesMax ? { body: { ...body, length } } : undefined;
}
