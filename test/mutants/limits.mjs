/** Limits of memory and time, each switched off by one change, and the test file that must then fail. */

const BUDGET = 'test/http/byte-budget.test.ts';
const SLICES = 'test/proxy/slices.test.ts';
const LIMITER = 'src/adapters/limiter/process-limiter.ts';
const ADMISSION = 'test/service/model-admission.test.ts';
const PACE = 'src/proxy/background-pace.ts';
const SHELF = 'src/service/models/handler-shelf.ts';
const SHELVED = 'test/service/handler-shelf.test.ts';

/** As in list.mjs. */
export const LIMITS = [
  {
    name: 'background work of all keys takes the thread as it likes',
    file: PACE,
    from: 'Math.max(this.#paceMs, thread.ms * this.#restRatio)',
    to: 'Math.max(this.#paceMs, this.#restRatio * 0)',
    test: 'test/proxy/background-pace.test.ts',
  },
  {
    name: 'on a node that is never idle no background work runs',
    file: 'src/proxy/background-queue.ts',
    from: '      if (!this.#busy.isBusyWith(key)) return key;\n',
    to: '      void key;\n',
    test: 'test/proxy/background-pace.test.ts',
  },
  {
    name: 'the background work of one key goes before that of all others',
    file: PACE,
    from: '      this.#queues.add(queue);\n      const begun',
    to: '      this.#queues = new Set([queue, ...this.#queues]);\n      const begun',
    test: 'test/proxy/background-pace.test.ts',
  },
  {
    name: 'handlers together hold more than their budget',
    file: SHELF,
    from: 'this.#bytes > bytesMax || ',
    to: '',
    test: SHELVED,
  },
  {
    name: 'a busy tenant pushes the others out',
    file: SHELF,
    from: '(this.#largest()?.places ?? this.#places)',
    to: '(this.#largest() === undefined ? this.#places : this.#places)',
    test: SHELVED,
  },
  {
    name: 'a budget forgets what was spent before a restart',
    file: LIMITER,
    from: 'Math.max(this.#spent.get(bucket) ?? 0, known)',
    to: 'Math.max(this.#spent.get(bucket) ?? 0, known - known)',
    test: ADMISSION,
  },
  {
    name: 'a budget lets the call pass that goes over it',
    file: LIMITER,
    from: 'spent >= ask.max || spent + ask.cost > ask.max',
    to: 'spent >= ask.max',
    test: 'test/ports/limiter.test.ts',
  },
  {
    name: 'a place ends while its call runs',
    file: 'src/service/model-admission.ts',
    from: '      this.#tell((signal) => this.#parts.limiter.renew(leases, signal), leases.length);\n',
    to: '',
    test: ADMISSION,
  },
  {
    name: 'a place that nobody holds any more stays taken',
    file: LIMITER,
    from: 'if (endsAt <= now) standing.delete(leaseId);',
    to: 'if (endsAt < 0) standing.delete(leaseId);',
    test: 'test/ports/limiter.test.ts',
  },
  {
    name: 'a call is settled twice',
    file: 'src/service/model-admission.ts',
    from: 'if (!isSettled) this.#settle(',
    to: 'this.#settle(',
    test: ADMISSION,
  },
  {
    name: 'the budget of a key is that of its tenant',
    file: 'src/core/service/limits.ts',
    from: 'keyId === undefined ? `tenant:${call.key.tenant}` : `key:${keyId}`',
    to: "keyId === '' ? keyId : `tenant:${call.key.tenant}`",
    test: ADMISSION,
  },
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
    file: 'src/http/request-bodies.ts',
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
