import { serveCalls } from './call-loop.ts';
import { Store } from './store.ts';

/**
 * Entry of the store's worker thread: SQLite's calls are synchronous, and a query of 20 ms on the
 * main thread would hold up every stream for 20 ms.
 */
serveCalls({
  makeStore: ({ extra, ...options }) =>
    new Store({ ...options, shared: extra instanceof SharedArrayBuffer ? extra : undefined }),
  urgent: new Set(['recall', 'findEntries', 'hold']),
});
