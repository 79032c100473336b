import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');

test('an object literal of the bundle begins with a spread of nothing, so that members can follow it quickly', () => {
  const bundle = readFileSync(join(root, 'dist', 'quick', 'start.cjs'), 'utf8');
  // The record of a memory, as an example: its text, and the members that all records share.
  expect(bundle).toMatch(/\{\.{3}\[\],\.{3}\w+,\.{3}\w+,\.{3}\w+&&\{source:"unverified"\}\}/);
  expect(bundle.split('{...[],').length).toBeGreaterThan(100);
});
