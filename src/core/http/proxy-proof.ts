import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Lets a running proxy prove whose it is without a token on the wire (T4). It answers a fresh
 * challenge with a code that only a holder of the local token can make. The code names the process
 * and the port. So it is useless to a stranger who passes a challenge on to the real proxy.
 */
export const CHALLENGE_HEADER = 'x-svc-challenge';
export const PROOF_HEADER = 'x-svc-proof';

export interface Proven {
  /** The proxy's process id. */
  readonly pid: number;
  /** The port that it listens on. */
  readonly port: number;
}

/** 16 to 64 random bytes as base64url: 128 bits cannot be asked for twice by chance. */
const CHALLENGE = /^[A-Za-z0-9_-]{22,86}$/;
const PROOF = /^(\d{1,10})\.([A-Za-z0-9_-]{43})$/;

/** `tokenDigest` is the sha256 of the local token. Undefined for what is no challenge. */
export function makeProof(
  tokenDigest: Buffer,
  challenge: string,
  proven: Proven,
): string | undefined {
  if (!CHALLENGE.test(challenge)) return undefined;
  return `${proven.pid}.${codeOf(tokenDigest, challenge, proven).toString('base64url')}`;
}

/** The process id, when the proof was made by a holder of the token for this challenge and port. */
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
