import { serveCalls } from '../../../../src/adapters/store/call-loop.ts';
import { STORE_LOOP } from './store.ts';

/** Starts the store in its worker thread. */
serveCalls(STORE_LOOP);
