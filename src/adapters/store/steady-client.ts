import { within } from '../within.ts';
import { StoreClient, type StoreClientOptions } from './client.ts';
import { HELPER, type StoreCallName, type StoreCalls } from './protocol.ts';
import { MemoryError } from '../../core/errors.ts';

/**
 * Calls the store's worker, and a second worker for reads while the first is held up by another call, which may wait
 * for another process's lock (up to 5 s) or for a slow disk. SQLite lets a connection read while another one writes, so
 * recalls and proofs need not wait for that. The second worker takes about 9 MB, so it is started when it is needed and
 * ended after a while.
 */

/** The calls that the second worker may answer: they only read, and a request or a user waits for them. */
const READS: ReadonlySet<StoreCallName> = new Set<StoreCallName>([
  'hold',
  'recall',
  'conversationRequests',
  'retrieve',
  'list',
]);
/** Time after which an unanswered read counts as late: longer than most calls, and a tenth of its deadline. */
const LATE_MS = 30;
const UNUSED_MS = 60_000;

/** Runs the store's calls. */
export type StoreCaller = Pick<SteadyClient, 'call' | 'close'>;

export class SteadyClient {
  readonly #options: StoreClientOptions;
  readonly #first: StoreClient;
  #second: StoreClient | undefined;
  #ending: NodeJS.Timeout | undefined;
  /** True from a late read until the first worker answers again. */
  #isLate = false;
  /** True once the first worker has answered. Before that it is not late but starting. */
  #isOpen = false;
  #isClosed = false;

  constructor(options: StoreClientOptions) {
    this.#options = options;
    this.#first = new StoreClient(options);
  }

  /** Calls the store; see StoreClient.call. */
  async call<Name extends StoreCallName>(
    name: Name,
    input: Parameters<StoreCalls[Name]>[0],
    signal?: AbortSignal,
  ): Promise<ReturnType<StoreCalls[Name]>> {
    const isHelped = this.#isOpen && READS.has(name);
    const answer = this.#first.call(name, input, signal).then(
      (value) => {
        this.#isLate = false;
        this.#isOpen = true;
        return value;
      },
      (error: unknown) => {
        // A failed call is not late: the second worker would read the same file.
        if (!isTimeout(error)) this.#isLate = false;
        throw error;
      },
    );
    if (!isHelped || (!this.#isLate && !(await this.#isHeldUp(answer)))) return answer;
    if (this.#isClosed) return answer;
    this.#isLate = true;
    const other = this.#helper().call(name, input, signal);
    return Promise.any([answer, other]).catch(() => answer);
  }

  /**
   * Says whether another call holds the first worker up. Waits on while the worker runs an urgent call, which waits for
   * no lock.
   */
  async #isHeldUp(answer: Promise<unknown>): Promise<boolean> {
    // oxlint-disable-next-line no-await-in-loop -- It looks again after each wait.
    do if (await isSettledWithin(LATE_MS, answer)) return false;
    while (this.#first.isUrgent);
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#endHelper();
    await this.#first.close();
  }

  #helper(): StoreClient {
    this.#second ??= new StoreClient({ ...this.#options, extra: HELPER });
    clearTimeout(this.#ending);
    this.#ending = setTimeout(() => void this.#endHelper(), UNUSED_MS).unref();
    return this.#second;
  }

  async #endHelper(): Promise<void> {
    clearTimeout(this.#ending);
    const ended = this.#second;
    this.#second = undefined;
    await ended?.close();
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof MemoryError && error.reason === 'timeout';
}

async function isSettledWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const settled = work.then(
    () => true,
    () => true,
  );
  return (await within(ms, settled)) ?? false;
}
