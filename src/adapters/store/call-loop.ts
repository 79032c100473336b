import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { IdleCollector } from '../processes/heap-bound.ts';
import { CallQueue } from './call-queue.ts';
import { Descriptors } from './descriptors.ts';
import { FileReplacedError } from './database.ts';
import {
  BUSY,
  STOPPING,
  type StoreRequest,
  type StoreResponse,
  type WorkerInput,
} from './protocol.ts';
import { MemoryError } from '../../core/errors.ts';

/**
 * Answers the calls of a database worker one after the other. Urgent calls come first, so that a recall waits only for
 * the call that is running, and on a busy store for one more. The other calls keep their order. 'close' comes last.
 */

export interface ServedStore {
  /** Opens the store in advance. Never rejects: the first call reports a failure. */
  open(): Promise<void>;
  /** Answers a call. Throws MemoryError, or FileReplacedError if this thread must end. */
  call(name: string, input: unknown): Promise<unknown>;
}

export interface StoreInput {
  readonly folder: string;
  readonly extra: unknown;
  readonly descriptors: Descriptors;
  report(line: string): void;
}

export interface LoopOptions {
  readonly makeStore: (given: StoreInput) => ServedStore;
  /** Names of the urgent calls, for which a client's request waits. */
  readonly urgent: ReadonlySet<string>;
}

export function serveCalls({ makeStore, urgent }: LoopOptions): void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only the client starts a worker.
  const input = workerData as WorkerInput;
  const store = makeStore({
    folder: input.folder,
    extra: input.extra,
    descriptors: new Descriptors(input.descriptors),
    report: (line) => send({ kind: 'report', line }),
  });
  new CallLoop(store, input, urgent).start();
}

class CallLoop {
  readonly #store: ServedStore;
  readonly #input: WorkerInput;
  readonly #queue: CallQueue;
  readonly #idle = new IdleCollector();
  #isWorking = true;

  constructor(store: ServedStore, input: WorkerInput, urgent: ReadonlySet<string>) {
    this.#store = store;
    this.#input = input;
    this.#queue = new CallQueue(urgent);
  }

  start(): void {
    parentPort?.on('message', (request: StoreRequest) => {
      this.#queue.add(request);
      if (!this.#isWorking) void this.#answerAll();
    });
    // Open the file now, so that the first recall does not wait for that.
    void this.#whileBusy(() => this.#store.open()).then(() => this.#answerAll());
  }

  async #answerAll(): Promise<void> {
    this.#isWorking = true;
    for (;;) {
      this.#receiveAll();
      const request = this.#queue.next();
      if (request === undefined) break;
      await this.#whileBusy(() => this.#answer(request));
    }
    this.#isWorking = false;
    this.#idle.note();
  }

  /** Takes the calls that have arrived meanwhile. As events they would arrive only when the event loop runs again. */
  #receiveAll(): void {
    if (parentPort === null) return;
    for (;;) {
      const received = receiveMessageOnPort(parentPort);
      if (received === undefined) return;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only the client sends.
      this.#queue.add(received.message as StoreRequest);
    }
  }

  async #whileBusy(work: () => Promise<void>): Promise<void> {
    const { control } = this.#input;
    Atomics.store(control, BUSY, 1);
    try {
      if (Atomics.load(control, STOPPING) === 0) await work();
    } finally {
      Atomics.store(control, BUSY, 0);
      Atomics.notify(control, BUSY);
    }
  }

  async #answer({ number, name, input }: StoreRequest): Promise<void> {
    const { aborted } = this.#input;
    const isAborted = Atomics.load(aborted, number % aborted.length) === number;
    if (isAborted) return;
    try {
      send({ kind: 'answer', number, value: await this.#store.call(name, input) });
    } catch (error) {
      if (error instanceof FileReplacedError) leave();
      const reason = error instanceof MemoryError ? error.reason : 'unavailable';
      const message = error instanceof MemoryError ? error.message : 'The memory failed.';
      send({ kind: 'failure', number, reason, message });
    }
    if (name === 'close') parentPort?.close();
  }
}

/** Ends the worker. The client sends the unanswered calls to the next worker. Never returns. */
function leave(): never {
  send({ kind: 'replaced' });
  process.exit();
}

function send(response: StoreResponse): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- That is a window's.
  parentPort?.postMessage(response);
}
