import type { Placement } from '../core/recall/injections.ts';
import { BackgroundPace, BackgroundQueue, type BusyCounter } from './background-queue.ts';
import type { CaptureKeeper } from './capture-keeper.ts';
import { heldBytes } from './conversations.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { KeepCall, Shortener } from './shortener.ts';

/** Work of a handler that can wait, because every later request contains the same data. */

/**
 * An exchange takes about 2 ms of this thread and up to 10 of the store's: a tenth of one core, on
 * a machine that has only one.
 */
const HISTORY_MS = 100;
/** Tools run longer, so what a request brought is kept before the next one comes. */
const AHEAD_MS = 20;

interface Keepers {
  readonly busy: BusyCounter;
  readonly keeper: CaptureKeeper;
  readonly shortener: Shortener;
}

type Pace = Pick<ProxyDependencies, 'background' | 'changed'>;

export class BackgroundWork {
  readonly #keepers: Keepers;
  readonly #history: BackgroundQueue;
  readonly #ahead: BackgroundQueue;

  readonly #changed: () => void;

  constructor({ background, changed = () => undefined }: Pace, keepers: Keepers) {
    const queueOf = (paceMs: number) =>
      new BackgroundQueue(keepers.busy, background ?? new BackgroundPace({ paceMs }));
    this.#keepers = keepers;
    this.#changed = changed;
    this.#history = queueOf(HISTORY_MS);
    this.#ahead = queueOf(AHEAD_MS);
  }

  get bytes(): number {
    return this.#history.bytes + this.#ahead.bytes;
  }

  keepLater(call: KeepCall, placements: readonly Placement[]): void {
    const { reading, settings } = call;
    const { keeper, shortener } = this.#keepers;
    const bytes = heldBytes(reading.view);
    const keepOutputs = async (): Promise<boolean> => {
      await shortener.keepAhead(call);
      this.#changed();
      return false;
    };
    this.#ahead.add(reading.place, { doOne: keepOutputs, times: 1, bytes });
    // The exchanges before svc came.
    const keepHistory = async (): Promise<boolean> => {
      const isMore = await keeper.keepHistory(reading, placements);
      this.#changed();
      return isMore;
    };
    const times = keeper.hasHistory(reading) ? settings.elisionCaptureLimit : 0;
    this.#history.add(reading.place, { doOne: keepHistory, times, bytes });
  }

  /** As BackgroundQueue.drain. */
  async drain(withinMs: number): Promise<void> {
    await Promise.all([this.#history.drain(withinMs), this.#ahead.drain(withinMs)]);
  }

  /** Forgets all work, and takes none any more. */
  close(): void {
    this.#history.close();
    this.#ahead.close();
  }
}
