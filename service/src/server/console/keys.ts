import {
  formatServiceKey,
  parseServiceKey,
  PUBLIC_BYTES,
  renewServiceKey,
  SECRET_BYTES,
} from '../../../../src/core/memory-api/service-key.ts';
import {
  GRACE_SECONDS,
  hashKey,
  isSpaceGlob,
  modeOf,
  type StoredKey,
} from '../../../../src/core/memory-api/keys.ts';
import {
  closed,
  type Infer,
  integer,
  listOf,
  oneOf,
  orNull,
  text,
  time,
} from '../../../../src/core/memory-api/shape.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { count } from '../../core/plans.ts';
import { ServiceFault } from '../fault.ts';
import {
  apply,
  command,
  type ConsoleCall,
  type ConsoleOperation,
  type ConsoleReply,
  distinct,
  EXPIRES,
  expiryOf,
  present,
  idArgument,
  listReply,
  modelNames,
  option,
  type OptionRow,
  pageOf,
  personName,
  reads,
  storeOf,
  timeOrNull,
  USED,
  wholeNumber,
  writes,
} from './operation.ts';

/** Operations on the keys of a tenant. A key is shown only in the answer that makes it, and only its hash is stored. */

const SCOPES = ['read', 'write', 'receipt:read'] as const;
const SPACES_MAX = 256;

const spaces = distinct(
  listOf(text({ pattern: /^[a-z0-9*][a-z0-9._/*-]{0,127}$/ }), { min: 1, max: SPACES_MAX }),
);

export const keyCreate = closed(
  { name: personName, scopes: distinct(listOf(oneOf(...SCOPES), { max: 3 })) },
  {
    spaces: orNull(spaces),
    allowed_models: orNull(modelNames),
    expires_at: orNull(time),
    tokens_per_day: count,
    tokens_per_month: count,
  },
);

export const keyRotate = closed({}, { grace_seconds: integer(0, GRACE_SECONDS.max) });

const ID = idArgument('svc-service keys list');

export const keyOperations: readonly ConsoleOperation[] = [
  writes(
    { name: 'createKey', route: 'POST keys', role: 'admin', ofTenant: true },
    keyCreate,
    createKey,
    [
      command('keys create', 'Create a key and print it once', {
        options: [
          option('--name <name>', 'a name for the key, such as its owner', 'name', {
            as: {
              read: (name) =>
                String(name).length > 100 || /\p{Cc}/u.test(String(name)) ? undefined : name,
              expected: 'at most 100 characters on one line.',
              hint: 'Choose another one.',
            },
            otherwise: 'unnamed',
          }),
          option('--scopes <list>', 'some of read, write, receipt:read, or none', 'scopes', {
            as: {
              read: (list) => scopesIn(String(list)),
              expected: `expected some of ${SCOPES.join(', ')}, or none.`,
              hint: 'Separate them by commas: --scopes read,write',
            },
            shown: 'read,write',
          }),
          option('--space <glob...>', 'only these spaces; * matches any characters', 'spaces', {
            as: {
              read: (globs) =>
                Array.isArray(globs) && globs.length <= SPACES_MAX && globs.every(isSpaceGlob)
                  ? globs
                  : undefined,
              expected: '1 to 128 of a-z 0-9 . _ / - and *.',
              hint: "Name spaces, or use a star: --space 'project/*' --space global",
            },
            otherwise: null,
          }),
          option(
            '--model <name...>',
            'only these models; the last character may be *',
            'allowed_models',
            { otherwise: null },
          ),
          EXPIRES,
          tokensOption('day', 'limit for input and output tokens of model requests in a UTC day'),
          tokensOption('month', 'the same limit for a month'),
        ],
        examples: [
          'keys create --name laptop',
          'keys create --name intern --tokens-per-day 2000000',
          'keys create --name models-only --scopes none',
          "keys create --name ci --scopes read --space 'project/*' --expires 90d",
        ],
        prints: 'secret',
        note: 'svc shows the key only once. Store it where only its owner can read it.',
      }),
    ],
  ),
  reads({ name: 'listKeys', route: 'GET keys', role: 'viewer', ofTenant: true }, listKeys, [
    command(
      'keys list',
      'List keys with their permissions and last use; never the keys themselves',
      {
        options: [option('--revoked', 'also list keys that are revoked', 'revoked')],
        list: {
          isWhole: true,
          empty: 'There is no key yet. Create one: svc-service keys create --name NAME',
          columns: [
            'key_id',
            'name:24',
            'status',
            ({ scopes }, { line }) => line(scopes).replaceAll(' ', ','),
            ({ spaces: globs }, { line }) => line(globs, 32) || 'all spaces',
            USED,
          ],
        },
      },
    ),
  ]),
  writes({ name: 'rotateKey', route: 'POST keys/*/rotate', role: 'admin' }, keyRotate, rotateKey, [
    command('keys rotate', 'Give a key a new secret; the old one works during a grace period', {
      argument: ID,
      options: [
        option('--grace <time>', 'how long the old secret works: 0 to 7d', 'grace_seconds', {
          as: {
            read: (given) => secondsIn(String(given)),
            expected: 'expected 0 to 7d.',
            hint: 'Try --grace 12h, or 0 for a key that leaked',
          },
          shown: '1d',
        }),
      ],
      examples: [
        'keys rotate 4kPzQ0aB71Xc --grace 12h',
        'keys rotate 4kPzQ0aB71Xc --grace 0      # the secret leaked',
      ],
      shows: ({ secret, grace_until: until }, { time: timeText }) => ({
        lines: [String(secret)],
        note:
          until === null
            ? 'The service refuses the old secret from now on. svc shows the new one only once.'
            : `The old secret works until ${timeText(until)}. svc shows the new one only once.`,
      }),
    }),
  ]),
  reads({ name: 'revokeKey', route: 'DELETE keys/*', role: 'admin' }, revokeKey, [
    command('keys revoke', 'Revoke a key; running services refuse it within 2 seconds', {
      argument: ID,
      examples: ['keys revoke 4kPzQ0aB71Xc'],
      note: 'The key is revoked. A running service refuses it within 2 seconds.',
    }),
  ]),
];

function tokensOption(span: 'day' | 'month', about: string): OptionRow {
  const flag = `--tokens-per-${span}`;
  return {
    flags: `${flag} <number>`,
    about,
    to: `tokens_per_${span}`,
    as: wholeNumber(12, `Try ${flag} 2000000`),
    otherwise: null,
  };
}

function scopesIn(list: string): readonly string[] | undefined {
  // A key without scopes may call models, but use neither memory nor receipts.
  if (list.trim() === 'none') return [];
  const named = list.split(',').map((scope) => scope.trim());
  const scopes = SCOPES.filter((scope) => named.includes(scope));
  return scopes.length === named.length ? scopes : undefined;
}

const SECONDS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** Parses `0`, `90s`, `12h` or `7d` to seconds; undefined if the text has another form or exceeds the maximum. */
function secondsIn(given: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,6})([smhd]?)$/.exec(given) ?? [];
  const seconds = Number(digits) * (SECONDS[unit] ?? 1);
  return seconds <= GRACE_SECONDS.max ? seconds : undefined;
}

async function listKeys(call: ConsoleCall): Promise<ConsoleReply> {
  const page = pageOf(call.query);
  const isLive = call.query.get('revoked') !== 'true';
  const keys = await storeOf(call).listKeys({ ...page, isLive });
  const wireOf = (key: StoredKey): object => keyWire(key, call.now);
  return listReply(keys, page, { idOf: ({ keyId }) => keyId, wireOf });
}

async function createKey(call: ConsoleCall, asked: Infer<typeof keyCreate>): Promise<ConsoleReply> {
  const { randomBytes, pepper } = call.parts;
  const secret = formatServiceKey(randomBytes(PUBLIC_BYTES), randomBytes(SECRET_BYTES));
  const keyId = parseServiceKey(secret)?.publicId ?? '';
  const key: StoredKey = {
    tenant: call.tenantId,
    keyId,
    name: asked.name,
    hash: hashKey(pepper, secret),
    scopes: asked.scopes,
    createdAt: call.now,
    ...present('spaces', asked.spaces),
    ...present('allowedModels', asked.allowed_models),
    ...present('tokensPerDay', asked.tokens_per_day),
    ...present('tokensPerMonth', asked.tokens_per_month),
    ...present('expiresAt', expiryOf(asked.expires_at, call.now)),
  };
  await apply(
    call,
    storeOf(call),
    { what: 'key.add', key },
    { kind: 'key.created', id: keyId, details: { name: key.name, scopes: key.scopes.join(',') } },
  );
  return { status: 201, body: { ...keyWire(key, call.now), secret } };
}

async function rotateKey(
  call: ConsoleCall,
  { grace_seconds: grace = GRACE_SECONDS.fallback }: Infer<typeof keyRotate>,
): Promise<ConsoleReply> {
  const { parameter: keyId, parts, now } = call;
  await refuseRevoked(call);
  const secret = renewServiceKey(keyId, parts.randomBytes(SECRET_BYTES));
  const rotation = { hash: hashKey(parts.pepper, secret), at: now, graceMs: grace * 1000 };
  await apply(
    call,
    storeOf(call),
    { what: 'key.rotate', keyId, rotation },
    { kind: 'key.rotated', id: keyId, details: { grace_seconds: grace } },
  );
  const key = await storeOf(call).getKey(keyId);
  if (key === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such key.');
  return { status: 201, body: { ...keyWire(key, now), secret } };
}

/** Throws ServiceFault if the key is revoked: "no such key" would look like the answer to a typing error. */
async function refuseRevoked(call: ConsoleCall): Promise<void> {
  const at = (await storeOf(call).getKey(call.parameter))?.revokedAt;
  if (at === undefined) return;
  throw new ServiceFault('NOT_FOUND', `The key is revoked already, since ${isoTime(at)}.`);
}

async function revokeKey(call: ConsoleCall): Promise<ConsoleReply> {
  const { parameter: keyId, now } = call;
  await refuseRevoked(call);
  await apply(
    call,
    storeOf(call),
    { what: 'key.revoke', keyId, at: now },
    { kind: 'key.revoked', id: keyId },
  );
  return { status: 204 };
}

function keyWire(key: StoredKey, now: number): object {
  const until = Math.max(0, ...(key.retired ?? []).map((one) => one.until));
  const graceUntil = until > now ? until : undefined;
  return {
    key_id: key.keyId,
    name: key.name,
    prefix: `svc_live_${key.keyId}`,
    scopes: key.scopes,
    memory_mode_default: modeOf(key.scopes),
    spaces: key.spaces ?? null,
    allowed_models: key.allowedModels ?? null,
    tokens_per_day: key.tokensPerDay ?? null,
    tokens_per_month: key.tokensPerMonth ?? null,
    status: statusOf(key, now, graceUntil !== undefined),
    created_at: isoTime(key.createdAt),
    expires_at: timeOrNull(key.expiresAt),
    last_used_at: timeOrNull(key.usedAt),
    rotated_at: timeOrNull(key.rotatedAt),
    grace_until: timeOrNull(graceUntil),
    revoked_at: timeOrNull(key.revokedAt),
  };
}

function statusOf(
  { revokedAt, expiresAt }: StoredKey,
  now: number,
  isInGrace: boolean,
): 'active' | 'grace' | 'expired' | 'revoked' {
  if (revokedAt !== undefined) return 'revoked';
  if (expiresAt !== undefined && expiresAt <= now) return 'expired';
  return isInGrace ? 'grace' : 'active';
}
