/** Loaded into the measured process: tells its parent the longest delay of the event loop, on request. */
const { isMainThread } = require('node:worker_threads');

if (isMainThread && process.send !== undefined) {
  let longestMs = 0;
  let last = performance.now();
  // A timer of 1 ms that comes late was held up by whatever ran before it.
  setInterval(() => {
    const now = performance.now();
    longestMs = Math.max(longestMs, now - last - 1);
    last = now;
  }, 1).unref();
  process.on('message', () => {
    process.send({ longestMs });
    longestMs = 0;
  });
  process.channel.unref();
}
