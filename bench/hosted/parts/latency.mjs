/** Time to the first body byte: service with memory off and on, local proxy, bare relay, peers. */
import { measureLatency } from '../../suites/latency.mjs';

const SIZES = ['2k', '100k', '1m'];

export const latency = partFor('output', 'the newest item is the output of a tool.');
export const ask = partFor('question', 'the newest item is a new question.');

function partFor(newest, title) {
  return {
    title: `Time to first body byte, ms: ${title}`,
    measure: ({ bench }) => measureLatency(bench, newest, SIZES),
    columns: ['target', ...SIZES.flatMap((size) => [`${size} p50`, 'added', 'p99', 'CPU ms'])],
    row: (result) =>
      SIZES.flatMap((size) => {
        const { p50, added, p99, cpuMs } = result[size];
        return [p50, added, p99, cpuMs];
      }),
  };
}
