import { setTimeout as sleep } from 'node:timers/promises';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import {
  askOpenRequests,
  callProxy,
  type LocalAnswer,
  probeProxy,
} from '../../adapters/processes/local-calls.ts';
import {
  isAlive,
  listRunFiles,
  removeRunFile,
  type RunFile,
} from '../../adapters/processes/run-files.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { BUILD, VERSION, VERSION_AND_BUILD, versionText } from '../../core/version.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import { timeText, urlOf } from '../listing.ts';
import { loadAccess } from '../setup/load-config.ts';

export interface OwnProxy
  extends Pick<RunFile, 'pid' | 'host' | 'port'>, Partial<Omit<RunFile, 'pid' | 'host' | 'port'>> {
  /**
   * The version, from the run file. If the data folder has no run file, it and all other facts of that file are
   * undefined.
   */
  readonly version?: string;
}

export interface Proxies {
  /** Proxies that have proven that they are svc's own. The one at the configured port is first. */
  readonly own: readonly OwnProxy[];
  /** Processes with a run file that have not proven it: they hang, or have another configuration. */
  readonly unproven: readonly RunFile[];
}

/** Deadline of a stop. A proxy lets answers finish for proxy.drainMs, by default 10 s, and ends within a second. */
const STOP_MS = 15_000;
const POLL_MS = 25;
const OPEN_POLL_MS = 250;

/**
 * Finds, asks and stops the proxies of this configuration. A proxy counts as svc's own only after it has proven that it
 * has the local token. svc sends no request with a token, and no signal, to any other process.
 */
export class OwnProxies {
  readonly #folder: string;
  readonly access: Access;

  constructor(folder: string, access: Access) {
    this.#folder = folder;
    this.access = access;
  }

  /** Reads the configuration. Throws CliError if none can be used. */
  static async of(environment: Environment): Promise<OwnProxies> {
    return new OwnProxies(dataFolder(environment), await loadAccess(environment));
  }

  async find(): Promise<Proxies> {
    const { host, port, localToken } = this.access;
    const runs = await listRunFiles(this.#folder);
    const isConfigured = (run: RunFile): boolean => run.host === host && run.port === port;
    const all = await Promise.all(
      runs.map(async (run) => ({ run, ...(await probeProxy(run, localToken)) })),
    );
    // If nothing listens on its port, the proxy was killed, and another program may have its process id.
    const stale = all.filter(({ listener }) => listener === 'nobody');
    await Promise.all(stale.map(({ run }) => removeRunFile(this.#folder, run.pid)));
    const probed = all.filter(({ listener }) => listener !== 'nobody');
    const own: OwnProxy[] = probed.filter(({ run, pid }) => pid === run.pid).map(({ run }) => run);
    const unproven = probed.filter(({ run, pid }) => pid !== run.pid).map(({ run }) => run);
    if (port !== 0 && !runs.some(isConfigured)) {
      // A proxy with the same token may use another data folder, or its run file may be missing.
      const { pid } = await probeProxy({ host, port }, localToken);
      if (pid !== undefined) own.push({ pid, host, port });
    }
    const configured = own.filter((proxy) => proxy.port === port);
    return { own: [...configured, ...own.filter((proxy) => proxy.port !== port)], unproven };
  }

  openRequests(proxy: OwnProxy): Promise<readonly RequestRow[]> {
    return askOpenRequests(proxy, this.access.localToken);
  }

  /** Waits until the proxy has no open request, at most `patienceMs`. Returns the number of open requests. */
  async openAfter(patienceMs: number, proxy: OwnProxy): Promise<number> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const open = (await this.openRequests(proxy)).length;
      if (open === 0 || performance.now() > deadline) return open;
      await sleep(OPEN_POLL_MS);
    }
  }

  /** Sends a request to the proxy as a client does. Returns undefined if no complete answer comes in time. */
  call(
    proxy: OwnProxy,
    call: { readonly path: string; readonly body: string },
    headers: Readonly<Record<string, string>> = {},
  ): Promise<LocalAnswer | undefined> {
    const authorization = `Bearer ${this.access.localToken}`;
    return callProxy(proxy, { ...call, headers: { authorization, ...headers } });
  }
}

/** Finds proxies without the configuration. Each must prove that it has the token whose digest is in its run file. */
export async function findByFiles(folder: string): Promise<Proxies> {
  const runs = await listRunFiles(folder);
  const all = await Promise.all(
    runs.map(async (run) => {
      const digest = Buffer.from(run.tokenDigest ?? '', 'base64url');
      return { run, isOwn: digest.length > 0 && (await probeProxy(run, digest)).pid === run.pid };
    }),
  );
  const [own, unproven] = [true, false].map((isOwn) =>
    all.filter((one) => one.isOwn === isOwn).map(({ run }) => run),
  );
  return { own: own ?? [], unproven: unproven ?? [] };
}

/** Stops a proxy that has proven to be svc. Returns true if it has ended before the deadline. */
export async function stopProxy(folder: string, { pid }: OwnProxy): Promise<boolean> {
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // The process has ended meanwhile, or belongs to another user.
  }
  const deadline = performance.now() + STOP_MS;
  while (isAlive(pid) && performance.now() < deadline) await sleep(POLL_MS);
  if (isAlive(pid)) return false;
  await removeRunFile(folder, pid);
  return true;
}

/** Says whether a proxy runs another build of svc; false if it has no run file that says so. */
export function isOtherBuild({ version, build }: OwnProxy): boolean {
  return version !== undefined && (version !== VERSION || build !== BUILD);
}

export function otherBuildText(proxy: OwnProxy): string {
  const { version = '', build = 'unknown', startedAt } = proxy;
  const since = startedAt === undefined ? '' : ` since ${timeText(startedAt)}`;
  return `The proxy on ${urlOf(proxy)} runs another build of svc${since}: ${versionText(version, build)}. This is ${VERSION_AND_BUILD}.`;
}

/** Describes a process that has a run file, and has not proven to be svc. */
export function unprovenText({ pid, port }: RunFile): string {
  return `Process ${pid} (port ${port}) does not answer as a proxy of this configuration`;
}
