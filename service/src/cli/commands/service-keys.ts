import type { KeyScope } from '../../../../src/core/memory-api/keys.ts';
import { isSpaceGlob } from '../../../../src/core/memory-api/keys.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { timeText } from '../../../../src/cli/listing.ts';
import { oneLine } from '../../../../src/cli/terminal.ts';
import { table } from '../../../../src/cli/text-table.ts';
import { type ConsoleOptions, listAll, withConsole } from './console-access.ts';
import { type Fields, textOf, timeOf } from './console-fields.ts';

/** `svc-service keys`: who may use the service. A key is shown once, and never stored. */

export interface KeyCreateOptions extends ConsoleOptions {
  readonly name?: string;
  /** Separated by commas. */
  readonly scopes?: string;
  readonly space?: readonly string[];
  readonly model?: readonly string[];
  /** `90d`, or a date. */
  readonly expires?: string;
  readonly tokensPerDay?: string;
  readonly tokensPerMonth?: string;
}

export interface KeyListOptions extends ConsoleOptions {
  /** Revoked keys too. */
  readonly revoked?: boolean;
}

export interface KeyRotateOptions extends ConsoleOptions {
  /** `0`, `90s`, `12h` or `7d`. */
  readonly grace?: string;
}

const SCOPES: readonly KeyScope[] = ['read', 'write', 'receipt:read'];
const SPACES_MAX = 256;

export async function createKey(options: KeyCreateOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const { name = 'unnamed', model } = options;
  if (name.length > 100 || /\p{Cc}/u.test(name)) {
    throw new CliError('--name: at most 100 characters on one line.', 'Choose another one.', 2);
  }
  const expiresAt = expiryOf(options.expires, Date.now());
  const body = {
    name,
    scopes: scopesOf(options.scopes ?? 'read,write'),
    spaces: spacesOf(options.space) ?? null,
    allowed_models: model ?? null,
    expires_at: expiresAt === undefined ? null : isoTime(expiresAt),
    tokens_per_day: tokensOf(options.tokensPerDay, '--tokens-per-day'),
    tokens_per_month: tokensOf(options.tokensPerMonth, '--tokens-per-month'),
  };
  const made = await withConsole(options, context, (console) =>
    console.call({ method: 'POST', path: 'keys', body }),
  );
  const key = textOf(made['secret']);
  if (options.json === true) {
    const { keyId, scopes, spaces } = shown(made);
    terminal.json({ key, keyId, name, scopes, spaces, expiresAt });
  } else terminal.out(key);
  terminal.note('svc shows the key only once. Store it where only its owner can read it.');
}

function tokensOf(text: string | undefined, flag: string): number | null {
  if (text === undefined) return null;
  if (/^\d{1,12}$/.test(text)) return Number(text);
  throw new CliError(`${flag}: expected a whole number.`, `Try ${flag} 2000000`, 2);
}

export async function listKeys(options: KeyListOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const query = options.revoked === true ? { revoked: 'true' } : {};
  const found = await withConsole(options, context, (console) => listAll(console, 'keys', query));
  const keys = found.map(shown);
  if (options.json === true) {
    terminal.json(keys);
    return;
  }
  if (keys.length === 0) {
    terminal.note('There is no key yet. Create one: svc-service keys create --name NAME');
    return;
  }
  const rows = keys.map((key) => [
    key.keyId,
    oneLine(key.name, 24),
    key.state,
    key.scopes.join(','),
    oneLine(key.spaces?.join(' ') ?? 'all spaces', 32),
    `used ${key.usedAt === undefined ? 'never' : timeText(key.usedAt)}`,
  ]);
  const shape = { columns: terminal.columns(160), left: [0, 1, 2, 3, 4, 5] };
  for (const line of table(rows, shape)) terminal.out(line);
}

export async function rotateKey(
  keyId: string,
  options: KeyRotateOptions,
  context: CommandContext,
): Promise<void> {
  const { terminal } = context;
  checkId(keyId, 'svc-service keys list');
  const grace = graceOf(options.grace ?? '1d');
  const made = await withConsole(options, context, (console) =>
    console.call({
      method: 'POST',
      path: `keys/${keyId}/rotate`,
      body: { grace_seconds: grace },
    }),
  );
  const key = textOf(made['secret']);
  const until = timeOf(made['grace_until']);
  if (options.json === true) terminal.json({ key, keyId, graceUntil: until });
  else terminal.out(key);
  terminal.note(
    until === undefined
      ? 'The service refuses the old secret from now on. svc shows the new one only once.'
      : `The old secret works until ${timeText(until)}. svc shows the new one only once.`,
  );
}

export async function revokeKey(
  keyId: string,
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  checkId(keyId, 'svc-service keys list');
  await withConsole(options, context, (console) =>
    console.call({ method: 'DELETE', path: `keys/${keyId}` }),
  );
  context.terminal.note('The key is revoked. A running service refuses it within 2 seconds.');
}

/** A whole key does not belong on a command line; the public part names it. */
export function checkId(id: string, list: string): void {
  if (/^[0-9A-Za-z]{12}$/.test(id)) return;
  const hint = `Give the 12 characters that ${list} shows, never the secret itself.`;
  throw new CliError('This is not the id of a key.', hint, 2);
}

function shown(key: Fields) {
  return {
    keyId: textOf(key['key_id']),
    name: textOf(key['name']),
    scopes: textsOf(key['scopes']) ?? [],
    spaces: textsOf(key['spaces']),
    allowedModels: textsOf(key['allowed_models']),
    tokensPerDay: countOf(key['tokens_per_day']),
    tokensPerMonth: countOf(key['tokens_per_month']),
    createdAt: timeOf(key['created_at']),
    expiresAt: timeOf(key['expires_at']),
    revokedAt: timeOf(key['revoked_at']),
    usedAt: timeOf(key['last_used_at']),
    state: textOf(key['status']),
  };
}

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

function textsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.map(textOf) : undefined;
}

function scopesOf(text: string): readonly KeyScope[] {
  // Such a key may call models, without memory and without receipts.
  if (text.trim() === 'none') return [];
  const named = text.split(',').map((scope) => scope.trim());
  const scopes = SCOPES.filter((scope) => named.includes(scope));
  if (scopes.length === named.length && scopes.length > 0) return scopes;
  const hint = 'Separate them by commas: --scopes read,write';
  throw new CliError(`--scopes: expected some of ${SCOPES.join(', ')}, or none.`, hint, 2);
}

function spacesOf(given: readonly string[] | undefined): readonly string[] | undefined {
  if (given === undefined || given.length === 0) return undefined;
  if (given.length <= SPACES_MAX && given.every(isSpaceGlob)) return given;
  const hint = "Name spaces, or use a star: --space 'project/*' --space global";
  throw new CliError('--space: 1 to 128 of a-z 0-9 . _ / - and *.', hint, 2);
}

const DAY_MS = 24 * 3600 * 1000;

export function expiryOf(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  const at = days === undefined ? Date.parse(text) : now + Number(days) * DAY_MS;
  const isDate = days !== undefined || /^\d{4}-\d\d-\d\d/.test(text);
  if (isDate && at > now) return at;
  throw new CliError(
    '--expires: expected a number of days or a future date.',
    'Try --expires 90d',
    2,
  );
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const GRACE_MAX = 7 * 86_400;

function graceOf(text: string): number {
  const [, digits = '', unit = 's'] = /^(\d{1,6})([smhd]?)$/.exec(text) ?? [];
  const seconds = digits === '' ? -1 : Number(digits) * (SECONDS[unit === '' ? 's' : unit] ?? 1);
  if (seconds >= 0 && seconds <= GRACE_MAX) return seconds;
  throw new CliError(
    '--grace: expected 0 to 7d.',
    'Try --grace 12h, or 0 for a key that leaked',
    2,
  );
}
