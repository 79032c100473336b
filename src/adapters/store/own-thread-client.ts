import type { StoreClientOptions } from './client.ts';
import { DESCRIPTORS } from './descriptors.ts';
import type { StoreCallName, StoreCalls } from './protocol.ts';
import { FileReplacedError } from './database.ts';
import { Store } from './store.ts';
import { MemoryError } from '../../core/errors.ts';

/**
 * Runs the store's calls on the calling thread, for a process that handles one hook event: starting a worker would
 * take longer than the answer.
 */

/** How long a call waits for a lock. After that, a capture stays in the outbox, and another process delivers it. */
export const BUSY_MS = 150;

export class OwnThreadClient {
  readonly #store: Store;
  readonly #leaveDescriptors = DESCRIPTORS.addUser();

  constructor(options: StoreClientOptions) {
    this.#store = new Store({
      folder: options.folder,
      descriptors: DESCRIPTORS,
      report: (line) => options.report(line),
      busyMs: BUSY_MS,
      // Do not check the file: with 16 MB that would take as long as all the rest of a hook.
      isTrusted: true,
    });
  }

  async call<Name extends StoreCallName>(
    name: Name,
    input: Parameters<StoreCalls[Name]>[0],
    signal?: AbortSignal,
  ): Promise<ReturnType<StoreCalls[Name]>> {
    if (signal?.aborted === true)
      throw new MemoryError('timeout', 'The memory did not answer in time.');
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The call with this name returns this type.
      return (await this.#store.call(name, input)) as ReturnType<StoreCalls[Name]>;
    } catch (error) {
      if (!(error instanceof FileReplacedError)) throw error;
      throw new MemoryError('unavailable', "The memory's file was replaced.", { cause: error });
    }
  }

  async close(): Promise<void> {
    await this.#store.call('close', undefined);
    this.#leaveDescriptors();
  }
}
