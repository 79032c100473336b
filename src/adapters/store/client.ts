import type { Worker } from 'node:worker_threads';
import { workerFile } from '../processes/worker-file.ts';
import { DESCRIPTORS } from './descriptors.ts';
import {
  BUSY,
  STOPPING,
  type StoreCalls,
  type StoreRequest,
  type StoreResponse,
  type WorkerInput,
} from './protocol.ts';
import { MemoryError } from '../../core/errors.ts';

/**
 * Calls the store's worker from the main thread. A call waits at most until its own signal aborts. If the worker dies,
 * the calls in progress fail, and the next call starts a new worker, within bounds. But if the worker ends because its
 * file was replaced, a new worker gets the calls in progress.
 */

/** Bound on waiting calls. So many of them mean that the worker hangs, so a further call fails at once. */
const WAITING_MAX = 1024;
/** Bound on starts of a worker within STARTS_WINDOW_MS. If a worker dies more often, further starts would not help. */
const STARTS_MAX = 5;
const STARTS_WINDOW_MS = 60_000;

/**
 * How long the process waits at its end for the call in progress. Most calls take milliseconds. The longest ones wait
 * five seconds for another process's lock, or read gigabytes.
 */
const EXIT_MS = 15_000;

/**
 * Bound on V8's young generation, which by default grows to 48 MB and hardly shrinks. 12 MB hold the garbage of a few
 * calls; a recall makes 3 MB. With 6 MB more garbage got into the old generation, so V8 collected the whole heap more
 * often.
 */
const YOUNG_MB = 12;

/** The calls of a worker by name, each with one parameter, as in StoreCalls. */
type CallTable<Calls> = { [Name in keyof Calls]: (input: never) => unknown };

interface Waiting {
  readonly request: StoreRequest;
  resolve(value: unknown): void;
  reject(error: MemoryError): void;
  /** Stops listening to the caller's signal. */
  release(): void;
}

export interface StoreClientOptions {
  readonly folder: string;
  report(line: string): void;
  /** Called when the database was deleted, replaced or overwritten. Data that were read from it are then invalid. */
  onReplaced?(): void;
  /** The file with the worker's code; undefined: that of the embedded store. */
  readonly worker?: URL;
  /** The options for the worker's store, as plain data. */
  readonly extra?: unknown;
}

interface Thread extends Pick<Worker, 'postMessage' | 'ref' | 'terminate' | 'unref'> {
  on(event: 'message', listener: (response: StoreResponse) => void): unknown;
  on(event: 'error' | 'exit', listener: () => void): unknown;
}

export function startThread(file: URL, workerData: WorkerInput): Thread {
  // Load this module only here. Hooks start no worker, and Node 24 needs 4 ms to load it.
  const threads = process.getBuiltinModule('node:worker_threads');
  return new threads.Worker(file, {
    workerData,
    // The worker gets no environment variables, which may contain keys.
    env: {},
    execArgv: ['--disable-warning=ExperimentalWarning'],
    // Without this, Node closes the thread's descriptors when it ends, and so releases the locks that other threads
    // hold on the same files.
    trackUnmanagedFds: false,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
}

/** Starts the threads of stores, which takes 70 ms each. Tests that do not need a thread replace `start`. */
export const THREADS = { start: startThread };

/** Runs the store's calls: in a worker (StoreClient), or on the calling thread (OwnThreadClient). */
export type StoreCaller = Pick<StoreClient, 'call' | 'close'>;

export class StoreClient<Calls extends CallTable<Calls> = StoreCalls> {
  readonly #options: StoreClientOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #aborted = new Int32Array(new SharedArrayBuffer(WAITING_MAX * 4));
  readonly #control = new Int32Array(new SharedArrayBuffer(8));
  #worker: Thread | undefined;
  #starts: number[] = [];
  #last = 0;
  #isClosed = false;
  readonly #leaveDescriptors = DESCRIPTORS.addUser();
  /** True if the worker ends because its file was replaced. Then the waiting calls are sent to the next worker. */
  #isReplaced = false;
  #closing: Promise<void> | undefined;

  constructor(options: StoreClientOptions) {
    this.#options = options;
    process.on('exit', this.#waitForWorker);
    this.#running();
  }

  /** Calls the worker. Rejects with MemoryError; with 'timeout' as soon as `signal` aborts. */
  async call<Name extends keyof Calls & string>(
    name: Name,
    input: Parameters<Calls[Name]>[0],
    signal?: AbortSignal,
  ): Promise<ReturnType<Calls[Name]>> {
    if (signal?.aborted === true) throw timeout();
    if (this.#isClosed) throw unavailable('The memory is closed.');
    if (this.#waiting.size >= WAITING_MAX) throw unavailable('The memory is overloaded.');
    const worker = this.#running();
    if (worker === undefined) throw unavailable('The memory stopped too often.');
    const value = await this.#ask({ worker, name, input }, signal);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The worker is of the same build, with the same table of calls.
    return value as ReturnType<Calls[Name]>;
  }

  /** Waits for all earlier calls, then ends the worker. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Refuse later calls: if the thread ends during one, the native driver aborts the whole process.
    this.#isClosed = true;
    const worker = this.#worker;
    if (worker !== undefined) {
      await this.#ask({ worker, name: 'close', input: undefined }).catch(() => undefined);
    }
    // No call runs any more, so do not wait for one at the exit. If the worker is ended before it has marked itself as
    // free, the mark stays, and the exit would wait in vain.
    process.off('exit', this.#waitForWorker);
    // On Node 20 closing a connection does not release the file while prepared statements exist. Ending the thread
    // frees them, and with them SQLite's locks.
    await worker?.terminate();
    this.#leaveDescriptors();
  }

  // Runs at the end of the process. The native driver aborts the process (SIGABRT) if its thread ends during a call. So
  // this function waits for the current call, at most EXIT_MS, and no other call begins.
  readonly #waitForWorker = (): void => {
    Atomics.store(this.#control, STOPPING, 1);
    if (this.#worker !== undefined) Atomics.wait(this.#control, BUSY, 1, EXIT_MS);
  };

  #ask(
    call: { worker: Thread; name: string; input: unknown },
    signal?: AbortSignal,
  ): Promise<unknown> {
    this.#last = (this.#last % (2 ** 31 - 1)) + 1;
    const number = this.#last;
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        Atomics.store(this.#aborted, number % WAITING_MAX, number);
        this.#settle(number)?.reject(timeout());
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      const release = (): void => signal?.removeEventListener('abort', onAbort);
      const request: StoreRequest = { number, name: call.name, input: call.input };
      this.#waiting.set(number, { request, resolve, reject, release });
      post(call.worker, request);
    });
  }

  #settle(number: number): Waiting | undefined {
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    waiting?.release();
    if (this.#waiting.size === 0) this.#worker?.unref();
    return waiting;
  }

  #running(): Thread | undefined {
    if (this.#worker !== undefined) return this.#worker;
    const now = performance.now();
    this.#starts = this.#starts.filter((start) => now - start < STARTS_WINDOW_MS);
    if (this.#starts.length >= STARTS_MAX) return undefined;
    this.#starts.push(now);
    const { folder, extra } = this.#options;
    const [aborted, control] = [this.#aborted, this.#control];
    const descriptors = DESCRIPTORS.slots;
    const workerData: WorkerInput = { folder, extra, aborted, control, descriptors };
    // Mark the worker as busy already now, because loading the driver is a native call too.
    Atomics.store(this.#control, BUSY, 1);
    const worker = THREADS.start(this.#options.worker ?? workerFile('store-worker'), workerData);
    worker.unref();
    worker.on('message', (response: StoreResponse) => this.#take(response));
    worker.on('error', () => this.#lose(worker));
    worker.on('exit', () => this.#lose(worker));
    this.#worker = worker;
    return worker;
  }

  #take(response: StoreResponse): void {
    switch (response.kind) {
      case 'report':
        this.#options.report(response.line);
        break;
      case 'replaced':
        this.#isReplaced = true;
        this.#options.onReplaced?.();
        break;
      case 'answer':
        this.#settle(response.number)?.resolve(response.value);
        break;
      case 'failure':
        this.#settle(response.number)?.reject(new MemoryError(response.reason, response.message));
    }
  }

  #lose(worker: Thread): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const next = this.#isReplaced ? this.#running() : undefined;
    this.#isReplaced = false;
    if (next !== undefined) {
      for (const { request } of this.#waiting.values()) post(next, request);
      return;
    }
    if (!this.#isClosed && this.#waiting.size > 0) {
      this.#options.report('The memory stopped and restarts.');
    }
    for (const number of Array.from(this.#waiting.keys())) {
      this.#settle(number)?.reject(unavailable('The memory stopped.'));
    }
  }
}

function post(worker: Thread, request: StoreRequest): void {
  // Keep the process alive while a call waits; #settle() calls unref() when none does.
  worker.ref();
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- Only a window's method has an origin.
  worker.postMessage(request);
}

function timeout(): MemoryError {
  return new MemoryError('timeout', 'The memory did not answer in time.');
}

function unavailable(message: string): MemoryError {
  return new MemoryError('unavailable', message);
}
