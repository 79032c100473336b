/**
 * `npm run bench:compare`: what it costs to compare a request with the one before it, so that a cache miss has a cause.
 * The first request of a conversation digests all of it, each later one what is new. --gate: exit 1 when the bar is missed.
 */
import { parseArgs } from 'node:util';
import { makeBody, SIZES } from './lib/bodies.mjs';
import { buildProduct } from './lib/product.mjs';
import { drawTable, format, median, percentile } from './lib/statistics.mjs';

const { values: options } = parseArgs({ options: { gate: { type: 'boolean', default: false } } });

/** No answer waits for it, but the next request of another client may. */
const NEXT_MS_MAX = 0.1;
const JUDGED = '100k';
const CONVERSATIONS = 12;
const ROUNDS = 40;

const { modules, remove } = await buildProduct({
  accounts: 'src/proxy/accounts.ts',
  conversations: 'src/proxy/conversations.ts',
  reading: 'test/support/view-of.ts',
});
try {
  const rows = [];
  let isMet = true;
  for (const name of ['2k', '100k', '1m']) {
    const { first, next } = measure(SIZES[name]);
    const judged = median(next);
    if (name === JUDGED) isMet = judged <= NEXT_MS_MAX;
    rows.push([
      name,
      format(median(first), 3),
      format(judged, 3),
      format(percentile(next, 0.95), 3),
    ]);
  }
  const columns = ['size', 'first request, ms', 'each later one', 'its p95'];
  process.stdout.write(`\n${drawTable(columns, rows)}\n`);
  const verdict = isMet ? 'met' : 'MISSED';
  process.stdout.write(`\n${verdict}: at most ${NEXT_MS_MAX} ms at ${JUDGED}, median\n`);
  if (options.gate && !isMet) process.exitCode = 1;
} finally {
  remove();
}

function measure(bytes) {
  const times = { first: [], next: [] };
  for (let nth = 0; nth < CONVERSATIONS; nth += 1) {
    const conversations = new modules.conversations.Conversations();
    for (let round = 0; round < ROUNDS; round += 1) {
      const body = makeBody({ bytes, seed: nth + 1, moreRounds: round });
      const ms = compared(conversations, { body, session: `s${nth}` });
      // The first conversation warms the code up.
      if (nth > 0) times[round === 0 ? 'first' : 'next'].push(ms);
    }
  }
  return times;
}

/** Milliseconds of the comparison; the request then counts as answered. */
function compared(conversations, { body, session }) {
  const reading = modules.reading.readRequest(conversations, {
    id: 'r',
    route: { kind: 'model', dialect: 'anthropic_messages' },
    method: 'POST',
    target: '/v1/messages',
    headers: ['user-agent', 'claude-cli/2.0.44', 'x-claude-code-session-id', session],
    body,
    startedAt: performance.now(),
  });
  const { view, state } = reading;
  const from = performance.now();
  const { before, sketch } = modules.accounts.comparePrefix(view, state, from);
  const ms = performance.now() - from;
  const usage = { input: 10, cacheRead: 1, cacheWrite: 1, output: 1 };
  const times = { at: from, answeredAt: from, wallAt: from, lifetimeMs: 300_000 };
  state.sent.keep({ ...times, sketch, own: new Map(), usage }, before);
  return ms;
}
