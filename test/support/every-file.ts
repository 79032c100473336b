import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, expect, vi } from 'vitest';
import { DESCRIPTORS } from '../../src/adapters/store/descriptors.ts';
import { forgetOwnSecrets } from '../../src/core/redaction/own-secrets.ts';

/**
 * The same draws at every run: a change is judged by what it changed, not by its luck. What no draw
 * of these has met is looked for with SVC_TEST_SEED=random, or any number; a failure prints its seed.
 */
const SEED = 20_261_122;

const asked = process.env['SVC_TEST_SEED'];
if (asked !== 'random') fc.configureGlobal({ seed: asked === undefined ? SEED : Number(asked) });

// The files of a project run in one process, so each leaves the process as it was. What it left behind would make
// another file fail, or hide a fault there.
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

forgetOwnSecrets();

let found = stateOfProcess();
beforeAll(() => {
  found = stateOfProcess();
});
afterAll(() => {
  const left = stateOfProcess();
  const names = new Set([...found.keys(), ...left.keys()]);
  // Names alone: a value may be a key of the person who runs the tests.
  const changed = [...names].filter((name) => found.get(name) !== left.get(name));
  expect(changed, 'what this file left behind').toEqual([]);
});

/** Returns what all files of a process share. */
function stateOfProcess(): ReadonlyMap<string, string | number | undefined> {
  const events = process.eventNames().map(String);
  return new Map<string, string | number | undefined>([
    ['folder', process.cwd()],
    ['umask', process.umask()],
    // One that is not closed keeps the database files of all others open.
    ['open stores', DESCRIPTORS.users],
    ...Object.entries(process.env),
    ...events
      .filter((name) => name.startsWith('SIG') || name.startsWith('un'))
      .map((name) => [`listeners of ${name}`, process.listenerCount(name)] as const),
  ]);
}
