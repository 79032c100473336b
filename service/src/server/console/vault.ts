import { generateKeyPairSync } from 'node:crypto';
import { asList } from '../../../../src/core/bytes/json-fields.ts';
import { closed, type Infer, text } from '../../../../src/core/memory-api/shape.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { publicJwk, publicPartOf } from '../../core/jws.ts';
import { Secret } from '../../core/envelope.ts';
import { MASTER_KEY_ID } from '../../core/settings.ts';
import { SERVICE_TENANT } from '../../core/tenants.ts';
import type { SigningKeyRow } from '../../ports/vault-store.ts';
import { ServiceFault } from '../fault.ts';
import { underLease } from '../leases.ts';
import {
  apply,
  command,
  type ConsoleCall,
  type ConsoleOperation,
  type ConsoleReply,
  nothing,
  option,
  reads,
  type Say,
  type Shown,
  timeOrNull,
  writes,
} from './operation.ts';

/** Operations on the vault's master keys and on signing keys, for operators. No answer contains a private key. */

/** The body that adds a master key. The settings must name a source for the key with this id. */
export const masterKeyAdd = closed({ key_id: text({ pattern: MASTER_KEY_ID }) });

export const vaultOperations: readonly ConsoleOperation[] = [
  reads({ name: 'getVault', route: 'GET vault', role: 'operator' }, getVault, [
    command(
      'vault status',
      'List master keys and how many secrets each encrypts; exit 1 if the active one does not fit',
      {
        list: {
          member: 'keys',
          columns: [
            'key_id',
            'state',
            ({ secrets }, { count }) => count(secrets, 'secret'),
            ({ created_at: at }, { time }) => time(at),
          ],
        },
        shows: ({ problem }, { line }) => ({ warnings: problem === null ? [] : [line(problem)] }),
      },
    ),
  ]),
  writes(
    { name: 'addMasterKey', route: 'POST vault/keys', role: 'operator' },
    masterKeyAdd,
    addMasterKey,
    [
      command(
        'vault add',
        'Add a master key on the machine of the service; it encrypts new secrets',
        {
          options: [
            option(
              '--from <source>',
              'file:/path, env:NAME or command:… (default: create a new file)',
              'from',
            ),
          ],
          examples: [
            'vault add',
            'vault add --from env:SVC_MASTER_KEY',
            'vault add --from "command:pass show svc/master"',
          ],
          more: 'A key is 32 bytes in base64 or hexadecimal. service.json holds its source, never the key.',
        },
      ),
    ],
  ),
  writes(
    { name: 'rotateVault', route: 'POST vault/rotate', role: 'operator' },
    nothing,
    rotateVault,
    [
      command(
        'vault rotate',
        'Encrypt all secrets with the active master key; if interrupted, run it again',
        {
          shows: (answer, say) =>
            walkShown(answer, say, ['is', 'are', 'encrypted with the active master key now']),
        },
      ),
    ],
  ),
  writes(
    { name: 'verifyVault', route: 'POST vault/verify', role: 'operator' },
    nothing,
    verifyVault,
    [
      command('vault verify', 'Decrypt every secret; exit 1 if one fails', {
        shows: (answer, say) => walkShown(answer, say, ['was', 'were', 'tried']),
      }),
    ],
  ),
  reads(
    { name: 'retireMasterKey', route: 'DELETE vault/keys/*', role: 'operator' },
    retireMasterKey,
    [
      command('vault retire', 'Retire a master key that encrypts no secret any more', {
        argument: {
          flags: '<id>',
          about: 'the id (mk_…) from svc-service vault status',
          pattern: MASTER_KEY_ID,
          problem: ['This is not the id of a master key.', 'See: svc-service vault status'],
        },
        examples: ['vault retire mk_4kz0ab7x'],
        note: 'The master key is retired. Older backups still need it.',
      }),
    ],
  ),
  reads({ name: 'listSigningKeys', route: 'GET signing', role: 'operator' }, listSigningKeys, [
    command('signing list', 'List signing keys, newest first', {
      list: {
        isLoose: true,
        columns: [
          'kid',
          ({ retired_at: at }, { time }) => (at === null ? 'signs' : `retired ${time(at)}`),
        ],
      },
    }),
  ]),
  writes(
    { name: 'rotateSigningKey', route: 'POST signing/rotate', role: 'operator' },
    nothing,
    rotateSigningKey,
    [
      command('signing rotate', 'Create a new signing key; the old public key stays published', {
        shows: ({ kid }, { line }) => ({ note: `The key ${line(kid)} signs from now on.` }),
      }),
    ],
  ),
];

/** Says how many secrets were encrypted or tried, and which secrets cannot be decrypted. */
function walkShown(
  { secrets, unreadable }: Readonly<Record<string, unknown>>,
  { count, line }: Say,
  [one, many, done]: readonly [string, string, string],
): Shown {
  return {
    note: `${count(secrets, 'secret')} ${secrets === 1 ? one : many} ${done}.`,
    warnings: asList(unreadable).map((id) => `${line(id)} cannot be decrypted.`),
  };
}

async function getVault({ parts }: ConsoleCall): Promise<ConsoleReply> {
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

async function addMasterKey(
  call: ConsoleCall,
  { key_id: id }: Infer<typeof masterKeyAdd>,
): Promise<ConsoleReply> {
  const { store, vault } = call.parts;
  const canary = await vault.canaryOf(id);
  await apply(
    call,
    store,
    { what: 'master.add', id, canary, at: call.now },
    { kind: 'vault.kek_added', id: id, type: 'master_key' },
  );
  return { status: 201, body: { key_id: id, state: 'active' } };
}

async function retireMasterKey(call: ConsoleCall): Promise<ConsoleReply> {
  const id = call.parameter;
  if (!MASTER_KEY_ID.test(id)) throw new ServiceFault('NOT_FOUND', 'There is no such master key.');
  await apply(
    call,
    call.parts.store,
    { what: 'master.retire', id, at: call.now },
    { kind: 'vault.kek_retired', id: id, type: 'master_key' },
  );
  return { status: 204 };
}

async function rotateVault(call: ConsoleCall): Promise<ConsoleReply> {
  const { store, vault, randomBytes } = call.parts;
  const needs = { store: store.of(SERVICE_TENANT), randomBytes };
  const done = await underLease(needs, 'job:rewrap', () =>
    vault.rotate((rows) =>
      apply(
        call,
        store,
        { what: 'secrets.rewrap', rows },
        {
          kind: 'vault.rotated',
          id: rows[0]?.kek ?? '',
          what: 'secret',
          details: { secrets: rows.length },
        },
      ),
    ),
  );
  if (done === undefined) throw new ServiceFault('CONFLICT', 'Another process rotates the vault.');
  const { secrets, unreadable } = done.result;
  return { status: 200, body: { secrets, unreadable } };
}

async function verifyVault(call: ConsoleCall): Promise<ConsoleReply> {
  const { secrets, unreadable } = await call.parts.vault.verify();
  return { status: 200, body: { secrets, unreadable } };
}

async function listSigningKeys({ parts }: ConsoleCall): Promise<ConsoleReply> {
  const keys = await parts.store.listSigningKeys();
  return { status: 200, body: { object: 'list', data: keys.map(signingWire) } };
}

/** Makes a new signing key. The old public key is kept for ever, to check older signatures. */
async function rotateSigningKey(call: ConsoleCall): Promise<ConsoleReply> {
  const { store, vault } = call.parts;
  const { privateKey } = generateKeyPairSync('ed25519');
  const der = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  const { x, kid } = publicJwk(publicPartOf(der));
  const place = {
    tenant: SERVICE_TENANT,
    secretId: kid,
    owner: kid,
    purpose: 'signing',
    version: 1,
  };
  const secret = await vault.seal(place, new Secret(der), call.now);
  await apply(
    call,
    store,
    { what: 'signing.add', kid, x, secret, at: call.now },
    { kind: 'signing_key.rotated', id: kid },
  );
  return { status: 201, body: signingWire({ kid, x, createdAt: call.now }) };
}

function signingWire({ kid, x, createdAt, retiredAt }: SigningKeyRow): object {
  return { kid, x, created_at: isoTime(createdAt), retired_at: timeOrNull(retiredAt) };
}
