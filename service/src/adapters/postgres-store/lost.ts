import { MemoryError } from '../../../../src/core/errors.ts';

/** The ways in which a call to PostgreSQL fails, and which of them may be repeated. */

const READ_ONLY_TRANSACTION = '25006';
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01']);
/** PostgreSQL's error code for: all connections of the server are in use. */
const TOO_MANY_CONNECTIONS = '53300';
const NO_DATABASE = '3D000';

/** Thrown if the connection, or its host, is no longer usable. */
export class LostConnection extends Error {
  override readonly name = 'LostConnection';
}

/** Thrown if the result of a commit is unknown: the database or its standby may or may not have it. */
export class UncertainCommit extends Error {
  override readonly name = 'UncertainCommit';
}

/** The call exceeded its deadline; the host is not to blame. */
export class Overdue extends Error {
  override readonly name = 'Overdue';
}

export function codeOf(error: unknown): string {
  const code: unknown = typeof error === 'object' && error !== null && Reflect.get(error, 'code');
  return typeof code === 'string' ? code : '';
}

/** Says whether the connection failed and not the statement: 57P01 to 57P03 mean that the server is shutting down. */
export function isGone(error: unknown): boolean {
  if (error instanceof LostConnection || error instanceof UncertainCommit) return true;
  if (error instanceof MemoryError || error instanceof TypeError) return false;
  if (error instanceof Overdue) return false;
  const code = codeOf(error);
  if (!/^[0-9A-Z]{5}$/.test(code)) return true;
  return code === READ_ONLY_TRANSACTION || code.startsWith('08') || code.startsWith('57P');
}

export function isFull(error: unknown): boolean {
  return codeOf(error) === TOO_MANY_CONNECTIONS;
}

/** Says whether the password is wrong or the database does not exist, which waiting does not change. */
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

/** Converts an error. It never contains the database's text, whose details may quote a row. */
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

/** Waits for an answer; without one in time the connection counts as lost. */
export async function answered<T>(asked: Promise<T>, withinMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LostConnection('The database does not answer.')), withinMs);
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
    asked.catch(() => undefined);
  }
}
