/** The bars of the service's provider proxy, judged on one run. */

const SIZES = ['2k', '100k', '1m'];
/** Against what the bare relay adds. */
const BARE_RATIO_MAX = {
  'hosted, memory off': { '2k': 1.7, '100k': 1.7, '1m': 1.7 },
  hosted: { '2k': 2.2, '100k': 2.2, '1m': 3 },
};
const LOCAL_RATIO_MAX = 1.4;
const LOAD_SHARE_MIN = 0.2;
const LOAD_PEER_RATIO_MIN = 2;
const RECEIPT_CPU_MS_MAX = 0.5;
const TENANTS_RATIO_MAX = 1.2;
const TENANTS_MB_MAX = 450;
const STREAMS_MB_MAX = 350;
const READABLE_P99_MS_MAX = 300;
const LIST_P99_MS_MAX = 10;

const OURS = new Set(['direct', 'bare', 'svc', ...Object.keys(BARE_RATIO_MAX)]);

/** Every bar that this run can judge: { what, product, beside, ratio, bar, isMet }. */
export function judge(parts) {
  return [
    ...judgeLatency(parts.latency),
    ...judgeLoad(parts.load),
    ...judgeOne(parts.receipt, ({ cpuMs }) => [
      atMost('CPU of a receipt, ms', cpuMs, RECEIPT_CPU_MS_MAX),
    ]),
    ...judgeOne(parts.tenants, ({ count, active, ratio, mb }) => [
      atMost(`first byte, ${active} active of ${count} tenants, of one`, ratio, TENANTS_RATIO_MAX),
      atMost('resident with them, MB', mb, TENANTS_MB_MAX),
    ]),
    ...judgeOne(parts.streams, ({ count, atOnce, cut, mb }) => [
      atMost(`cut of ${count} open streams`, cut, 0),
      atMost('streams that waited for another one', count - atOnce, 0),
      atMost('resident with them, MB', mb, STREAMS_MB_MAX),
    ]),
    ...judgeOne(parts.readable, ({ p99 }) => [
      atMost('receipt readable after the last byte, p99 ms', p99, READABLE_P99_MS_MAX),
    ]),
    ...judgeOne(parts.list, ({ count, farPage, first, far, floor }) => [
      {
        ...atMost(`first page of ${count} receipts, p99 ms`, first.p99, LIST_P99_MS_MAX),
        beside: floor.p99,
      },
      { ...atMost(`page ${farPage} of them, p99 ms`, far.p99, LIST_P99_MS_MAX), beside: floor.p99 },
    ]),
  ];
}

function judgeOne(results, barsOf) {
  return results === undefined ? [] : barsOf(results.hosted);
}

function judgeLatency(results) {
  if (results === undefined) return [];
  const added = (name, size) => results[name][size].added;
  const peers = Object.keys(results).filter((name) => !OURS.has(name));
  return Object.entries(BARE_RATIO_MAX).flatMap(([name, ratios]) =>
    SIZES.flatMap((size) => {
      const product = added(name, size);
      const beside = (other, max) =>
        ratioBar(`${name}: added, ${size}, ms`, {
          product,
          beside: added(other, size),
          other,
          max,
        });
      return [
        beside('bare', ratios[size]),
        ...(name === 'hosted' ? [beside('svc', LOCAL_RATIO_MAX)] : []),
        ...peers.map((peer) => beside(peer, 1)),
      ];
    }),
  );
}

function judgeLoad(results) {
  if (results === undefined) return [];
  const peers = Object.keys(results).filter((name) => !OURS.has(name));
  return Object.keys(BARE_RATIO_MAX).flatMap((name) => {
    const product = results[name].perSecond;
    const share = (other, min) => {
      const beside = results[other].perSecond;
      const ratio = product / beside;
      const what = `${name}: requests a second, 64 at once`;
      return { what, product, beside, ratio, bar: `>= ${min}x ${other}`, isMet: ratio >= min };
    };
    return [
      share('bare', LOAD_SHARE_MIN),
      ...peers.map((peer) => share(peer, LOAD_PEER_RATIO_MIN)),
    ];
  });
}

function ratioBar(what, { product, beside, other, max }) {
  const ratio = product / beside;
  return { what, product, beside, ratio, bar: `<= ${max}x ${other}`, isMet: ratio <= max };
}

function atMost(what, product, max) {
  return { what, product, bar: `<= ${max}`, isMet: product <= max };
}
