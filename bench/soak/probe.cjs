/**
 * Loaded into every thread of the measured process. On request it collects the garbage of the main thread and of the
 * store's thread, and tells the parent the bytes that stay. The first thread that the product starts is the store's.
 */
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');
const threads = require('node:worker_threads');

function liveBytes() {
  let collect;
  // Repeat it if another thread has just reset the flag: the product's threads do so when they collect while idle.
  while (typeof collect !== 'function') {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('globalThis.gc');
  }
  setFlagsFromString('--no-expose-gc');
  // The second collection waits for the first one's sweepers, which free buffers.
  for (const _ of [1, 2]) collect();
  // Not `external`, which lags by megabytes.
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const channel = new threads.BroadcastChannel('svc soak');
channel.unref();

if (threads.isMainThread) {
  let first;
  process.on('message', () => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- That is a window's.
    channel.postMessage(first);
  });
  process.channel.unref();
  channel.addEventListener('message', ({ data: store }) =>
    process.send({ main: liveBytes(), store }),
  );
  // The product starts its threads with flags of their own, and so without this file.
  threads.Worker = class extends threads.Worker {
    constructor(file, options = {}) {
      const execArgv = [...(options.execArgv ?? []), '--require', __filename];
      super(file, { ...options, execArgv });
      first ??= this.threadId;
    }
  };
} else {
  channel.addEventListener('message', ({ data: asked }) => {
    if (asked !== threads.threadId) return;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- That is a window's.
    channel.postMessage(liveBytes());
  });
}
