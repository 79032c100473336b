import { randomBytes } from 'node:crypto';
import {
  formatServiceKey,
  parseServiceKey,
  PUBLIC_BYTES,
  SECRET_BYTES,
} from '../../core/memory-api/service-key.ts';
import { hashKey, isSpaceGlob, type KeyScope, type StoredKey } from '../../core/service/keys.ts';
import { DEFAULT_TENANT } from '../../core/service/tenants.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { timeText } from '../listing.ts';
import { folderOf, type FolderOption, withServiceStore } from './service-context.ts';
import { oneLine } from '../terminal.ts';
import { table } from '../text-table.ts';

/** `svc service keys`: who may use the service. A key is shown once, and never stored. */

export interface KeyCreateOptions extends FolderOption {
  readonly name?: string;
  /** Separated by commas. */
  readonly scopes?: string;
  readonly space?: readonly string[];
  /** `90d`, or a date. */
  readonly expires?: string;
  readonly json?: boolean;
}

export interface KeyListOptions extends FolderOption {
  readonly json?: boolean;
}

const SCOPES: readonly KeyScope[] = ['read', 'write', 'receipt:read'];
const DAY_MS = 24 * 3600 * 1000;
const NAME_CHARS_MAX = 100;
const SPACES_MAX = 256;

export async function createKey(options: KeyCreateOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const createdAt = Date.now();
  const scopes = scopesOf(options.scopes ?? 'read,write');
  const spaces = spacesOf(options.space);
  const expiresAt = expiryOf(options.expires, createdAt);
  const name = options.name ?? 'unnamed';
  if (name.length > NAME_CHARS_MAX || /\p{Cc}/u.test(name)) {
    throw new CliError('--name: at most 100 characters on one line.', 'Choose another one.', 2);
  }
  const key = formatServiceKey(randomBytes(PUBLIC_BYTES), randomBytes(SECRET_BYTES));
  const keyId = parseServiceKey(key)?.publicId ?? '';
  await withServiceStore(folderOf(options, context), (store, pepper) =>
    store.of(DEFAULT_TENANT).addKey({
      keyId,
      name,
      hash: hashKey(pepper, key),
      scopes,
      createdAt,
      ...(spaces === undefined ? {} : { spaces }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    }),
  );
  if (options.json === true) terminal.json({ key, keyId, name, scopes, spaces, expiresAt });
  else terminal.out(key);
  terminal.note('The key is shown this once. Put it where only its owner reads it.');
}

export async function listKeys(options: KeyListOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const keys = await withServiceStore(folderOf(options, context), (store) =>
    store.of(DEFAULT_TENANT).listKeys(),
  );
  const now = Date.now();
  if (options.json === true) {
    // Not even the hash: it is of no use to anybody but the service.
    terminal.json(keys.map((key) => ({ ...shown(key), state: stateOf(key, now) })));
    return;
  }
  if (keys.length === 0) {
    terminal.note('There is no key yet. Make one: svc service keys create --name NAME');
    return;
  }
  const rows = keys.map((key) => [
    key.keyId,
    oneLine(key.name, 24),
    stateOf(key, now),
    key.scopes.join(','),
    oneLine(key.spaces?.join(' ') ?? 'all spaces', 32),
    `used ${key.usedAt === undefined ? 'never' : timeText(key.usedAt)}`,
  ]);
  const shape = { columns: terminal.columns(160), left: [0, 1, 2, 3, 4, 5] };
  for (const line of table(rows, shape)) terminal.out(line);
}

export async function revokeKey(
  keyId: string,
  options: FolderOption,
  context: CommandContext,
): Promise<void> {
  // A whole key does not belong on a command line; the public part names it.
  if (!/^[0-9A-Za-z]{12}$/.test(keyId)) {
    const hint = 'Give the 12 characters that svc service keys list shows, never the key itself.';
    throw new CliError('That is no id of a key.', hint, 2);
  }
  const isDone = await withServiceStore(folderOf(options, context), (store) =>
    store.of(DEFAULT_TENANT).revokeKey(keyId, Date.now()),
  );
  if (!isDone) {
    const hint = 'Look with: svc service keys list';
    throw new CliError('There is no such key, or it is revoked already.', hint);
  }
  context.terminal.note('The key is revoked: a running service refuses it from now on.');
}

function shown({
  keyId,
  name,
  scopes,
  spaces,
  createdAt,
  expiresAt,
  revokedAt,
  usedAt,
}: StoredKey) {
  return { keyId, name, scopes, spaces, createdAt, expiresAt, revokedAt, usedAt };
}

function scopesOf(text: string): readonly KeyScope[] {
  const named = text.split(',').map((scope) => scope.trim());
  const scopes = SCOPES.filter((scope) => named.includes(scope));
  if (scopes.length === named.length && scopes.length > 0) return scopes;
  const hint = 'Separate them by commas: --scopes read,write';
  throw new CliError(`--scopes: expected some of ${SCOPES.join(', ')}.`, hint, 2);
}

function spacesOf(given: readonly string[] | undefined): readonly string[] | undefined {
  if (given === undefined || given.length === 0) return undefined;
  if (given.length <= SPACES_MAX && given.every(isSpaceGlob)) return given;
  const hint = "Name a space, or several with a star: --space 'project/*' --space global";
  throw new CliError('--space: 1 to 128 of a-z 0-9 . _ / - and *.', hint, 2);
}

function expiryOf(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  const at = days === undefined ? Date.parse(text) : now + Number(days) * DAY_MS;
  const isDate = days !== undefined || /^\d{4}-\d\d-\d\d/.test(text);
  if (isDate && at > now) return at;
  throw new CliError('--expires: expected days or a date to come.', 'Try --expires 90d', 2);
}

function stateOf(
  { revokedAt, expiresAt }: Pick<StoredKey, 'revokedAt' | 'expiresAt'>,
  now: number,
): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== undefined) return 'revoked';
  return expiresAt !== undefined && expiresAt <= now ? 'expired' : 'active';
}
