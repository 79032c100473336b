import { findProven } from '../../adapters/processes/local-calls.ts';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { FileError } from '../../adapters/files/file-error.ts';
import { listRunFiles, type RunFile } from '../../adapters/processes/run-files.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { BUILD } from '../../core/version.ts';
import { scriptPath } from '../context.ts';

/**
 * Returns the address at which the proxy listens now: the configured address if a run file names it; otherwise that of
 * the newest running proxy that proves to be svc, because a client will send this proxy the token and its prompts. If
 * no proxy does, returns the configured address, or undefined if the configured port is 0. A proxy has another address
 * after `svc start --port`, or with proxy.port 0.
 */
export async function runningAccess(
  access: Access,
  environment: Environment,
): Promise<Access | undefined> {
  const runs = await runsOf(environment);
  if (runs.some(({ host, port }) => host === access.host && port === access.port)) return access;
  const run = await findProven(runs, access.localToken);
  if (run !== undefined) return { ...access, host: run.host, port: run.port };
  return access.port === 0 ? undefined : access;
}

/**
 * Says whether a background proxy of another build, which svc may replace, listens at this address. The proxy of
 * another installation stays; otherwise two installations would keep ending each other's proxies.
 */
export async function runsOtherBuild(
  { host, port }: Access,
  environment: Environment,
): Promise<boolean> {
  const runs = await runsOf(environment);
  return runs.some(
    (run) =>
      run.host === host &&
      run.port === port &&
      run.isDetached === true &&
      run.script === scriptPath() &&
      run.build !== BUILD,
  );
}

/** Lists the running proxies. Returns none if the data folder is unknown, so that only the configuration counts. */
function runsOf(environment: Environment): Promise<readonly RunFile[]> {
  try {
    return listRunFiles(dataFolder(environment));
  } catch (error) {
    if (error instanceof FileError) return Promise.resolve([]);
    throw error;
  }
}
