import { setTimeout as sleep } from 'node:timers/promises';
import { callService, itemOf } from './memory-service.ts';
import type { ServiceProcess } from './service-process.ts';
import { until } from '../../../test/support/sockets.ts';

/**
 * Captures without pause against a service that is killed again and again, and then what became of
 * every record that was acknowledged.
 */

export const KILL_SPACE = 'project/kills';

const SAFE: ReadonlySet<string> = new Set(['durable', 'duplicate']);

/** Sends small batches until the connection breaks; notes in `safe` what was answered as durable. */
export async function captureUntilGone(
  service: Pick<ServiceProcess, 'url'>,
  key: string,
  { run, safe }: { readonly run: string; readonly safe: string[] },
): Promise<void> {
  for (let number = 0; ; number += 1) {
    const texts = [0, 1, 2].map((at) => `Fact ${run} ${number} ${at} about the weather.`);
    try {
      // oxlint-disable-next-line no-await-in-loop -- One batch after the other, until the kill.
      const { status, json } = await callService(service.url, '/v1/svc/memory/capture', {
        key,
        body: { space: KILL_SPACE, if_generation: 'new', items: texts.map((text) => itemOf(text)) },
      });
      if (status !== 200) return;
      const results = json.results as { state: string }[];
      safe.push(...texts.filter((_, at) => SAFE.has(results[at]?.state ?? '')));
    } catch {
      return;
    }
  }
}

/**
 * Kills it `afterMs` later, or that long after something was acknowledged, while two clients capture;
 * what they were told is safe.
 */
export async function killWhileCapturing(
  service: ServiceProcess,
  key: string,
  run: { readonly name: string; readonly afterMs: number; readonly waits: boolean },
): Promise<readonly string[]> {
  const safe: string[] = [];
  const clients = ['a', 'b'].map((one) =>
    captureUntilGone(service, key, { run: `${run.name}${one}`, safe }),
  );
  if (run.waits) await until(() => safe.length > 0);
  await sleep(run.afterMs);
  await service.end('SIGKILL');
  await Promise.all(clients);
  return safe;
}

/** Every text that the service holds in a space, by its own list. */
export async function allTexts(
  url: string,
  key: string,
  space = KILL_SPACE,
): Promise<readonly string[]> {
  const texts: string[] = [];
  for (let after: string | null = '0'; after !== null;) {
    // oxlint-disable-next-line no-await-in-loop -- Pages come one after the other.
    const { json } = await callService(
      url,
      `/v1/svc/memory/items?space=${space}&limit=100&after=${after}`,
      { key },
    );
    texts.push(...json.data.map(({ text }: { text: string }) => text));
    after = json.next_cursor as string | null;
  }
  return texts;
}
