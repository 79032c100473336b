/** Limits of memory and time, each switched off by one change, and the test file that must then fail. */

const BUDGET = 'test/http/byte-budget.test.ts';

/** As in list.mjs. */
export const LIMITS = [
  {
    name: 'a body takes room that is not there',
    file: 'src/http/byte-budget.ts',
    from: 'if (bytes <= this.#free) resolve(',
    to: 'if (bytes >= 0) resolve(',
    test: BUDGET,
  },
  {
    name: 'a body that grows takes room that is not there',
    file: 'src/http/byte-budget.ts',
    from: 'if (more > this.#free) throw tooBusy();',
    to: '',
    test: BUDGET,
  },
  {
    name: 'the room of a body never comes back',
    file: 'src/local/request-bodies.ts',
    from: 'return { body, release: () => lease.release() };\n      });\n    } finally {',
    to: 'return { body, release: () => {} };\n      });\n    } finally {',
    test: 'test/local/body-budget.test.ts',
  },
  {
    name: 'decoding goes on for a client that has gone',
    file: 'src/adapters/encoding/stream-decoder.ts',
    from: "signal?.addEventListener('abort', onAbort, { once: true });",
    to: '',
    test: 'test/adapters/body-decoder.test.ts',
    only: 'R38',
  },
];
