import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Bounds on what a person loads into the head who reads src/proxy/handle.ts; test/tidy.test.ts holds them. */
export const CLOSURE_FILES_MAX = 100;
export const CLOSURE_LINES_MAX = 15_000;

/** Returns the lines of each file that the code of `start` needs, without files that only give it types. */
export function closureOf(start) {
  const found = new Map();
  const waiting = [start];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue;
    const text = readFileSync(file, 'utf8');
    found.set(file, text.split('\n').length - 1);
    const imports = text.matchAll(
      /^(?:import|export) (?!type )(?:[^;'"]*?\sfrom )?['"](\.[^'"]+)['"]/gm,
    );
    for (const [, path] of imports) waiting.push(join(dirname(file), path));
  }
  return found;
}
