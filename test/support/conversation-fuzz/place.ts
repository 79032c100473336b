import type { Memory } from '../../../src/ports/memory.ts';
import type { RecordingProvider } from '../story.ts';

/** One of the two processes through which the conversations of a history run. */
export interface FuzzedProxy {
  /** Rejects when the process was killed meanwhile. */
  readonly start: () => Promise<void>;
  readonly stop: (signal?: 'SIGTERM' | 'SIGKILL') => Promise<void>;
  /** Rejects when the process was killed meanwhile. The client stops when it has read `until`. */
  readonly send: (
    path: string,
    body: Buffer,
    headers: Readonly<Record<string, string>>,
    until?: string,
  ) => Promise<Response>;
}

/** Two processes of svc with one memory, and what else a history does to them. */
export interface FuzzedPlace {
  readonly provider: RecordingProvider;
  /**
   * After so many milliseconds svc may go on without the memory. It then sends a request without its blocks, as
   * documented. Infinity for a file.
   */
  readonly givesUpMs: number;
  readonly proxies: readonly [FuzzedProxy, FuzzedProxy];
  /** The memory that both processes use. */
  readonly memory: Pick<Memory, 'capture' | 'retrieve' | 'forget'>;
  /** Lets another process hold the memory until `unlock`, where one can. */
  readonly lock: () => Promise<void>;
  readonly unlock: () => void;
  /** Fills the disk of the memory until `free`, where that can be done. */
  readonly fill: () => void;
  readonly free: () => void;
  /** Sets the clock of both processes. `ms`: how far it is ahead, or behind if negative. */
  readonly setClock: (ms: number) => void;
  /** Begins to store many texts. */
  readonly import: (space: string) => void;
  /** Sends a request of a client that left svc. */
  readonly askProvider: FuzzedProxy['send'];
  readonly close: () => Promise<void>;
}
