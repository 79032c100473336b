import { type Admission, admit, type GatePolicy } from './gate.ts';
import type { RequestHead } from './http-form.ts';
import type { Login } from './logins.ts';

/**
 * The gate of one connection. A client sends nearly the same head with every request of a connection,
 * and an admission depends on the head and the policy alone. So a head that equals the last admitted
 * one is admitted likewise, without the checks. A refusal is never remembered.
 *
 * Comparing the presented token with the remembered one reveals nothing (R4): the one who sends on this
 * connection has presented that token before.
 */
export class ConnectionGate {
  #last: LastAdmission | undefined;

  /**
   * Throws as `admit` does. `policy`: the same object as long as no token and no setting changes. The
   * list of headers in the answer is the same one as long as the client sends the same headers.
   */
  admit(head: RequestHead, policy: GatePolicy): Admission {
    const known = this.#last === undefined ? undefined : admitAgain(this.#last, head, policy);
    if (known !== undefined) return known;
    this.#last = undefined;
    const admission = admit(head, policy);
    if (charsOf(head) <= REMEMBERED_CHARS_MAX) {
      this.#last = {
        head,
        policy,
        login: policy.loginOf?.(admission.route),
        lengthAt: lengthPlace(head),
        admission,
      };
    }
    return admission;
  }
}

/** Real heads have 1,000 to 4,000 characters. With 2,048 connections svc remembers 32 MiB at most. */
const REMEMBERED_CHARS_MAX = 16_384;

interface LastAdmission {
  readonly head: RequestHead;
  readonly policy: GatePolicy;
  readonly login: Login | undefined;
  /** The place of the value of Content-Length, which differs from body to body; -1 where there is none. */
  readonly lengthAt: number;
  readonly admission: Admission;
}

/** Undefined: the checks have to decide. */
function admitAgain(
  { admission, head: known, policy: knownPolicy, login, lengthAt }: LastAdmission,
  head: RequestHead,
  policy: GatePolicy,
): Admission | undefined {
  if (policy !== knownPolicy || policy.loginOf?.(admission.route) !== login) return undefined;
  if (!isAlike(known, head, lengthAt)) return undefined;
  if (lengthAt === -1) return admission;
  const { body } = admission;
  if (body?.length === undefined) return undefined;
  const length = Number(head.headers[lengthAt]);
  if (!(length > 0 && length <= body.wireBytesMax)) return undefined;
  return { ...admission, body: { ...body, length } };
}

function isAlike(one: RequestHead, other: RequestHead, lengthAt: number): boolean {
  if (one.method !== other.method || one.target !== other.target) return false;
  if (one.httpVersion !== other.httpVersion) return false;
  if (one.headers.length !== other.headers.length) return false;
  for (let at = 0; at < one.headers.length; at += 1) {
    if (one.headers[at] !== other.headers[at] && at !== lengthAt) return false;
  }
  return true;
}

function lengthPlace({ headers }: RequestHead): number {
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at]?.toLowerCase() === 'content-length') return at + 1;
  }
  return -1;
}

function charsOf({ target, headers }: RequestHead): number {
  let chars = target.length;
  for (const part of headers) chars += part.length;
  return chars;
}
