import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { asRecord, parseJson } from '../../core/bytes/json-fields.ts';
import type { ConsoleOperationName } from '../../core/service/console-routes.ts';
import { Secret } from '../../core/service/secret.ts';
import type { SealedSecret } from '../../ports/vault-store.ts';
import { ServiceFault } from '../fault.ts';
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

const IN_PROGRESS_MS = 500;

/** Calls that run, with the hash of what they ask. */
const running = new Map<string, string>();

export async function answerOnce(
  call: ConsoleCall & { readonly operation: ConsoleOperationName },
  idempotencyKey: string,
  work: () => Promise<ConsoleReply>,
): Promise<ConsoleReply> {
  const { actor, tenantId, method, path, query, body, now } = call;
  const asked = { keyId: `${actor.type}:${actor.id}`, idempotencyKey };
  const requestHash = createHash('sha256')
    .update(`${method}\n${path}\n${query.toString()}\n${JSON.stringify(body ?? null)}`)
    .digest('base64url');
  const name = [tenantId, asked.keyId, idempotencyKey].join(' ');
  const hash = running.get(name);
  if (hash !== undefined && hash !== requestHash) throw conflict();
  if (hash !== undefined) {
    const message = 'A call with this Idempotency-Key is still running.';
    throw new ServiceFault('IDEMPOTENCY_IN_PROGRESS', message, { afterMs: IN_PROGRESS_MS });
  }
  running.set(name, requestHash);
  try {
    const store = storeOf(call);
    const kept = await store.findAnswer(asked, AbortSignal.timeout(STORE_MS));
    if (kept !== undefined && kept.requestHash !== requestHash) throw conflict();
    if (kept !== undefined) return await readAnswer(call, kept.body);
    const isSecret = SECRET_ANSWERS.has(call.operation);
    // Without a vault the new secret could stand in no second answer: then none is made.
    if (isSecret) await sealAnswer(call, name, { status: 204 });
    const reply = await work();
    const text = isSecret ? await sealAnswer(call, name, reply) : JSON.stringify(reply);
    await store.keepAnswer(asked, { requestHash, body: text, at: now });
    return reply;
  } finally {
    running.delete(name);
  }
}

const STORE_MS = 5000;

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

function conflict(): ServiceFault {
  const message = 'This Idempotency-Key came with another call before.';
  return new ServiceFault('IDEMPOTENCY_CONFLICT', message);
}
