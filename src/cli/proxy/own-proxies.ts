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

/** A running proxy. The members from its run file are undefined if the data folder has no such file. */
export interface OwnProxy
  extends Pick<RunFile, 'pid' | 'host' | 'port'>, Partial<Omit<RunFile, 'pid' | 'host' | 'port'>> {
  readonly version?: string;
}

export interface Proxies {
  /**
   * Proxies that have proven to have the local token, or the token of their run file. After OwnProxies.find() a proxy
   * at the configured port comes first.
   */
  readonly own: readonly OwnProxy[];
  /** Processes with a run file that have not proven to be such a proxy: they hang, or have another configuration. */
  readonly unproven: readonly RunFile[];
}

/** Deadline of a stop, in milliseconds. A proxy lets answers finish for proxy.drainMs (10 s), then ends in a second. */
const STOP_MS = 15_000;
/** Intervals of looking whether a process has ended, and whether a proxy has open requests, in milliseconds. */
const POLL_MS = 25;
const OPEN_POLL_MS = 250;

/**
 * Finds and asks the proxies of this configuration. Each must first prove that it has the local token. svc sends the
 * token, or a signal, to no other process.
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

  /** Finds the running proxies, and deletes the run files of those that were killed. */
  async find(): Promise<Proxies> {
    const { host, port, localToken } = this.access;
    const runs = await listRunFiles(this.#folder);
    const isConfigured = (run: RunFile): boolean => run.host === host && run.port === port;
    const all = await Promise.all(
      runs.map(async (run) => ({ run, ...(await probeProxy(run, localToken)) })),
    );
    // If nothing listens on the port of a run file, or another proxy of this configuration does, the file's own proxy
    // was killed or is stopping. Another program may have its process id now.
    const isStale = ({ run, listener, pid }: (typeof all)[number]): boolean =>
      listener === 'nobody' || (pid !== undefined && pid !== run.pid);
    const stale = all.filter(isStale);
    await Promise.all(stale.map(({ run }) => removeRunFile(this.#folder, run.pid)));
    const probed = all.filter((one) => !isStale(one));
    const own: OwnProxy[] = probed.filter(({ pid }) => pid !== undefined).map(({ run }) => run);
    const unproven = probed.filter(({ pid }) => pid === undefined).map(({ run }) => run);
    if (port !== 0 && !probed.some(({ run }) => isConfigured(run))) {
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

/** Finds proxies without reading the configuration. Each must prove to have the token whose digest its run file has. */
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

/** Stops a proxy, and waits. Returns false if it still runs at the deadline. */
export async function stopProxy(folder: string, { pid }: OwnProxy): Promise<boolean> {
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // The process has ended meanwhile, or it belongs to another user.
  }
  const deadline = performance.now() + STOP_MS;
  while (isAlive(pid) && performance.now() < deadline) await sleep(POLL_MS);
  if (isAlive(pid)) return false;
  await removeRunFile(folder, pid);
  return true;
}

/** Says whether a proxy runs another build of svc; false if its version is not known. */
export function isOtherBuild({ version, build }: OwnProxy): boolean {
  return version !== undefined && (version !== VERSION || build !== BUILD);
}

export function otherBuildText(proxy: OwnProxy): string {
  const { version = '', build = 'unknown', startedAt } = proxy;
  const since = startedAt === undefined ? '' : ` since ${timeText(startedAt)}`;
  return `The proxy on ${urlOf(proxy)} runs another build of svc${since}: ${versionText(version, build)}. This is ${VERSION_AND_BUILD}.`;
}

/** Describes a process of Proxies.unproven. */
export function unprovenText({ pid, port }: RunFile): string {
  return `Process ${pid} (port ${port}) does not answer as a proxy of this configuration`;
}
