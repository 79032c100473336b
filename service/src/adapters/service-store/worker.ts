import { serveCalls } from '../../../../src/adapters/store/call-loop.ts';
import { type ServiceStoreExtra, WorkerStore } from './store.ts';

/** Starts the store in its worker thread. */
serveCalls({
  makeStore: ({ folder, extra, descriptors }) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only sqlite-service-store.ts starts this file.
    new WorkerStore({ folder, descriptors, ...(extra as ServiceStoreExtra) }),
  // These calls run before others: requests wait for key look-ups, and clients wait for recalls.
  urgent: new Set(['findCaller', 'findAdmin', 'spaceState', 'recall', 'findAnswer']),
});
