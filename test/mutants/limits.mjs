/** Limits of memory and time, each switched off by one change, and the test file that must then fail. */

const BUDGET = 'test/http/byte-budget.test.ts';
const SLICES = 'test/proxy/slices.test.ts';
const LIMITER = 'service/src/adapters/limiter/process-limiter.ts';
const ADMISSION = 'service/test/server/model-admission.test.ts';
const PACE = 'src/proxy/background-queue.ts';
const SHELF = 'service/src/server/models/handler-shelf.ts';
const SHELVED = 'service/test/server/handler-shelf.test.ts';

/** As in list.mjs. */
export const LIMITS = [
  {
    name: 'background work of all keys takes the thread as it likes',
    file: PACE,
    from: 'Math.max(this.#paceMs, tookMs * this.#restRatio)',
    to: 'Math.max(this.#paceMs, this.#restRatio * 0)',
    test: 'test/proxy/background-pace.test.ts',
  },
  {
    name: 'the background work of one key goes before that of all others',
    file: PACE,
    from: '    this.#queues.add(queue);\n',
    to: '    this.#queues = new Set([queue, ...this.#queues]);\n',
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
    test: 'service/test/ports/limiter.test.ts',
  },
  {
    name: 'a place ends while its call runs',
    file: 'service/src/server/admission.ts',
    from: '        this.#tell((signal) => this.#parts.limiter.renew(leases, signal));\n',
    to: '',
    test: ADMISSION,
  },
  {
    name: 'a place that nobody holds any more stays taken',
    file: LIMITER,
    from: 'if (endsAt > now) break;',
    to: 'if (endsAt > 0) break;',
    test: 'service/test/ports/limiter.test.ts',
  },
  {
    name: 'a call is settled twice',
    file: 'service/src/server/admission.ts',
    from: 'if (!isSettled) this.#settle(',
    to: 'this.#settle(',
    test: ADMISSION,
  },
  {
    name: 'the budget of a key is that of its tenant',
    file: 'service/src/core/limits.ts',
    from: 'keyId === undefined ? `tenant:${tenant}` : `key:${keyId}`',
    to: "keyId === '' ? keyId : `tenant:${tenant}`",
    test: ADMISSION,
  },
  {
    name: 'a proxy of another build is ended in the middle of an answer',
    file: 'src/cli/proxy/proxy-process.ts',
    from: 'if (open > 0) {',
    to: 'if (open > 99) {',
    test: 'test/cli/other-build.test.ts',
  },
  {
    name: 'a body takes room that is not there',
    file: 'src/http/request-bodies.ts',
    from: 'if (this.#fits(bytes, owner, 0)) resolve(',
    to: 'if (bytes >= 0) resolve(',
    test: BUDGET,
  },
  {
    name: 'a body that grows takes room that is not there',
    file: 'src/http/request-bodies.ts',
    from: 'if (!this.#fits(more, owner, 1)) throw tooBusy();',
    to: '',
    test: BUDGET,
  },
  {
    name: 'bodies of one owner take what the others need',
    file: 'src/http/request-bodies.ts',
    from: 'isAlone ? this.#free : this.#free - this.#bytesMax * RESERVED_SHARE',
    to: 'isAlone ? this.#free : this.#free',
    test: BUDGET,
  },
  {
    name: 'what a client got before it hung up is not booked',
    file: 'service/src/server/models/receipt-facts.ts',
    from: '    uncountedTokens,\n    providerUsage',
    to: '    providerUsage',
    test: 'service/test/server/model-budgets.test.ts',
  },
  {
    name: 'counts of a provider are believed however large they are',
    file: 'service/src/core/receipt-rows.ts',
    from: 'output: Math.min(output, TOKENS_MAX),',
    to: 'output,',
    test: 'service/test/ports/service-store.test.ts',
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
    file: 'src/adapters/encoding/body-decoder.ts',
    from: '    await running.online;\n    // Check again: nothing listened for an abort while the worker started, which takes about 50 ms.\n    limits.signal?.throwIfAborted();\n',
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
    file: 'src/proxy/deadline.ts',
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
