import { createHmac, hash, timingSafeEqual } from 'node:crypto';

/**
 * The header for the local token. A client that sends a login cannot send the token in a credential header, so it sends
 * the token in this header, or a path token in the request's path (see splitTarget).
 */
export const TOKEN_HEADER = 'x-svc-local-token';

const PATH_TOKEN_PREFIX = 'svc_path_';
const PATH = /^\/t\/([^/?#]*)(.*)$/s;
const CLIENT_PATH = /^\/c\/([a-z-]{1,32})(\/.*)$/s;

/**
 * Returns the token for paths. Paths are visible in process lists, status lines and settings files, so it differs
 * from the local token, and it opens only model routes and relayed paths.
 */
export function pathTokenOf(localToken: string): string {
  const code = createHmac('sha256', localToken).update('svc path token 1').digest('base64url');
  return PATH_TOKEN_PREFIX + code;
}

export interface SplitTarget {
  /** The token in the target; undefined if there is none. */
  readonly pathToken: string | undefined;
  /** The client that the target names as `/c/CLIENT`; undefined if it names none. */
  readonly client: string | undefined;
  /** The target without the parts `/c/CLIENT` and `/t/TOKEN`. */
  readonly target: string;
}

/** Returns the proxy's address for one client, because some clients do not name themselves in their requests. */
export function urlForClient(url: string, client: string): string {
  return `${url}/c/${client}`;
}

/** Splits a target such as `/c/CLIENT/t/TOKEN/v1/messages`, so that the code behind the gate sees no token. */
export function splitTarget(target: string): SplitTarget {
  const [, client, behind = target] = CLIENT_PATH.exec(target) ?? [];
  const [, pathToken, rest = ''] = PATH.exec(behind) ?? [];
  if (pathToken === undefined) return { pathToken: undefined, client, target: behind };
  return { pathToken, client, target: rest.startsWith('/') ? rest : `/${rest}` };
}

/** Returns the address for a client that cannot send the local token in a header. */
export function withPathToken(url: string, localToken: string): string {
  return `${url}/t/${pathTokenOf(localToken)}`;
}

/** Says whether one of the texts is a valid token. It compares all digests, so that the time reveals nothing. */
export function isOneOf(presented: readonly string[], digests: readonly Buffer[]): boolean {
  let isValid = false;
  for (const text of presented) {
    const digest = digestOf(text);
    for (const valid of digests) isValid = timingSafeEqual(digest, valid) || isValid;
  }
  return isValid;
}

export function digestOf(token: string): Buffer {
  return hash('sha256', Buffer.from(token, 'latin1'), 'buffer');
}

export const CHALLENGE_HEADER = 'x-svc-challenge';
export const PROOF_HEADER = 'x-svc-proof';

interface Proven {
  readonly pid: number;
  readonly port: number;
}

/** Matches a challenge: 16 to 64 random bytes as base64url. */
const CHALLENGE = /^[A-Za-z0-9_-]{22,86}$/;
const PROOF = /^(\d{1,10})\.([A-Za-z0-9_-]{43})$/;

/**
 * Makes the proof with which a running proxy shows that it belongs to this user, without sending a token. It is
 * the HMAC of a fresh challenge, with the sha256 of the local token (`tokenDigest`) as its key. It covers process and
 * port, so another program cannot use the real proxy's proof as its own. Undefined if `challenge` has another form.
 */
export function makeProof(
  tokenDigest: Buffer,
  challenge: string,
  proven: Proven,
): string | undefined {
  if (!CHALLENGE.test(challenge)) return undefined;
  return `${proven.pid}.${codeOf(tokenDigest, challenge, proven).toString('base64url')}`;
}

/** Returns the process id if the proof was made with this digest, for this challenge and port; otherwise undefined. */
export function readProof(
  tokenDigest: Buffer,
  asked: { readonly challenge: string; readonly port: number },
  proof: string,
): number | undefined {
  const [, digits, code] = PROOF.exec(proof) ?? [];
  if (digits === undefined || code === undefined) return undefined;
  const pid = Number(digits);
  const expected = codeOf(tokenDigest, asked.challenge, { pid, port: asked.port });
  return timingSafeEqual(expected, Buffer.from(code, 'base64url')) ? pid : undefined;
}

function codeOf(tokenDigest: Buffer, challenge: string, { pid, port }: Proven): Buffer {
  return createHmac('sha256', tokenDigest)
    .update(`svc proof 1\n${challenge}\n${port}\n${pid}`)
    .digest();
}
