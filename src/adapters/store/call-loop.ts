import { setTimeout as sleep } from 'node:timers/promises';
import {
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from 'node:worker_threads';
import { IdleCollector } from '../processes/heap-bound.ts';
import { CallQueue } from './call-queue.ts';
import { Descriptors } from './descriptors.ts';
import { FileReplacedError, LockedError } from './database.ts';
import {
  BUSY,
  STOPPING,
  type StoreRequest,
  type StoreResponse,
  type WorkerInput,
} from './protocol.ts';
import { MemoryError } from '../../core/errors.ts';

/**
 * Answers the calls of a database worker one after the other. Urgent calls come first, except that one other call is
 * answered after every URGENT_IN_A_ROW urgent ones. So a recall waits only for the running call, for earlier urgent
 * calls, and for a few others. The other calls keep their order. 'close' comes last. A frequent write that meets
 * another process's lock is tried again, and urgent calls are answered meanwhile.
 */

/** How long a call that meets a lock is tried again. On a slow disk another process's transaction may take seconds. */
const LOCKED_MS = 5000;
/** Pause between two attempts. Other processes of svc hold the lock for some milliseconds. */
const PAUSE_MS = 20;

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
  /** Names of the urgent calls, for which a request or a user waits. */
  readonly urgent: ReadonlySet<string>;
}

/** What the loop needs from the thread in which it runs. */
export interface Place {
  /** The port to the client. */
  readonly port: MessagePort;
  readonly input: WorkerInput;
  /** Called when no call waits. */
  idle(): void;
  /** Ends the store's thread. Never resolves. */
  leave(): Promise<never>;
}

/** Answers calls in the worker thread that runs this code; tests pass another `place`. */
export function serveCalls({ makeStore, urgent }: LoopOptions, place = ownThread()): void {
  const { input, port } = place;
  const store = makeStore({
    folder: input.folder,
    extra: input.extra,
    descriptors: new Descriptors(input.descriptors),
    report: (line) => send(port, { kind: 'report', line }),
  });
  new CallLoop(store, place, urgent).start();
}

function ownThread(): Place {
  if (parentPort === null) throw new Error('A store answers in a worker thread.');
  const collector = new IdleCollector();
  return {
    port: parentPort,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only the client starts a worker.
    input: workerData as WorkerInput,
    idle: () => collector.note(),
    leave: () => process.exit(),
  };
}

class CallLoop {
  readonly #store: ServedStore;
  readonly #place: Place;
  readonly #queue: CallQueue;
  /** The last call that met a lock, and the time of its first attempt that did so, as `performance.now()`. */
  #locked: { readonly number: number; readonly since: number } | undefined;
  #isWorking = true;

  constructor(store: ServedStore, place: Place, urgent: ReadonlySet<string>) {
    this.#store = store;
    this.#place = place;
    this.#queue = new CallQueue(urgent);
  }

  start(): void {
    this.#place.port.on('message', (request: StoreRequest) => {
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
    this.#place.idle();
  }

  /**
   * Takes the calls that have arrived since the last look. Their events are delivered only when the event loop runs,
   * and by then urgent calls would have waited for all the others.
   */
  #receiveAll(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#place.port);
      if (received === undefined) return;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only the client sends.
      this.#queue.add(received.message as StoreRequest);
    }
  }

  async #whileBusy(work: () => Promise<void>): Promise<void> {
    const { control } = this.#place.input;
    Atomics.store(control, BUSY, 1);
    try {
      if (Atomics.load(control, STOPPING) === 0) await work();
    } finally {
      Atomics.store(control, BUSY, 0);
      Atomics.notify(control, BUSY);
    }
  }

  async #answer(request: StoreRequest): Promise<void> {
    const { number, name, input } = request;
    const { input: shared, port } = this.#place;
    const isAborted = Atomics.load(shared.aborted, number % shared.aborted.length) === number;
    if (isAborted) return;
    try {
      send(port, { kind: 'answer', number, value: await this.#store.call(name, input) });
    } catch (error) {
      if (error instanceof LockedError && this.#mayTryAgain(number)) {
        this.#queue.putBack(request);
        await sleep(PAUSE_MS);
        return;
      }
      if (error instanceof FileReplacedError) {
        // The client sends unanswered calls to the next worker.
        send(port, { kind: 'replaced' });
        await this.#place.leave();
      }
      const reason = error instanceof MemoryError ? error.reason : 'unavailable';
      const message = error instanceof MemoryError ? error.message : 'The memory failed.';
      send(port, { kind: 'failure', number, reason, message });
    }
    if (name === 'close') port.close();
  }

  #mayTryAgain(number: number): boolean {
    const now = performance.now();
    if (this.#locked?.number !== number) this.#locked = { number, since: now };
    return now - this.#locked.since < LOCKED_MS;
  }
}

function send(port: MessagePort, response: StoreResponse): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- Only a window's method has an origin.
  port.postMessage(response);
}
