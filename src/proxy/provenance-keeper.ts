import type { Exchange } from '../core/conversation/exchanges.ts';
import type { MemoryRecord } from '../ports/memory.ts';
import { BackgroundPace, BackgroundQueue, type BusyCounter } from './background-queue.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Reading } from './read-request.ts';

/**
 * Stores the commit and the state of the concerned files with the records of a finished exchange.
 * It runs after the answer was relayed. A failed attempt is not repeated; svc then has no data
 * about these files and never marks them.
 */

/** The next exchange may change the files: a person takes longer to answer. */
const PACE_MS = 20;
/** The records reach the store before. */
const FLUSH_MS = 10_000;

type KeeperDependencies = Pick<ProxyDependencies, 'outbox' | 'code' | 'texts'>;

export interface FinishedExchange {
  readonly exchange: Exchange;
  /** Its records, the one that states most first. */
  readonly records: readonly MemoryRecord[];
}

export class ProvenanceKeeper {
  readonly #dependencies: KeeperDependencies;
  readonly #queue: BackgroundQueue;

  constructor(dependencies: KeeperDependencies, busy: BusyCounter) {
    this.#dependencies = dependencies;
    this.#queue = new BackgroundQueue(busy, new BackgroundPace({ paceMs: PACE_MS }));
  }

  /** Returns at once. */
  finished(reading: Reading, finished: FinishedExchange): void {
    const { workplace, view, place } = reading;
    if (this.#dependencies.code === undefined || workplace === undefined) return;
    if (finished.records.length === 0 || !finished.exchange.hasToolState) return;
    const doOne = async (): Promise<boolean> => {
      await this.#keep(reading, finished);
      return false;
    };
    this.#queue.add(place, { doOne, times: 1, bytes: view.bytes.length });
  }

  /** As BackgroundQueue.drain. */
  drain(withinMs: number): Promise<void> {
    return this.#queue.drain(withinMs);
  }

  async #keep(reading: Reading, { exchange, records }: FinishedExchange): Promise<void> {
    const { code, outbox, texts } = this.#dependencies;
    const { workplace, view, place } = reading;
    if (code === undefined || workplace === undefined) return;
    const said = records.map(({ text }) => text).join('\n');
    const now = await code.reader.look(workplace, texts.concernedFiles(view, exchange, said));
    if (now === undefined) return;
    await outbox.flush(FLUSH_MS);
    const digests = records.map(({ digest }) => digest);
    await code.provenance.keep([{ space: place.space, digests, root: workplace.root, ...now }]);
  }
}
