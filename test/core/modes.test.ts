import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ProxyError } from '../../src/core/errors.ts';
import {
  decideModes,
  COMPRESSION_MODES,
  MEMORY_MODES,
  type MemoryMode,
} from '../../src/core/http/modes.ts';

const ALL = { read: true, write: true };
const limits = {
  memoryMode: 'read-write',
  compressionMode: 'deterministic',
  supports: ALL,
} as const;

function rights(mode: MemoryMode): Set<string> {
  return new Set(mode === 'off' ? [] : mode.split('-'));
}

// spec: 3.1-lower-only
test('the memory header can only lower what is configured, for every pair of modes', () => {
  for (const memoryMode of MEMORY_MODES) {
    for (const requested of MEMORY_MODES) {
      const { memory } = decideModes(['X-Svc-Memory-Mode', requested], { ...limits, memoryMode });
      const both = [...rights(memoryMode)].filter((right) => rights(requested).has(right));
      expect([...rights(memory)]).toEqual(both);
    }
  }
});

// spec: 3.1-default-by-scopes
test('without a header the mode is the strongest that the memory supports', () => {
  const modeWith = (read: boolean, write: boolean) =>
    decideModes([], { ...limits, supports: { read, write } }).memory;
  expect(modeWith(true, true)).toBe('read-write');
  expect(modeWith(true, false)).toBe('read');
  expect(modeWith(false, true)).toBe('write');
  expect(modeWith(false, false)).toBe('off');
});

// spec: 3.2-header-overrides
test('the compression header replaces the configured mode for this request', () => {
  for (const mode of COMPRESSION_MODES) {
    expect(decideModes(['x-svc-compression-mode', mode], limits).compression).toBe(mode);
  }
  expect(decideModes([], limits).compression).toBe('deterministic');
});

// spec: 7-422-invalid-mode
test('R8: a mode outside its vocabulary, empty or repeated is refused with MODE_INVALID', () => {
  const wrong = [
    ['x-svc-memory-mode', ''],
    ['x-svc-memory-mode', 'READ'],
    ['x-svc-memory-mode', 'off, off'],
    ['x-svc-memory-mode', 'off', 'x-svc-memory-mode', 'off'],
    ['x-svc-compression-mode', 'on'],
    ['x-svc-compression-mode', 'shadow', 'X-SVC-COMPRESSION-MODE', 'shadow'],
  ];
  for (const headers of wrong) {
    expect(() => decideModes(headers, limits)).toThrow(ProxyError);
    expect(() => decideModes(headers, limits)).toThrow(/must be given once/);
  }
});

test('whatever the header says, no right appears that was not configured', () => {
  fc.assert(
    fc.property(fc.constantFrom(...MEMORY_MODES), fc.string(), (memoryMode, value) => {
      try {
        const { memory } = decideModes(['x-svc-memory-mode', value], { ...limits, memoryMode });
        for (const right of rights(memory)) expect(rights(memoryMode).has(right)).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(ProxyError);
      }
    }),
  );
});
