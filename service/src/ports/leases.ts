/**
 * Leases for work that only one process may do at a time, over all nodes. A lease expires by itself
 * when its holder dies. The store's own clock decides, so a node with a wrong clock cannot take
 * another node's lease.
 */
export interface LeaseStore {
  /** Undefined: this holder has the lease now. Otherwise the note of the present holder. */
  takeLease(lease: Lease): Promise<string | undefined>;
  /** False: it has ended, and another process may hold it. */
  renewLease(lease: Lease): Promise<boolean>;
  endLease(lease: Pick<Lease, 'name' | 'holder'>): Promise<void>;
  /** The valid leases whose names begin with this prefix, by name. */
  listLeases(start: string): Promise<readonly StandingLease[]>;
}

export interface Lease extends StandingLease {
  /** Milliseconds from now on. */
  readonly ms: number;
}

export interface StandingLease {
  readonly name: string;
  readonly holder: string;
  /** For other callers that find the lease taken; not a secret. */
  readonly note: string;
}
