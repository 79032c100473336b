import { generateKeyPairSync } from 'node:crypto';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { masterKeyAdd, nothing } from '../../core/console-contract.ts';
import { publicJwk, publicPartOf } from '../../core/jws.ts';
import { Secret } from '../../core/secret.ts';
import { SERVICE_TENANT } from '../../core/tenants.ts';
import { MASTER_KEY_ID } from '../../core/settings.ts';
import type { SigningKeyRow } from '../../ports/vault-store.ts';
import { readValue } from '../call.ts';
import { ServiceFault } from '../fault.ts';
import { underLease } from '../leases.ts';
import { type ConsoleCall, type ConsoleReply, mustBeDone, noteOf } from './console-call.ts';
import { timeOrNull } from './keys.ts';

/** The vault's master keys and the signing keys, for operators. No answer holds a key. */

export async function getVault({ parts }: ConsoleCall): Promise<ConsoleReply> {
  const [keys, problem] = await Promise.all([parts.store.listMasterKeys(), parts.vault.problem()]);
  return {
    status: 200,
    body: {
      problem: problem ?? null,
      keys: keys.map(({ id, state, createdAt, retiredAt, secrets }) => ({
        key_id: id,
        state,
        secrets,
        created_at: isoTime(createdAt),
        retired_at: timeOrNull(retiredAt),
      })),
    },
  };
}

export async function addMasterKey(call: ConsoleCall): Promise<ConsoleReply> {
  const { store, vault } = call.parts;
  const { key_id: id } = readValue(call.body, masterKeyAdd);
  const canary = await vault.canaryOf(id);
  const target = { type: 'master_key', id };
  const note = noteOf(call, 'vault.kek_added', { target, details: {} });
  mustBeDone(
    await store.apply({ what: 'master.add', id, canary, at: call.now }, note),
    'master key',
  );
  return { status: 201, body: { key_id: id, state: 'active' } };
}

export async function retireMasterKey(call: ConsoleCall): Promise<ConsoleReply> {
  const id = call.parameter;
  if (!MASTER_KEY_ID.test(id)) throw new ServiceFault('NOT_FOUND', 'There is no such master key.');
  const target = { type: 'master_key', id };
  const note = noteOf(call, 'vault.kek_retired', { target, details: {} });
  const change = { what: 'master.retire', id, at: call.now } as const;
  mustBeDone(await call.parts.store.apply(change, note), 'master key');
  return { status: 204 };
}

export async function rotateVault(call: ConsoleCall): Promise<ConsoleReply> {
  readValue(call.body, nothing);
  const { store, vault, randomBytes } = call.parts;
  const needs = { store: store.of(SERVICE_TENANT), randomBytes };
  const done = await underLease(needs, 'job:rewrap', () =>
    vault.rotate(async (rows) => {
      const target = { type: 'vault', id: rows[0]?.kek ?? '' };
      const note = noteOf(call, 'vault.rotated', { target, details: { secrets: rows.length } });
      mustBeDone(await store.apply({ what: 'secrets.rewrap', rows }, note), 'secret');
    }),
  );
  if (done === undefined) throw new ServiceFault('CONFLICT', 'Another process rotates the vault.');
  const { secrets, unreadable } = done.result;
  return { status: 200, body: { secrets, unreadable } };
}

export async function verifyVault(call: ConsoleCall): Promise<ConsoleReply> {
  readValue(call.body, nothing);
  const { secrets, unreadable } = await call.parts.vault.verify();
  return { status: 200, body: { secrets, unreadable } };
}

export async function listSigningKeys({ parts }: ConsoleCall): Promise<ConsoleReply> {
  const keys = await parts.store.listSigningKeys();
  return { status: 200, body: { object: 'list', data: keys.map(signingWire) } };
}

/** The old public key stays for ever: it checks what was signed with it. */
export async function rotateSigningKey(call: ConsoleCall): Promise<ConsoleReply> {
  readValue(call.body, nothing);
  const { store, vault } = call.parts;
  const { privateKey } = generateKeyPairSync('ed25519');
  const text = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  const { x, kid } = publicJwk(publicPartOf(text));
  const place = {
    tenant: SERVICE_TENANT,
    secretId: kid,
    owner: kid,
    purpose: 'signing',
    version: 1,
  };
  const secret = await vault.seal(place, new Secret(text), call.now);
  const target = { type: 'signing_key', id: kid };
  const note = noteOf(call, 'signing_key.rotated', { target, details: {} });
  const change = { what: 'signing.add', kid, x, secret, at: call.now } as const;
  mustBeDone(await store.apply(change, note), 'signing key');
  return { status: 201, body: signingWire({ kid, x, createdAt: call.now }) };
}

function signingWire({ kid, x, createdAt, retiredAt }: SigningKeyRow): object {
  return { kid, x, created_at: isoTime(createdAt), retired_at: timeOrNull(retiredAt) };
}
