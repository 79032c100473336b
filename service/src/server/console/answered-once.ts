import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { asRecord, parseJson } from '../../../../src/core/bytes/json-fields.ts';
import type { ConsoleOperationName } from '../../core/console-routes.ts';
import { newId } from '../../core/ids.ts';
import { Secret } from '../../core/secret.ts';
import type { SealedSecret } from '../../ports/vault-store.ts';
import { answeredOnce } from '../answered-once.ts';
import { type ConsoleCall, type ConsoleReply, storeOf } from './console-call.ts';

/**
 * Writes with an Idempotency-Key: the same call again gets the answer of the first one, and changes
 * nothing. An answer that holds a new secret is kept in the vault's form alone.
 */

const SECRET_ANSWERS: ReadonlySet<ConsoleOperationName> = new Set([
  'createKey',
  'rotateKey',
  'createAdmin',
]);

const STORE_MS = 5000;

export async function answerOnce(
  call: ConsoleCall & { readonly operation: ConsoleOperationName },
  idempotencyKey: string,
  work: () => Promise<ConsoleReply>,
): Promise<ConsoleReply> {
  const { actor, tenantId, method, path, query, body, now, parts } = call;
  const key = { keyId: `${actor.type}:${actor.id}`, idempotencyKey };
  const requestHash = createHash('sha256')
    .update(`${method}\n${path}\n${query.toString()}\n${JSON.stringify(body ?? null)}`)
    .digest('base64url');
  const name = [tenantId, key.keyId, idempotencyKey].join(' ');
  const holder = newId('call', parts.randomBytes);
  const signal = AbortSignal.timeout(STORE_MS);
  const asked = { store: storeOf(call), key, requestHash, holder, signal };
  const done = await answeredOnce(asked, async () => {
    const isSecret = SECRET_ANSWERS.has(call.operation);
    // Without a vault a second answer could not contain the new secret, so none is created.
    if (isSecret) await sealAnswer(call, name, { status: 204 });
    const reply = await work();
    const text = isSecret ? await sealAnswer(call, name, reply) : JSON.stringify(reply);
    return { result: reply, kept: { body: text, at: now } };
  });
  return 'result' in done ? done.result : readAnswer(call, done.keptBody);
}

async function sealAnswer(call: ConsoleCall, name: string, reply: ConsoleReply): Promise<string> {
  const secretId = createHash('sha256').update(name).digest('hex').slice(0, 32);
  const { tenantId: tenant, actor, parts, now } = call;
  const place = { tenant, secretId, owner: actor.id, purpose: 'answer', version: 1 };
  const secret = new Secret(JSON.stringify(reply));
  const { wrapped, ciphertext, ...sealed } = await parts.vault.seal(place, secret, now);
  const [one, other] = [wrapped, ciphertext].map((bytes) => Buffer.from(bytes).toString('base64'));
  return JSON.stringify({ sealed: { ...sealed, wrapped: one, ciphertext: other } });
}

// Only this file writes what it reads here.
/* oxlint-disable typescript/no-unsafe-type-assertion */
async function readAnswer({ parts }: ConsoleCall, text: string): Promise<ConsoleReply> {
  const value = asRecord(parseJson(text));
  if (value['sealed'] === undefined) return value as unknown as ConsoleReply;
  const { wrapped, ciphertext, ...sealed } = value['sealed'] as Record<string, unknown>;
  const [one, other] = [wrapped, ciphertext].map((part) => Buffer.from(String(part), 'base64'));
  const secret = { ...sealed, wrapped: one, ciphertext: other } as unknown as SealedSecret;
  return parseJson((await parts.vault.open(secret)).reveal()) as ConsoleReply;
}
