/**
 * Changes a body by cutting and inserting at byte offsets. Bytes outside the edits are never copied
 * or rebuilt: what comes out are views into the very same body, with the new bytes in between.
 */
import type { Span } from '../bytes/span.ts';

/** Puts `bytes` in the place of a span. An empty span inserts, empty bytes cut. */
export interface Edit extends Span {
  readonly bytes: Uint8Array;
}

/**
 * The edited body as pieces, in order, none of them empty. Without edits it is the body itself.
 * Edits may come in any order; those that insert at the same place stay in the order given.
 * Throws RangeError when edits overlap or lie outside the body: the plan is wrong then.
 */
export function applyEdits(body: Buffer, edits: readonly Edit[]): readonly Uint8Array[] {
  if (edits.length === 0) return [body];
  const ordered = edits.toSorted((a, b) => a.start - b.start || a.end - b.end);
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const edit of ordered) {
    if (edit.start < at) throw new RangeError('Two edits overlap, or one starts before the body.');
    if (edit.end < edit.start || edit.end > body.length) {
      throw new RangeError('An edit ends before it starts, or outside the body.');
    }
    pieces.push(body.subarray(at, edit.start), edit.bytes);
    at = edit.end;
  }
  pieces.push(body.subarray(at));
  return pieces.filter((piece) => piece.length > 0);
}
