import { setTimeout as sleep } from 'node:timers/promises';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { askOpenRequests } from '../../adapters/processes/open-requests.ts';
import { removeRunFile } from '../../adapters/processes/run-files.ts';
import { BUILD, VERSION, VERSION_AND_BUILD, versionText } from '../../core/version.ts';
import { urlOf, count, timeText } from '../listing.ts';
import type { CommandContext } from '../context.ts';
import { type OwnProxy, stopProxy } from './own-proxies.ts';

/**
 * After an upgrade the proxy in the background still runs the old code. svc ends it, so that the new
 * code takes its place, but never in the middle of an answer.
 */
export interface BuildQuestion {
  /** It has proven to be ours. */
  readonly proxy: OwnProxy;
  readonly localToken: string;
  /** How long its open answers may take. */
  readonly patienceMs: number;
}

const POLL_MS = 250;

/** True when it was of another build and has ended. */
export async function endOtherBuild(
  { proxy, localToken, patienceMs }: BuildQuestion,
  { terminal, environment }: CommandContext,
): Promise<boolean> {
  if (!isOtherBuild(proxy)) return false;
  terminal.warn(otherBuildText(proxy));
  if (proxy.isDetached !== true) {
    terminal.note(
      'svc did not start it in the background, so it keeps running. Restart it yourself.',
    );
    return false;
  }
  const open = await openAfter(patienceMs, proxy, localToken);
  if (open > 0) {
    terminal.note(
      `It keeps running, because it is answering ${count(open, 'request')}. Restart it later: svc stop`,
    );
    return false;
  }
  if (!(await stopProxy(proxy))) return false;
  await removeRunFile(dataFolder(environment), proxy.pid);
  terminal.note('It has stopped, and this build replaces it.');
  return true;
}

/** Without a file nothing is known of it. */
export function isOtherBuild({ version, build }: OwnProxy): boolean {
  return version !== undefined && (version !== VERSION || build !== BUILD);
}

export function otherBuildText(proxy: OwnProxy): string {
  const { version = '', build = 'unknown', startedAt } = proxy;
  const since = startedAt === undefined ? '' : ` since ${timeText(startedAt)}`;
  return `The proxy on ${urlOf(proxy)} runs another build of svc${since}: ${versionText(version, build)}. This is ${VERSION_AND_BUILD}.`;
}

/** How many requests are open once none is, or once the deadline has come. */
async function openAfter(patienceMs: number, proxy: OwnProxy, localToken: string): Promise<number> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const open = (await askOpenRequests(proxy, localToken)).length;
    if (open === 0 || performance.now() > deadline) return open;
    await sleep(POLL_MS);
  }
}
