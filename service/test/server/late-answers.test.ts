import { expect, test, vi } from 'vitest';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { itemOf } from '../support/memory-service.ts';
import { openService, SPACE, statesOf } from '../support/open-service.ts';
import { newPurgeId } from '../support/service-objects.ts';
import { MemoryError } from '../../../src/core/errors.ts';

/** An answer at the deadline tells where its space stands, as the store said during this very call. */

const DEADLINE = { 'x-svc-deadline-ms': '400' };

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new MemoryError('timeout', 'aborted')));
  });
}

/** Some methods of the tenant's store hang from now on. */
function hang(store: ServiceStore, names: readonly ('recall' | 'capture' | 'spaceState')[]): void {
  const tenant = store.of('default');
  vi.spyOn(store, 'of').mockReturnValue(tenant);
  for (const name of names) {
    vi.spyOn(tenant, name).mockImplementation((_: unknown, signal: AbortSignal) =>
      untilAborted(signal),
    );
  }
}

async function purgeElsewhere(store: ServiceStore): Promise<string> {
  const scope = { all: true } as const;
  const order = { purgeId: newPurgeId(), space: SPACE, scope, isDryRun: false };
  const { generation_after: generationAfter } = await store.of('default').beginPurge({
    ...order,
    requestedBy: 'k',
    now: 6,
  });
  return generationAfter;
}

test('a recall that is late tells the generation of now, not the one that it saw last', async () => {
  const { service, capture, recall, ask } = await openService();
  await capture([itemOf('The build runs on port 6431.')]);
  const body = { space: SPACE, max_tokens: 512, query: { text: 'Which port?' } };
  const { json: before } = await recall({ query: { text: 'Which port?' } });
  hang(service.store, ['recall']);
  const late = await ask('memory/recall', { body, headers: DEADLINE });
  expect(late.json).toMatchObject({ degraded: 'deadline', generation: before.generation });
  vi.restoreAllMocks();
  const generation = await purgeElsewhere(service.store);
  expect(generation).not.toBe(before.generation);
  hang(service.store, ['recall']);
  const later = await ask('memory/recall', { body, headers: DEADLINE });
  vi.restoreAllMocks();
  expect(later.json).toMatchObject({ degraded: 'deadline', generation, items: [] });
});

test('a store that says nothing in time gets its caller a 503, and no state of before', async () => {
  const { service, capture, recall, ask } = await openService();
  await capture([itemOf('The build runs on port 6431.')]);
  await recall({ query: { text: 'Which port?' } });
  hang(service.store, ['recall', 'capture', 'spaceState']);
  const body = { space: SPACE, max_tokens: 512, query: { text: 'Which port?' } };
  const recalled = await ask('memory/recall', { body, headers: DEADLINE });
  const items = [itemOf('Something else.')];
  const captured = await ask('memory/capture', {
    body: { space: SPACE, if_generation: 'new', items },
    headers: DEADLINE,
  });
  vi.restoreAllMocks();
  for (const answer of [recalled, captured]) {
    expect([answer.status, answer.json.error.code]).toEqual([503, 'STORE_UNAVAILABLE']);
  }
});

test('a capture that is late from its first record on tells the state of now', async () => {
  const { service, capture, ask } = await openService();
  await capture([itemOf('The build runs on port 6431.')]);
  const captureLate = async () => {
    hang(service.store, ['capture']);
    const body = { space: SPACE, if_generation: 'new', items: [itemOf('Something else.')] };
    const answer = await ask('memory/capture', { body, headers: DEADLINE });
    vi.restoreAllMocks();
    return answer;
  };
  const { json: before } = await captureLate();
  const generation = await purgeElsewhere(service.store);
  expect(before.generation).not.toBe(generation);
  const late = await captureLate();
  expect(late.json).toMatchObject({ generation, deadline_exceeded: true });
  expect(statesOf(late)).toEqual(['deferred deadline']);
});

test('a call that is answered in time asks the store for no state besides', async () => {
  const { service, capture, recall } = await openService();
  const tenant = service.store.of('default');
  vi.spyOn(service.store, 'of').mockReturnValue(tenant);
  const asked = vi.spyOn(tenant, 'spaceState');
  await capture([itemOf('The build runs on port 6431.')]);
  const { json } = await recall({ query: { text: 'Which port?' } });
  vi.restoreAllMocks();
  expect(json.items).toHaveLength(1);
  expect(asked).not.toHaveBeenCalled();
});
