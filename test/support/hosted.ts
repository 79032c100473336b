import { onTestFinished } from 'vitest';
import {
  type HostedMemoryOptions,
  openHostedMemoryWithOutbox,
  type HostedMemoryWithOutbox,
} from '../../src/adapters/memory-client/open-hosted-memory.ts';
import { openState } from '../../src/adapters/state/state.ts';
import { FakeService } from './fake-service.ts';
import { tempFolder } from './temp-folder.ts';

/** A hosted memory and the service that it talks to, closed when the test ends. */
export interface HostedScene {
  readonly service: FakeService;
  readonly hosted: HostedMemoryWithOutbox;
  readonly folder: string;
  /** What svc said to the person at the terminal. */
  readonly lines: string[];
  /** Another process on the same folder, as after a restart. */
  readonly reopen: (options?: Partial<HostedMemoryOptions>) => HostedMemoryWithOutbox;
}

export async function openHostedScene(
  options: Partial<HostedMemoryOptions> = {},
  port = 0,
): Promise<HostedScene> {
  const service = await new FakeService().listen(port);
  const folder = tempFolder();
  const lines: string[] = [];
  const open: HostedScene['reopen'] = (other = {}) => {
    const report = (line: string): void => void lines.push(line);
    const state = openState({ folder, report });
    const hosted = openHostedMemoryWithOutbox({
      settings: settingsFor(service),
      // A machine that runs many tests at once may need longer than a person should wait.
      recallMs: 10_000,
      report,
      ...options,
      ...other,
      state,
    });
    onTestFinished(async () => {
      await hosted.close();
      await state.close();
    });
    return hosted;
  };
  onTestFinished(() => service.close());
  return { service, hosted: open(), folder, lines, reopen: open };
}

export function settingsFor(service: FakeService) {
  const { url: baseUrl, key: serviceKey } = service;
  return { kind: 'hosted', baseUrl, serviceKey, allowPrivate: true } as const;
}

export function patience(): AbortSignal {
  return AbortSignal.timeout(30_000);
}
