import type { NetworkProxy } from '../../core/settings/network-proxy.ts';
import { isOwnMachineUrl } from '../../core/settings/own-machine.ts';
import { type KeyCheck, meaningOf } from './key-check.ts';
import { MemoryError } from '../../core/errors.ts';

/**
 * Whether a hosted memory can be reached and takes its key. It makes the proxy's own call at its
 * start, and reads the answer as the proxy does. Only names of scopes in the answer are shown.
 */

export interface ServicePlace {
  readonly baseUrl: string;
  readonly serviceKey: string;
  readonly allowPrivate?: boolean;
  readonly proxy?: NetworkProxy;
}

// A memory that needs seconds would be left out of every request.
const ANSWER_MS = 5000;
const WHO = 'the memory service';

export async function checkService(place: ServicePlace): Promise<KeyCheck> {
  const { baseUrl, serviceKey, proxy } = place;
  const allowPrivate = place.allowPrivate === true || isOwnMachineUrl(baseUrl);
  const { openHostedMemory } = await import('../../adapters/memory-client/open-hosted-memory.ts');
  const service = openHostedMemory({
    settings: {
      kind: 'hosted',
      baseUrl,
      serviceKey,
      allowPrivate,
      ...(proxy === undefined ? {} : { proxy }),
    },
    recallMs: ANSWER_MS,
    report: () => undefined,
  });
  const from = performance.now();
  try {
    const { key } = await service.operations.whoAmI(AbortSignal.timeout(ANSWER_MS));
    const ms = Math.round(performance.now() - from);
    const may = key.scopes.length === 0 ? 'nothing' : key.scopes.join(', ');
    return { state: 'accepted', found: `the key is accepted and may: ${may}; ${ms} ms` };
  } catch (error) {
    if (error instanceof MemoryError) return checkOf(error);
    throw error;
  } finally {
    await service.close();
  }
}

function checkOf({ reason, message }: MemoryError): KeyCheck {
  switch (reason) {
    case 'denied':
      return { state: 'refused', found: `${WHO} refuses the service key, or blocks it` };
    case 'invalid':
      return {
        state: 'unknown',
        found: 'the program at this address is not a memory service: is the URL right?',
      };
    case 'rate_limited':
      return { state: 'unknown', found: `${WHO} answers, but limits this key now` };
    case 'timeout':
      return { state: 'unreachable', found: `${WHO} does not answer in time` };
    case 'unavailable':
  }
  // The link says nothing else in brackets than what the system or a contract calls the failure.
  const code = /\(([A-Z][A-Z0-9_]+)\)/.exec(message)?.[1];
  const isRefused = code === 'SVC_ADDRESS_REFUSED' || message.includes('is not allowed');
  if (isRefused) {
    const found = 'its address is private, which svc uses only if you allow it';
    return { state: 'not_allowed', found };
  }
  if (code === undefined || message.includes('refused')) {
    return { state: 'unknown', found: `${WHO} has a fault` };
  }
  return { state: 'unreachable', found: meaningOf(code) };
}
