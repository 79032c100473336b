const path = require('node:path');
const { requireCached } = require('../../../bin/cached.js');

/**
 * The file of the store's worker: its code is in `store-thread.cjs`, and comes from a code cache. To parse it was a sixth of
 * what a first request waits for on one core.
 */
const { save } = requireCached(path.join(__dirname, 'store-thread.cjs'));

/** The store is open by then, and its first search is over. */
const SAVE_MS = 1000;

/**
 * Seconds after the start of the process. Later it has set flags for its heap, and so a thread that begins then finds that
 * V8 refuses the cache. What it saved would be refused by the next process, and each start would be slow.
 */
const FLAGS_SET_S = 3;

setTimeout(() => {
  if (process.uptime() < FLAGS_SET_S) save();
}, SAVE_MS).unref();
