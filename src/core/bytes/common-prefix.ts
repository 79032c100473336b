// A block is long enough that the native call costs nothing beside the comparison. It is short
// enough that finding the exact byte inside the differing block costs little more.
const BLOCK_BYTES = 65_536;

// Below this, a loop is as fast as a call.
const LOOP_BYTES = 64;

/** Length in bytes of what two buffers begin with in common. */
export function commonPrefix(one: Buffer, other: Buffer): number {
  const length = Math.min(one.length, other.length);
  let at = 0;
  let block = BLOCK_BYTES;
  while (at < length) {
    const end = Math.min(length, at + block);
    if (one.compare(other, at, end, at, end) === 0) {
      at = end;
    } else if (end - at > LOOP_BYTES) {
      block = (end - at) >> 2;
    } else {
      while (one[at] === other[at]) at += 1;
      return at;
    }
  }
  return length;
}
