import { CliError } from '../../../../src/cli/cli-error.ts';

/** A console operation as the commands see it: the question, the members of its answer, its refusal. */

export interface ConsoleAsk {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/v1/svc/console/`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The version that the change is of. */
  readonly ifVersion?: number;
}

/** The members of an answer's body. */
export type Fields = Readonly<Record<string, unknown>>;

export interface ConsoleAccess {
  /** Throws CliError for a refusal. */
  call(ask: ConsoleAsk): Promise<Fields>;
  close(): Promise<void>;
}

/** Where the token of `--url` comes from: never the command line, which other users can read. */
export const TOKEN_VARIABLE = 'SVC_ADMIN_TOKEN';

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A time of the API in milliseconds since 1970. */
export function timeOf(value: unknown): number | undefined {
  return typeof value === 'string' ? Date.parse(value) : undefined;
}

/** A refusal of a console operation, for people. */
export function refusalError(code: string, message: string): CliError {
  const isUsage = code === 'INVALID_REQUEST';
  return new CliError(
    `${message} (${code})`,
    HINTS[code] ?? 'See the same command with --help.',
    isUsage ? 2 : 1,
  );
}

const HINTS: Readonly<Record<string, string>> = {
  AUTH_MISSING: `Set ${TOKEN_VARIABLE} to the token of an admin.`,
  AUTH_INVALID: `Check the token in ${TOKEN_VARIABLE}: svc-service admins list shows the first part of each token.`,
  AUTH_REVOKED: 'Ask an operator for another token: svc-service admins create',
  AUTH_EXPIRED: 'Ask an operator for another token: svc-service admins create',
  SCOPE_DENIED: 'Ask an admin whose role allows this.',
  NOT_FOUND: 'Check with the list command, or name the tenant with --tenant.',
  CONFLICT: 'Check with the list command. Choose another name, or change the existing entry.',
  PLAN_LIMIT_REACHED: 'Remove an entry that you do not need, or ask the operator for another plan.',
  STORE_UNAVAILABLE: 'Check with: svc-service doctor',
};
