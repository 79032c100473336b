import { within } from '../../../../src/adapters/within.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/** Tells how a call to PostgreSQL failed, and whether the call may run again. The codes are PostgreSQL's SQLSTATE. */

const READ_ONLY_TRANSACTION = '25006';
/** Serialization failure and deadlock: the transaction may run again at once. */
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01']);
const TOO_MANY_CONNECTIONS = '53300';
const NO_DATABASE = '3D000';

/** Thrown if the connection, or its host, is no longer usable. */
export class LostConnection extends Error {
  override readonly name = 'LostConnection';
}

/** Thrown if the result of a commit is unknown: the database or its standby may have it or not. */
export class UncertainCommit extends Error {
  override readonly name = 'UncertainCommit';
}

/** Thrown if a call exceeds its own deadline. The connection and the server may be fine. */
export class Overdue extends Error {
  override readonly name = 'Overdue';
}

export function codeOf(error: unknown): string {
  const code: unknown = typeof error === 'object' && error !== null && Reflect.get(error, 'code');
  return typeof code === 'string' ? code : '';
}

/**
 * Says whether the connection failed and not the statement. The codes 57P… mean that the server shuts down or starts,
 * 08… that the connection failed, and 25006 that the server accepts no writes. An error without a code of PostgreSQL,
 * such as ECONNRESET, comes from the socket.
 */
export function isGone(error: unknown): boolean {
  if (error instanceof LostConnection || error instanceof UncertainCommit) return true;
  if (error instanceof MemoryError || error instanceof TypeError) return false;
  if (error instanceof Overdue) return false;
  const code = codeOf(error);
  if (!/^[0-9A-Z]{5}$/.test(code)) return true;
  return code === READ_ONLY_TRANSACTION || code.startsWith('08') || code.startsWith('57P');
}

/** Does nothing with an error of a connection, because the running statement fails with the same error. */
export function ignoreError(): void {}

export function isFull(error: unknown): boolean {
  return codeOf(error) === TOO_MANY_CONNECTIONS;
}

/** Says whether the server refuses the user or password, or lacks the database. Another attempt would not help. */
export function isRefused(error: unknown): boolean {
  return codeOf(error).startsWith('28') || codeOf(error) === NO_DATABASE;
}

export function mayRunAgain(error: unknown, isRepeatable: boolean): boolean {
  if (error instanceof UncertainCommit) return isRepeatable;
  return CONFLICTS.has(codeOf(error)) || isGone(error) || isFull(error);
}

export function timeout(): MemoryError {
  return new MemoryError('timeout', 'The memory did not answer in time.');
}

/** Converts an error to MemoryError, without the database's own message, which may quote a row. */
export function asMemoryError(error: unknown): MemoryError {
  if (error instanceof MemoryError) return error;
  if (error instanceof Overdue) return timeout();
  if (error instanceof LostConnection || error instanceof UncertainCommit) {
    return new MemoryError('unavailable', error.message);
  }
  if (isFull(error)) return new MemoryError('unavailable', NO_CONNECTION_LEFT);
  const code = codeOf(error);
  const told = code === '' ? 'failed' : `failed with ${code}`;
  return new MemoryError('unavailable', `The database ${told}.`);
}

export const NO_CONNECTION_LEFT = 'The database has no connection left.';

/** Waits for an answer. Throws LostConnection if none comes in time. */
export async function answered<T extends object>(asked: Promise<T>, withinMs: number): Promise<T> {
  asked.catch(() => undefined);
  const answer = await within(withinMs, asked);
  if (answer === undefined) throw new LostConnection('The database does not answer.');
  return answer;
}
