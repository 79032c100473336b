import { proofOf } from '../../core/shortening/proofs.ts';
import type { Holding, HoldQuestion } from '../../ports/memory.ts';

/** Proves what the store holds, from the bytes that are stored now. */

/** A text that is stored, as the bytes that are proven; see textBytes() in core/shortening/proofs.ts. */
export interface StoredBytes {
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** Some of the texts that the store holds. */
export interface Holder {
  /** Those of the digests that it holds in this space, read now. `now`: milliseconds since 1970. */
  bytesOf(space: string, digests: readonly string[], now: number): StoredBytes[];
}

/** Hashes every byte that it proves. `now`: milliseconds since 1970. */
export function proveHeld(
  holders: readonly Holder[],
  { space, digests, nonce }: HoldQuestion,
  now: number,
): Holding[] {
  return holders
    .flatMap((holder) => holder.bytesOf(space, digests, now))
    .map(({ digest, bytes }) => ({ digest, proof: proofOf(nonce, bytes) }));
}
