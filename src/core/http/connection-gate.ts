import { type Admission, admit, type GatePolicy } from './gate.ts';
import type { RequestHead } from './http-form.ts';
import { bodyAgain, LastHead } from './last-head.ts';
import type { Login } from './logins.ts';

/**
 * The gate of one connection. An admission depends on the head and the policy alone, so a head like the
 * last admitted one is admitted likewise.
 */
export class ConnectionGate {
  readonly #last = new LastHead<Known>();

  /**
   * Throws as `admit` does. `policy`: the same object as long as no token and no setting changes. The
   * list of headers in the answer is the same one as long as the client sends the same headers.
   */
  admit(head: RequestHead, policy: GatePolicy): Admission {
    const known = this.#admitAgain(head, policy);
    if (known !== undefined) return known;
    this.#last.forget();
    const admission = admit(head, policy);
    this.#last.keep(head, { admission, policy, login: policy.loginOf?.(admission.route) });
    return admission;
  }

  /** Undefined: the checks have to decide. */
  #admitAgain(head: RequestHead, policy: GatePolicy): Admission | undefined {
    const found = this.#last.find(head);
    if (found === undefined) return undefined;
    const { admission, policy: knownPolicy, login } = found.meaning;
    if (policy !== knownPolicy || policy.loginOf?.(admission.route) !== login) return undefined;
    const again = bodyAgain(admission.body, found.length);
    return again === undefined ? undefined : { ...admission, ...again };
  }
}

interface Known {
  readonly admission: Admission;
  readonly policy: GatePolicy;
  readonly login: Login | undefined;
}
