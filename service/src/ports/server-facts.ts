/** A database server as a person wants to know it. */
export interface ServerFacts {
  readonly version: string;
  readonly host: string;
  /** A commit waits until a standby has it. */
  readonly isSynchronous: boolean;
  readonly standbys: readonly StandbyFacts[];
  /** The last day that has a table of receipts, as 20261120. */
  readonly lastDay: string | undefined;
  readonly slowStatements: number;
  readonly slowestMs: number;
  /** Commits that wait for a standby at this moment. */
  readonly waitingCommits: number;
}

export interface StandbyFacts {
  readonly name: string;
  readonly isStreaming: boolean;
  readonly isSynchronous: boolean;
  /** Left out where the server does not tell this user. */
  readonly lagBytes?: number;
  readonly lagMs?: number;
}
