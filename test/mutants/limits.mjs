/** Limits of memory and time, each switched off by one change, and the test file that must then fail. */

const BUDGET = 'test/http/byte-budget.test.ts';
const SLICES = 'test/proxy/slices.test.ts';

/** As in list.mjs. */
export const LIMITS = [
  {
    name: 'a proxy of another build is ended in the middle of an answer',
    file: 'src/cli/proxy/other-build.ts',
    from: 'if (open > 0) {',
    to: 'if (open > 99) {',
    test: 'test/cli/other-build.test.ts',
  },
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
    name: 'a chunk is freed though its memory is shared',
    file: 'src/http/free-chunk.ts',
    from: ' || byteLength !== buffer.byteLength',
    to: '',
    test: 'test/http/body.test.ts',
  },
  {
    name: 'a chunk is freed though it is the whole body',
    file: 'src/http/body.ts',
    from: 'this.#whole = chunk;\n      return;',
    to: 'this.#whole = chunk;\n      freeChunk(chunk);\n      return;',
    test: 'test/http/body.test.ts',
  },
  {
    name: 'the room of a body never comes back',
    file: 'src/local/request-bodies.ts',
    from: 'return { body, ...asSent, release: () => lease.release() };',
    to: 'return { body, ...asSent, release: () => {} };',
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
  {
    name: 'a body is decoded whose client went while the worker started',
    file: 'src/adapters/encoding/zstd-thread.ts',
    from: '    await running.online;\n    // A start takes some 50 ms. An abort in that time has no listener yet.\n    limits.signal?.throwIfAborted();\n',
    to: '    await running.online;\n',
    test: 'test/adapters/body-decoder.test.ts',
    only: 'went while it started',
  },
  {
    name: 'a list of any length is read',
    file: 'src/core/request/request-view.ts',
    from: "    if (all.length === READ_LIMITS.items) return 'too_large';\n",
    to: '',
    test: SLICES,
  },
  {
    name: 'long work is done in one piece',
    file: 'src/proxy/slices.ts',
    from: 'this.#clock.monotonic() >= until',
    to: 'false',
    test: SLICES,
  },
  {
    name: 'a time outside of the calendar is written',
    file: 'src/core/memory/times.ts',
    from: 'isTime(at) ? at : 0',
    to: 'at',
    test: 'test/core/times.test.ts',
  },
  {
    name: 'a journal may hold a time outside of the calendar',
    file: 'src/core/memory/record.ts',
    from: 'isTime(fields.at) &&',
    to: "typeof fields.at === 'number' &&",
    test: 'test/core/times.test.ts',
  },
  {
    name: 'an open folder of any purpose is made private',
    file: 'src/adapters/files/folder-purpose.ts',
    from: 'if (own === names.length && (own > 0 || kind.asked === true)) return true;',
    to: 'return true;',
    test: 'test/adapters/folder-purpose.test.ts',
  },
  {
    name: 'a folder that many use is taken',
    file: 'src/adapters/files/folder-purpose.ts',
    from: '(stat.mode & STICKY) !== 0',
    to: 'false',
    test: 'test/adapters/folder-purpose.test.ts',
  },
  {
    name: 'an answer without a body keeps its length',
    file: 'src/core/http/header-rules.ts',
    from: "if (plain === 'content-length' && BODYLESS.has(status)) continue;",
    to: '',
    test: 'test/core/header-rules.test.ts',
  },
  {
    name: 'metadata services may be configured',
    file: 'src/core/settings/config-upstreams.ts',
    from: "if (place === 'never') return",
    to: "if (place === 'public' && url.port === '1') return",
    test: 'test/core/host-class.test.ts',
  },
];
