import { asRecord, parseJson } from '../../../src/core/bytes/json-fields.ts';

/**
 * Identifies the database of a service, and detects a change. A promoted standby may lack the last
 * commits of its primary, and a restored copy lacks all later commits. Clients must then not rely
 * on earlier acknowledgements.
 */

export interface DatabaseOrigin {
  /** Identifies the cluster and the tables in it; '' where the server does not tell. */
  readonly system: string;
  /** Changes with every promotion; '' where the server does not tell. */
  readonly timeline: string;
  /** A commit is acknowledged once a standby has it too. */
  readonly isSynchronous: boolean;
}

export type OriginVerdict =
  | 'same'
  /** Nothing was noted yet. */
  | 'first'
  /** A standby that has every acknowledged commit was promoted. */
  | 'promoted'
  /** Acknowledged commits may be missing: a new epoch begins. */
  | 'replaced';

/** `trustsFailover`: the operator says that only a standby with every acknowledged commit is promoted. */
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

/** Undefined if the text is not valid. */
export function readOrigin(text: string | undefined): DatabaseOrigin | undefined {
  const { system, timeline, synchronous } = asRecord(parseJson(text ?? ''));
  if (typeof system !== 'string' || typeof timeline !== 'string') return undefined;
  return { system, timeline, isSynchronous: synchronous === true };
}
