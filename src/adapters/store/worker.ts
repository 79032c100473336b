import { parentPort, workerData } from 'node:worker_threads';
import { MemoryError } from '../../ports/memory.ts';
import {
  BUSY,
  STOPPING,
  type StoreRequest,
  type StoreResponse,
  type WorkerInput,
} from './protocol.ts';
import { Store } from './store.ts';

/**
 * Entry of the store's worker thread: SQLite's calls are synchronous, and a query of 20 ms on the
 * main thread would hold up every stream for 20 ms.
 */

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only the client starts this file.
const { folder, aborted, control } = workerData as WorkerInput;
const store = new Store({ folder, report: (line) => send({ kind: 'report', line }) });

// One call after the other, in the order they came: opening the file waits, queries do not. It is
// opened before anyone asks, so that the first question does not pay for it.
let queue: Promise<void> = whileBusy(() => store.open());

parentPort?.on('message', (request: StoreRequest) => {
  queue = queue.then(() => whileBusy(() => answer(request)));
});

async function whileBusy(work: () => Promise<void>): Promise<void> {
  Atomics.store(control, BUSY, 1);
  try {
    if (Atomics.load(control, STOPPING) === 0) await work();
  } finally {
    Atomics.store(control, BUSY, 0);
    Atomics.notify(control, BUSY);
  }
}

async function answer({ number, name, input }: StoreRequest): Promise<void> {
  const isAborted = Atomics.load(aborted, number % aborted.length) === number;
  if (isAborted) return;
  try {
    send({ kind: 'answer', number, value: await store.call(name, input) });
  } catch (error) {
    const reason = error instanceof MemoryError ? error.reason : 'unavailable';
    const message = error instanceof MemoryError ? error.message : 'The memory failed.';
    send({ kind: 'failure', number, reason, message });
  }
  if (name === 'close') parentPort?.close();
}

function send(response: StoreResponse): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- That is a window's.
  parentPort?.postMessage(response);
}
