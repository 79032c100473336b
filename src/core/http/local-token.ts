import { createHmac, hash, timingSafeEqual } from 'node:crypto';

/**
 * The places in which a client presents the local token. A client that sends a login of its own has
 * no room for it in a credential header. So it uses the header below or the first segment of its
 * path.
 */

export const TOKEN_HEADER = 'x-svc-local-token';

const PATH_TOKEN_PREFIX = 'svc_path_';
const PATH = /^\/t\/([^/?#]*)(.*)$/s;
const CLIENT_PATH = /^\/c\/([a-z-]{1,32})(\/.*)$/s;

/**
 * The token for paths. Paths show in process lists, status lines and settings files, so it is not the
 * local token itself, and it opens model routes only.
 */
export function pathTokenOf(localToken: string): string {
  const code = createHmac('sha256', localToken).update('svc path token 1').digest('base64url');
  return PATH_TOKEN_PREFIX + code;
}

export interface SplitTarget {
  /** Undefined: the target has no place for a token. */
  readonly pathToken: string | undefined;
  /** The client that the address was made for; undefined in the address for everybody. */
  readonly client: string | undefined;
  /** The target without these segments. */
  readonly target: string;
}

/** The address of the proxy for one client: some clients do not name themselves in their requests. */
export function urlForClient(url: string, client: string): string {
  return `${url}/c/${client}`;
}

/** Takes client and token out of `/c/CLIENT/t/TOKEN/v1/messages`. Nothing else may see the token. */
export function splitTarget(target: string): SplitTarget {
  const [, client, behind = target] = CLIENT_PATH.exec(target) ?? [];
  const [, pathToken, rest = ''] = PATH.exec(behind) ?? [];
  if (pathToken === undefined) return { pathToken: undefined, client, target: behind };
  return { pathToken, client, target: rest.startsWith('/') ? rest : `/${rest}` };
}

/** Every comparison is made and digests have one length, so the time taken reveals nothing (R4). */
/** An address for a client that sends a credential of its own, or knows no command that prints one. */
export function withPathToken(url: string, localToken: string): string {
  return `${url}/t/${pathTokenOf(localToken)}`;
}

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
  /** The proxy's process id. */
  readonly pid: number;
  /** The port that it listens on. */
  readonly port: number;
}

/** 16 to 64 random bytes as base64url: 128 bits cannot be asked for twice by chance. */
const CHALLENGE = /^[A-Za-z0-9_-]{22,86}$/;
const PROOF = /^(\d{1,10})\.([A-Za-z0-9_-]{43})$/;

/**
 * Makes the proof with which a running proxy shows whose it is, without a token on the wire (T4): the answer to a fresh
 * challenge, with a code that only a holder of the local token can make. The code names the process and the port, so it
 * is useless to a stranger who passes a challenge on to the real proxy. `tokenDigest` is the sha256 of the local token.
 * Undefined for what is no challenge.
 */
export function makeProof(
  tokenDigest: Buffer,
  challenge: string,
  proven: Proven,
): string | undefined {
  if (!CHALLENGE.test(challenge)) return undefined;
  return `${proven.pid}.${codeOf(tokenDigest, challenge, proven).toString('base64url')}`;
}

/** Returns the process id, if a holder of the token made the proof for this challenge and port. */
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
