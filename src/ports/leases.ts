/**
 * Work that one process may do at a time, on whichever node. A lease ends by itself when its holder
 * died; the clock is the store's own, so a node whose clock is wrong takes nothing from another one.
 */
export interface LeaseStore {
  /** Undefined: it is this holder's now. Else the note of whoever holds it. */
  takeLease(lease: Lease): Promise<string | undefined>;
  /** False: it has ended, and somebody else may hold it. */
  renewLease(lease: Lease): Promise<boolean>;
  endLease(lease: Pick<Lease, 'name' | 'holder'>): Promise<void>;
  /** Those that stand and whose names begin so, by name. */
  listLeases(start: string): Promise<readonly StandingLease[]>;
}

export interface Lease extends StandingLease {
  /** Milliseconds from now on. */
  readonly ms: number;
}

export interface StandingLease {
  readonly name: string;
  readonly holder: string;
  /** For whoever finds it taken; not a secret. */
  readonly note: string;
}
