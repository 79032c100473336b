import { proofOf } from '../../core/shortening/proofs.ts';
import type { Holding, HoldQuestion } from '../../ports/memory.ts';

/** Proves which texts the store holds, from their stored bytes. */

/** A stored text as the bytes that are proven; see textBytes() in core/shortening/proofs.ts. */
export interface StoredBytes {
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** Gives the bytes of texts that the store has. */
export interface Holder {
  /** Returns those of the digests that are stored in this space now. `now`: milliseconds since 1970. */
  bytesOf(space: string, digests: readonly string[], now: number): StoredBytes[];
}

/** Proves texts by hashing all their bytes. `now`: milliseconds since 1970. */
export function proveHeld(
  holders: readonly Holder[],
  { space, digests, nonce }: HoldQuestion,
  now: number,
): Holding[] {
  return holders
    .flatMap((holder) => holder.bytesOf(space, digests, now))
    .map(({ digest, bytes }) => ({ digest, proof: proofOf(nonce, bytes) }));
}
