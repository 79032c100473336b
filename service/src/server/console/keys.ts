import { keyCreate, keyRotate } from '../../core/console-contract.ts';
import {
  formatServiceKey,
  parseServiceKey,
  PUBLIC_BYTES,
  renewServiceKey,
  SECRET_BYTES,
} from '../../../../src/core/memory-api/service-key.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import {
  GRACE_SECONDS,
  hashKey,
  modeOf,
  type StoredKey,
} from '../../../../src/core/memory-api/keys.ts';
import { readValue } from '../call.ts';
import { ServiceFault } from '../fault.ts';
import {
  type ConsoleCall,
  type ConsoleReply,
  findTenant,
  listReply,
  mustBeDone,
  noteOf,
  pageOf,
  storeOf,
} from './console-call.ts';

/** Keys of a tenant; revoked ones are listed only on request. A key is in one answer, the one that made it, and never stored. */

export async function listKeys(call: ConsoleCall): Promise<ConsoleReply> {
  await findTenant(call);
  const page = pageOf(call.query);
  const isLive = call.query.get('revoked') !== 'true';
  const keys = await storeOf(call).listKeys({ ...page, isLive });
  const wireOf = (key: StoredKey): object => keyWire(key, call.now);
  return listReply(keys, page, { idOf: ({ keyId }) => keyId, wireOf });
}

export async function createKey(call: ConsoleCall): Promise<ConsoleReply> {
  await findTenant(call);
  const { randomBytes, pepper } = call.parts;
  const asked = readValue(call.body, keyCreate);
  const secret = formatServiceKey(randomBytes(PUBLIC_BYTES), randomBytes(SECRET_BYTES));
  const keyId = parseServiceKey(secret)?.publicId ?? '';
  const key: StoredKey = {
    tenant: call.tenantId,
    keyId,
    name: asked.name,
    hash: hashKey(pepper, secret),
    scopes: asked.scopes,
    createdAt: call.now,
    ...given('spaces', asked.spaces),
    ...given('allowedModels', asked.allowed_models),
    ...given('tokensPerDay', asked.tokens_per_day),
    ...given('tokensPerMonth', asked.tokens_per_month),
    ...given('expiresAt', expiryOf(asked.expires_at, call.now)),
  };
  const details = { name: key.name, scopes: key.scopes.join(',') };
  const note = noteOf(call, 'key.created', { target: { type: 'key', id: keyId }, details });
  mustBeDone(await storeOf(call).apply({ what: 'key.add', key }, note), 'key');
  return { status: 201, body: { ...keyWire(key, call.now), secret } };
}

export async function rotateKey(call: ConsoleCall): Promise<ConsoleReply> {
  const { grace_seconds: grace = GRACE_SECONDS.fallback } = readValue(call.body, keyRotate);
  const keyId = call.parameter;
  const { randomBytes, pepper } = call.parts;
  const secret = renewServiceKey(keyId, randomBytes(SECRET_BYTES));
  const rotation = { hash: hashKey(pepper, secret), at: call.now, graceMs: grace * 1000 };
  const target = { type: 'key', id: keyId };
  const note = noteOf(call, 'key.rotated', { target, details: { grace_seconds: grace } });
  const change = { what: 'key.rotate', keyId, rotation } as const;
  mustBeDone(await storeOf(call).apply(change, note), 'key');
  const key = await storeOf(call).getKey(keyId);
  if (key === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such key.');
  return { status: 201, body: { ...keyWire(key, call.now), secret } };
}

export async function revokeKey(call: ConsoleCall): Promise<ConsoleReply> {
  const keyId = call.parameter;
  const note = noteOf(call, 'key.revoked', { target: { type: 'key', id: keyId }, details: {} });
  const change = { what: 'key.revoke', keyId, at: call.now } as const;
  mustBeDone(await storeOf(call).apply(change, note), 'key');
  return { status: 204 };
}

/** A member that is there only where its value is. */
export function given<Name extends string, Value>(
  name: Name,
  value: Value | null | undefined,
): { readonly [Member in Name]?: Value } {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- A computed name loses its type.
  return (value === null || value === undefined ? {} : { [name]: value }) as {
    readonly [Member in Name]?: Value;
  };
}

/** Throws ServiceFault for a time that is over. */
export function expiryOf(text: string | null | undefined, now: number): number | undefined {
  if (text === null || text === undefined) return undefined;
  const at = Date.parse(text);
  if (at > now) return at;
  const message = 'expires_at is not in the future.';
  throw new ServiceFault('INVALID_REQUEST', message, { param: 'expires_at' });
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

export function timeOrNull(at: number | undefined): string | null {
  return at === undefined ? null : isoTime(at);
}
