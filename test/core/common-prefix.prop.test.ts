import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { commonPrefix } from '../../src/core/request/request-view.ts';

test('the common prefix ends at the first byte that differs', () => {
  const sizes = fc.constantFrom(0, 1, 63, 64, 65, 300, 65_535, 65_536, 65_537, 200_000);
  fc.assert(
    fc.property(sizes, fc.nat(), fc.nat(100), (size, differs, more) => {
      const one = Buffer.alloc(size, 'a');
      const other = Buffer.alloc(size + more, 'a');
      expect(commonPrefix(one, other)).toBe(size);
      if (size === 0) return;
      const at = differs % size;
      other[at] = 1;
      expect(commonPrefix(one, other)).toBe(at);
      expect(commonPrefix(other, one)).toBe(at);
    }),
  );
});
