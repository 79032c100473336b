import { EventEmitter } from 'node:events';
import { type MessagePort, MessageChannel } from 'node:worker_threads';
import { STORE_LOOP as SERVICE_STORE_LOOP } from '../../service/src/adapters/service-store/store.ts';
import { type LoopOptions, serveCalls } from '../../src/adapters/store/call-loop.ts';
import { startThread, THREADS } from '../../src/adapters/store/client.ts';
import type { WorkerInput } from '../../src/adapters/store/protocol.ts';
import { STORE_LOOP } from '../../src/adapters/store/store.ts';

/**
 * Runs stores on the thread of the test, from their source. Messages are copied as between threads. A file whose
 * subject is the thread itself calls `keepThreads`.
 */

const STORES: Readonly<Record<string, LoopOptions>> = {
  'store-worker': STORE_LOOP,
  'service-store-worker': SERVICE_STORE_LOOP,
};

/** Keeps real threads in this file. */
export function keepThreads(): void {
  THREADS.start = startThread;
}

THREADS.start = (file, input) => {
  const name = /([\w-]+)\.cjs$/.exec(file.pathname)?.[1] ?? '';
  const store = STORES[name];
  return store === undefined ? startThread(file, input) : new SameThread(store, input);
};

class SameThread extends EventEmitter {
  readonly #port: MessagePort;

  constructor(store: LoopOptions, input: WorkerInput) {
    super();
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on('message', (message: unknown) => this.emit('message', message));
    port1.on('close', () => this.emit('exit', 0));
    // The client waits for these at the end of the process, and here nobody could wake it.
    const control = new Int32Array(new SharedArrayBuffer(input.control.byteLength));
    serveCalls(store, {
      port: port2,
      input: { ...input, control },
      idle: () => undefined,
      leave: () => {
        port2.close();
        return new Promise(() => undefined);
      },
    });
    port2.unref();
  }

  postMessage(message: unknown): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- That is a window's.
    this.#port.postMessage(message);
  }

  ref(): void {
    this.#port.ref();
  }

  unref(): void {
    this.#port.unref();
  }

  terminate(): Promise<number> {
    this.#port.close();
    return Promise.resolve(0);
  }
}
