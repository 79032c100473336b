import { randomBytes } from 'node:crypto';
import { readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/own-folders.ts';
import { SERVICE_FULL } from '../../adapters/memory-client/hosted-memory.ts';
import type { OpenHostedMemory } from '../../adapters/memory-client/open-hosted-memory.ts';
import { parseMemory } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import type { WhoAmI } from '../../core/memory-api/contract.ts';
import { PROOF_FEATURE } from '../../core/memory-api/words.ts';
import { OUTPUT_PLACE, textDigest } from '../../core/memory/reference.ts';
import { textProof } from '../../core/memory-api/canonical.ts';
import type { MemoryMode } from '../../core/http/modes.ts';
import { deadline, WAIT_MS } from '../store.ts';
import type { Check } from './checks.ts';
import { MemoryError, type MemoryFailure } from '../../core/errors.ts';

/**
 * Checks a memory service: whether it accepts the key, what the key may do, how long a call takes, and, with a key that
 * may read and write, a test record.
 */

const SUBJECT = 'Memory service';
/** The space of test records. A service keeps a mark of each forgotten record, which no project's space should get. */
const PROBE_SPACE = 'svc/doctor';

/** Checks the memory service; returns nothing if memories are on this machine. */
export async function checkHosted(environment: Environment): Promise<readonly Check[]> {
  const { memory: settings, mode } = await memoryIn(environment);
  if (settings?.kind !== 'hosted') return [];
  const { openHostedMemory } = await import('../../adapters/memory-client/open-hosted-memory.ts');
  const service = openHostedMemory({ settings, recallMs: WAIT_MS, report: () => undefined });
  try {
    return await checksOf(service, { mode, host: new URL(settings.baseUrl).host });
  } finally {
    await service.close();
  }
}

/** Reads the settings of the memory from the configuration. Ignores errors in other parts of the file. */
export async function memoryIn(environment: Environment): Promise<ReturnType<typeof parseMemory>> {
  const file = await readConfigFile(configFolder(environment)).catch(() => undefined);
  return parseMemory(file?.value ?? {}, environment);
}

async function checksOf(
  { operations, memory }: OpenHostedMemory,
  { mode, host }: { readonly mode: MemoryMode; readonly host: string },
): Promise<readonly Check[]> {
  try {
    const identity = await operations.whoAmI(deadline(), PROBE_SPACE);
    // Measure the second call, because the first one also opens the connection.
    const from = performance.now();
    await operations.whoAmI(deadline());
    const tripMs = Math.round(performance.now() - from);
    const checks = [
      { level: 'ok', subject: SUBJECT, found: identityText(identity, host, tripMs) } as const,
      ...scopeChecks(identity, mode),
    ];
    const { scopes } = identity.key;
    const isOpen = scopes.includes('read') && scopes.includes('write');
    return isOpen ? [...checks, await probe(memory, identity)] : checks;
  } catch (error) {
    return [failureCheck(error, host)];
  }
}

function identityText({ key, space_state: state }: WhoAmI, host: string, tripMs: number): string {
  const may = key.scopes.length === 0 ? 'nothing' : key.scopes.join(', ');
  const generation = state === undefined ? '' : `, generation ${state.generation}`;
  return `${host} accepts the key ${key.key_id}, which may: ${may}${generation}; a round trip takes ${tripMs} ms`;
}

function scopeChecks({ key, features }: WhoAmI, memoryMode: MemoryMode): readonly Check[] {
  const checks: Check[] = [];
  const wanted = memoryMode === 'read-write' ? ['read', 'write'] : [memoryMode];
  const missing = (['read', 'write'] as const).filter(
    (scope) => wanted.includes(scope) && !key.scopes.includes(scope),
  );
  if (missing.length > 0) {
    const found = `memoryMode is ${memoryMode}, but the key may not ${missing.join(' or ')}: requests continue with less memory`;
    const fix = 'Ask for a key with more scopes, or: svc setup --yes --memory-mode MODE';
    checks.push({ level: 'warning', subject: SUBJECT, found, fix });
  }
  if (!features.includes(PROOF_FEATURE)) {
    const found = 'it cannot prove what it stores, so svc never leaves out tool output';
    checks.push({ level: 'warning', subject: SUBJECT, found });
  }
  return checks;
}

/** Writes a test record to the service, reads it, asks for its proof if the service makes proofs, and forgets it. */
async function probe(memory: OpenHostedMemory['memory'], identity: WhoAmI): Promise<Check> {
  const text = `svc doctor looks whether memory works: ${randomBytes(16).toString('hex')}`;
  const digest = textDigest('tool', text);
  const at = Date.now();
  const place = { ...OUTPUT_PLACE, space: PROBE_SPACE, conversation: 'doctor' };
  const record = { ...place, digest, text, client: 'svc', at };
  const step = async (): Promise<string | undefined> => {
    const [state] = await memory.capture([record], deadline());
    if (state !== 'stored') return 'it did not accept a record';
    const kept = await memory.retrieve({ digest, space: PROBE_SPACE }, deadline());
    if (kept?.text !== text) return 'it did not return a record unchanged';
    if (identity.features.includes(PROOF_FEATURE)) {
      const nonce = randomBytes(32);
      const question = { space: PROBE_SPACE, digests: [digest], nonce };
      const [held] = await memory.hold(question, deadline());
      if (held?.proof !== textProof(nonce, 'tool', text))
        return 'it did not prove a record that it accepted';
    }
    const forgotten = await memory.forget({ refs: [kept.ref], space: PROBE_SPACE }, deadline());
    if (forgotten !== 1) return 'it did not forget a record';
    const after = await memory.retrieve({ digest, space: PROBE_SPACE }, deadline());
    return after === undefined ? undefined : 'it still has a record that it claimed to forget';
  };
  const wrong = await step();
  if (wrong === undefined) {
    const proven = identity.features.includes(PROOF_FEATURE) ? ', proven' : '';
    const found = `a record was written, read${proven} and forgotten`;
    return { level: 'ok', subject: SUBJECT, found };
  }
  const fix = 'Ask the operator of the service. Requests continue without it.';
  return { level: 'problem', subject: SUBJECT, found: wrong, fix };
}

const FIXES: Readonly<Record<MemoryFailure, string>> = {
  denied: 'Give another key: svc setup --yes --memory hosted --service-key-stdin',
  invalid: 'Check the URL with: svc setup',
  rate_limited: 'Wait a minute, then check again.',
  timeout: 'Check the network, and whether the service runs.',
  unavailable: 'Check the network, and the URL with: svc setup',
};

const ROOM_FIX = 'Ask the operator of the service, or delete some with: svc memory forget';

function failureCheck(error: unknown, host: string): Check {
  if (!(error instanceof MemoryError)) throw error;
  const found = `${host}: ${error.message} Requests continue without memory.`;
  const fix = error.message === SERVICE_FULL ? ROOM_FIX : FIXES[error.reason];
  return { level: 'problem', subject: SUBJECT, found, fix };
}
