const path = require('node:path');
const { requireCached } = require('../../../bin/cached.js');

/**
 * The file of the store's worker: its code is in `store-thread.cjs`, and comes from a code cache. To parse it was a sixth of
 * what a first request waits for on one core.
 */
const { save } = requireCached(path.join(__dirname, 'store-thread.cjs'));

/** The store is open by then, and its first search is over; later, other flags of V8 are set. */
const SAVE_MS = 1000;

setTimeout(save, SAVE_MS).unref();
