import type { MemoryRecord, SpeakerRole } from '../../../src/ports/memory.ts';
import type { RecordingProvider } from '../story.ts';

/** One of the two processes through which the conversations of a history run. */
export interface FuzzedProxy {
  /** Rejects when the process was killed meanwhile. */
  readonly start: () => Promise<void>;
  readonly stop: (signal?: 'SIGTERM' | 'SIGKILL') => Promise<void>;
  /** Rejects when the process was killed meanwhile. */
  readonly send: (
    path: string,
    body: Buffer,
    headers: Readonly<Record<string, string>>,
  ) => Promise<Response>;
}

/** Two processes of svc with one memory, and what else a history does to them. */
export interface FuzzedPlace {
  readonly provider: RecordingProvider;
  /**
   * Milliseconds after which svc may give a memory up that is a database of its own: the history then goes out without
   * its blocks, as documented.
   */
  readonly givesUpMs: number;
  readonly proxies: readonly [FuzzedProxy, FuzzedProxy];
  readonly capture: (records: readonly MemoryRecord<SpeakerRole>[]) => Promise<void>;
  /** The text that the memory holds. */
  readonly retrieve: (
    key: { readonly ref: string } | { readonly digest: string; readonly space: string },
  ) => Promise<string | undefined>;
  /** Begins to forget something that no conversation here ever heard of. */
  readonly forget: () => void;
  /** Something else holds the memory, until it is unlocked. */
  readonly lock: () => Promise<void>;
  readonly unlock: () => void;
  /** Begins to store much at once. */
  readonly import: (space: string) => void;
  /** Sends a request of a client that left svc. */
  readonly askProvider: FuzzedProxy['send'];
  readonly close: () => Promise<void>;
}
