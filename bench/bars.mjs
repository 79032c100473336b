/**
 * The bars of a release, judged on one run. Ratios are to the bare relay, measured beside the product in
 * the same rounds. Recall and money have benches of their own.
 */

import { HOSTED_MEMORY } from './lib/targets.mjs';
import { BASE } from './suites/commands.mjs';

/**
 * Allowed to a request, for what it adds beside what the bare relay adds: a ratio, or so many milliseconds more where
 * that is more. A provider takes 500 to 20,000 ms.
 */
const ADDED = {
  '2k': { ratioMax: 2.5, moreMs: 1 },
  '100k': { ratioMax: 2.5, moreMs: 1 },
  '1m': { ratioMax: 2, moreMs: 0 },
  '4m': { ratioMax: 2, moreMs: 0 },
};
/** A new question may take so many milliseconds more than the bare relay. */
const RECALL_MS_MAX = { '2k': 6, '100k': 6, '1m': 6, '4m': 15 };
const EVENT_CPU_RATIO_MAX = 1.2;
const STARTUP_RATIO_MAX = 2;
/** Against node itself with commander loaded. */
const COMMAND_CPU_RATIO_MAX = 1.5;
const IDLE_MB_MAX = 120;
const OPEN_200_MB_MAX = 170;
const STALLED_MB_MAX = 8;
const STALLED_RATIO_MAX = 1.1;
/** A person's patience is longer, but the provider's meter runs. */
const ABORT_MS_MAX = 100;
/** One late frame at 50 events a second is 20 ms; half of it cannot be seen. */
const STALL_MS_MAX = 10;
/** With a thousand streams, against the bare relay. */
const CROWD_RATIO_MAX = 2;

export const PRODUCT = 'svc';
const REFERENCES = new Set([PRODUCT, HOSTED_MEMORY, 'direct', 'bare']);

/** Every bar that this run can judge: { what, product, bare, ratio, bar, isMet }. */
export function judge(suites) {
  return [
    ...judgeLatency(suites.latency),
    ...judgeAsk(suites.ask),
    ...judgeGrow(suites.grow),
    ...judgeStreams(suites),
    ...judgeCrowd(suites.crowd),
    ...judgeMemory(suites.memory),
    ...judgeStartup(suites.startup),
    ...judgeCommands(suites.commands),
    ...judgeAbort(suites.abort),
    ...judgeFidelity(suites.fidelity),
  ];
}

function judgeLatency(results) {
  if (results === undefined) return [];
  const peers = Object.keys(results).filter((name) => !REFERENCES.has(name));
  return Object.keys(ADDED).flatMap((size) => {
    const added = (name) => results[name][size].added;
    return [
      addedBar(`added to first byte, ${size}, ms`, size, added),
      ...peers.map((peer) => ({
        what: `added to first byte, ${size}, against ${peer}, ms`,
        product: added(PRODUCT),
        ratio: added(PRODUCT) / added(peer),
        bar: `< ${added(peer).toFixed(2)} of ${peer}`,
        isMet: added(PRODUCT) < added(peer),
      })),
    ];
  });
}

/** A new question waits for recall. */
function judgeAsk(results) {
  if (results === undefined) return [];
  return Object.entries(RECALL_MS_MAX).map(([size, more]) => {
    const [product, bare] = [results[PRODUCT][size].added, results.bare[size].added];
    return {
      what: `added to a new question, ${size}, ms`,
      product,
      bare,
      ratio: product / bare,
      bar: `<= bare + ${more}`,
      isMet: product <= bare + more,
    };
  });
}

function judgeGrow(results) {
  if (results === undefined) return [];
  return ['100k', '1m'].map((size) =>
    addedBar(
      `added to the next request of a growing ${size}, ms`,
      size,
      (name) => results[name][size].addedNext,
    ),
  );
}

function addedBar(what, size, addedOf) {
  const { ratioMax, moreMs } = ADDED[size];
  const [product, bare] = [addedOf(PRODUCT), addedOf('bare')];
  const isMet = product <= Math.max(bare * ratioMax, bare + moreMs);
  const bar = moreMs === 0 ? `<= ${ratioMax}x bare` : `<= ${ratioMax}x bare or bare + ${moreMs}`;
  return { what, product, bare, ratio: product / bare, bar, isMet };
}

function judgeStreams({ sse, pace, stall }) {
  const bars = [];
  if (sse !== undefined) {
    const cpu = (name) => sse[name].single.cpuUs;
    bars.push(
      ratioBar('CPU an event, µs', {
        product: cpu(PRODUCT),
        bare: cpu('bare'),
        ratioMax: EVENT_CPU_RATIO_MAX,
      }),
    );
  }
  if (pace !== undefined) {
    bars.push(limitBar('events held back', { results: pace, key: 'heldBack', max: 0 }));
    bars.push(limitBar('events lost', { results: pace, key: 'lost', max: 0 }));
  }
  if (stall !== undefined) {
    bars.push(
      limitBar('event delay p99 beside 1 MB requests, ms', {
        results: stall,
        key: 'busy99',
        max: STALL_MS_MAX,
      }),
    );
  }
  return bars;
}

function judgeCrowd(results) {
  if (results === undefined) return [];
  const p99 = (name) => results[name].p99;
  return [
    limitBar('streams cut, of a thousand', { results, key: 'cut', max: 0 }),
    ratioBar('event delay p99 with a thousand streams, ms', {
      product: p99(PRODUCT),
      bare: p99('bare'),
      ratioMax: CROWD_RATIO_MAX,
    }),
  ];
}

function judgeMemory(results) {
  if (results === undefined) return [];
  return [
    limitBar('idle, MB', { results, key: 'idle', max: IDLE_MB_MAX }),
    limitBar('200 open streams, MB', { results, key: 'open200', max: OPEN_200_MB_MAX }),
    stalledBar(results),
    factBar('a stalled reader gets the whole stream', results[PRODUCT].isWhole),
  ];
}

/** Most of what is held lies in the kernel's own socket buffers, which the bare relay has as well. */
function stalledBar(results) {
  const [product, bare] = [results[PRODUCT].heldMb, results.bare.heldMb];
  const isMet = product <= Math.max(STALLED_MB_MAX, bare * STALLED_RATIO_MAX);
  const bar = `<= ${STALLED_MB_MAX} or ${STALLED_RATIO_MAX}x bare`;
  return { what: 'sent to a stalled reader, MB', product, bare, ratio: product / bare, bar, isMet };
}

function judgeStartup(results) {
  if (results === undefined) return [];
  const served = (name) => results[name].servedMs;
  return [
    ratioBar('exec to first request served, ms', {
      product: served(PRODUCT),
      bare: served('bare'),
      ratioMax: STARTUP_RATIO_MAX,
    }),
  ];
}

function judgeCommands(results) {
  if (results === undefined) return [];
  const bare = results[BASE].cpuMs;
  return Object.keys(results)
    .filter((name) => name.startsWith(PRODUCT))
    .map((name) =>
      ratioBar(`${name}, ms of CPU`, {
        product: results[name].cpuMs,
        bare,
        ratioMax: COMMAND_CPU_RATIO_MAX,
      }),
    );
}

function judgeAbort(results) {
  if (results === undefined) return [];
  const { upload, providerDies, overloaded } = results[PRODUCT];
  return [
    limitBar('client gone in mid-stream, provider let go, ms', {
      results,
      key: 'midStreamMs',
      max: ABORT_MS_MAX,
    }),
    limitBar('client gone before the answer, ms', {
      results,
      key: 'beforeAnswerMs',
      max: ABORT_MS_MAX,
    }),
    factBar('half an upload is not sent on', upload !== 'SENT WHOLE'),
    factBar('a provider that dies does not look like an end', providerDies === 'broken'),
    factBar('529 passes', overloaded === 529),
  ];
}

function judgeFidelity(results) {
  if (results === undefined) return [];
  const { isKeyKept, areHeadersKept, ...byDialect } = results[PRODUCT];
  return [
    ...Object.entries(byDialect).map(([dialect, sameness]) =>
      factBar(`${dialect}: same bytes both ways`, Object.values(sameness).every(Boolean)),
    ),
    factBar('the client\u2019s key does not reach the provider', isKeyKept),
    factBar('x-svc headers do not reach the provider', areHeadersKept),
  ];
}

function ratioBar(what, { product, bare, ratioMax }) {
  const ratio = product / bare;
  return { what, product, bare, ratio, bar: `<= ${ratioMax}x bare`, isMet: ratio <= ratioMax };
}

function limitBar(what, { results, key, max }) {
  const product = results[PRODUCT][key];
  const bare = results.bare[key];
  return { what, product, bare, ratio: product / bare, bar: `<= ${max}`, isMet: product <= max };
}

function factBar(what, isMet) {
  return { what, product: isMet ? 'yes' : 'NO', bar: 'yes', isMet };
}
