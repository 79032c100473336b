import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { MemoryError } from '../../ports/memory.ts';
import {
  BUSY,
  STOPPING,
  type StoreCallName,
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

/** A client waits for these before its request goes on; everything else can let them pass. */
const URGENT: ReadonlySet<StoreCallName> = new Set(['recall', 'findEntries', 'hold']);

// One call after the other. The urgent ones come first, so that a recall waits for at most the one
// small write that is under way; the others keep their order, and closing comes after all.
const urgent: StoreRequest[] = [];
const others: StoreRequest[] = [];
let isWorking = true;

parentPort?.on('message', (request: StoreRequest) => {
  enqueue(request);
  if (!isWorking) void answerAll();
});

// Opened before anyone asks, so that the first question does not pay for it.
void whileBusy(() => store.open()).then(answerAll);

function enqueue(request: StoreRequest): void {
  (URGENT.has(request.name) ? urgent : others).push(request);
}

async function answerAll(): Promise<void> {
  isWorking = true;
  for (;;) {
    receiveAll();
    const request = urgent.shift() ?? others.shift();
    if (request === undefined) break;
    await whileBusy(() => answer(request));
  }
  isWorking = false;
}

/** What has arrived meanwhile: events would wait until the queue is empty. */
function receiveAll(): void {
  if (parentPort === null) return;
  for (;;) {
    const received = receiveMessageOnPort(parentPort);
    if (received === undefined) return;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only the client sends.
    enqueue(received.message as StoreRequest);
  }
}

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
