import { asRecord, parseJson } from '../../../src/core/bytes/json-fields.ts';

/**
 * Detects that the address of a service's database leads to another database than before. A promoted standby may lack
 * its primary's last commits, and a restored copy lacks all commits after the backup. In both cases clients must not
 * rely on earlier acknowledgements.
 */

export interface DatabaseOrigin {
  /** Identifies the cluster and its tables; '' if the server does not say. */
  readonly system: string;
  /** Changes with every promotion; '' if the server does not say. */
  readonly timeline: string;
  /** True if the server confirms a commit only after a standby has it too. */
  readonly isSynchronous: boolean;
}

export type OriginVerdict =
  | 'same'
  /** The database stores no origin yet. */
  | 'first'
  /** A standby with every acknowledged commit was promoted. */
  | 'promoted'
  /** Acknowledged commits may be missing, so a new epoch begins. */
  | 'replaced';

/**
 * Compares the origin that is stored in the database with the server's own. `trustsFailover`: the operator guarantees
 * that only a standby with every acknowledged commit is promoted.
 */
export function judgeOrigin(
  before: DatabaseOrigin | undefined,
  now: DatabaseOrigin,
  trustsFailover: boolean,
): OriginVerdict {
  if (before === undefined) return 'first';
  if (before.system !== now.system) return 'replaced';
  if (before.timeline === now.timeline) return 'same';
  return trustsFailover && before.isSynchronous ? 'promoted' : 'replaced';
}

export function originText({ system, timeline, isSynchronous }: DatabaseOrigin): string {
  return JSON.stringify({ system, timeline, synchronous: isSynchronous });
}

/** Parses the stored text of an origin; undefined if it is not valid. */
export function readOrigin(text: string | undefined): DatabaseOrigin | undefined {
  const { system, timeline, synchronous } = asRecord(parseJson(text ?? ''));
  if (typeof system !== 'string' || typeof timeline !== 'string') return undefined;
  return { system, timeline, isSynchronous: synchronous === true };
}
