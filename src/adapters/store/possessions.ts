import { proofOf } from '../../core/memory-api/canonical.ts';
import type { Holding, HoldQuestion } from '../../ports/memory.ts';

/** Proves which texts the store holds, from their stored bytes. */

/** A stored text as the bytes over which a proof is computed; see textBytes() in core/memory-api/canonical.ts. */
export interface StoredBytes {
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** A part of the store that has texts. */
export interface Holder {
  /** Returns the texts with these digests that are stored in this space now. `now`: milliseconds since 1970. */
  bytesOf(space: string, digests: readonly string[], now: number): StoredBytes[];
}

/** Returns a proof for each of the texts that is stored: a keyed hash of its bytes. `now`: milliseconds since 1970. */
export function proveHeld(
  holders: readonly Holder[],
  { space, digests, nonce }: HoldQuestion,
  now: number,
): Holding[] {
  return holders
    .flatMap((holder) => holder.bytesOf(space, digests, now))
    .map(({ digest, bytes }) => ({ digest, proof: proofOf(nonce, bytes) }));
}
