import { setTimeout as sleep } from 'node:timers/promises';
import { probeProxy } from '../../adapters/processes/health-probe.ts';
import {
  isAlive,
  listRunFiles,
  removeRunFile,
  type RunFile,
} from '../../adapters/processes/run-files.ts';
import type { Access } from '../../core/settings/config-schema.ts';

/**
 * The proxies that run on this configuration. A proxy is ours only after it has proven that it
 * holds the local token. svc sends nothing, and no signal, to any other process.
 */
export interface OwnProxy
  extends Pick<RunFile, 'pid' | 'host' | 'port'>, Partial<Omit<RunFile, 'pid' | 'host' | 'port'>> {
  /** Unknown, as all that only the file says, where the process left no file in this data folder. */
  readonly version?: string;
}

export interface Proxies {
  /** The one at the configured address first. */
  readonly own: readonly OwnProxy[];
  /** They left a file, and do not answer as ours: hung, or of another configuration. */
  readonly unproven: readonly RunFile[];
}

export async function findProxies(dataFolder: string, access: Access): Promise<Proxies> {
  const { host, port, localToken } = access;
  const runs = await listRunFiles(dataFolder);
  const isConfigured = (run: RunFile): boolean => run.host === host && run.port === port;
  const all = await Promise.all(
    runs.map(async (run) => ({ run, ...(await probeProxy(run, localToken)) })),
  );
  // Nothing listens there: the proxy was killed, and its process id belongs to another program by
  // now.
  const stale = all.filter(({ listener }) => listener === 'nobody');
  await Promise.all(stale.map(({ run }) => removeRunFile(dataFolder, run.pid)));
  const probed = all.filter(({ listener }) => listener !== 'nobody');
  const own: OwnProxy[] = probed.filter(({ run, pid }) => pid === run.pid).map(({ run }) => run);
  const unproven = probed.filter(({ run, pid }) => pid !== run.pid).map(({ run }) => run);
  if (port !== 0 && !runs.some(isConfigured)) {
    // Started with the same token on another data folder, or its file is gone.
    const { pid } = await probeProxy({ host, port }, localToken);
    if (pid !== undefined) own.push({ pid, host, port });
  }
  const configured = own.filter((proxy) => proxy.port === port);
  return { own: [...configured, ...own.filter((proxy) => proxy.port !== port)], unproven };
}

// Open answers are waited for: proxy.drainMs is 10 s by default, and a process ends within one more.
const STOP_MS = 15_000;
const POLL_MS = 25;

/** True when it has ended. Only for a proxy that has proven to be ours. */
export async function stopProxy({ pid }: OwnProxy): Promise<boolean> {
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // It has ended since it answered, or belongs to another user.
  }
  const deadline = performance.now() + STOP_MS;
  while (isAlive(pid) && performance.now() < deadline) await sleep(POLL_MS);
  return !isAlive(pid);
}
