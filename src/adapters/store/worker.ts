import { serveCalls } from './call-loop.ts';
import { STORE_LOOP } from './store.ts';

/**
 * The entry point of the store's worker thread. SQLite's calls are synchronous, so on the main thread a query of 20 ms
 * would block every stream for 20 ms.
 */
serveCalls(STORE_LOOP);
