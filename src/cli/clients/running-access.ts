import { findProven } from '../../adapters/processes/local-calls.ts';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { FileError } from '../../adapters/files/file-error.ts';
import { listRunFiles, type RunFile } from '../../adapters/processes/run-files.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { BUILD } from '../../core/version.ts';

/**
 * Where the proxy listens now. That is the configured port, unless only a proxy with another one runs:
 * after `svc start --port`, or where proxy.port is 0. Such a one must prove first that it is ours,
 * because a client sends the token and its prompts there. Undefined if the port is unknown.
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
 * Whether an older build of the same program listens there, which svc may replace. Another installation
 * keeps its proxy: two that are in use would otherwise end each other's again and again.
 */
export async function runsOtherBuild(
  { host, port }: Access,
  environment: Environment,
  script: string,
): Promise<boolean> {
  const runs = await runsOf(environment);
  return runs.some(
    (run) =>
      run.host === host &&
      run.port === port &&
      run.isDetached === true &&
      run.script === script &&
      run.build !== BUILD,
  );
}

/** No proxies where the data folder is unknown: then only the configuration is left. */
function runsOf(environment: Environment): Promise<readonly RunFile[]> {
  try {
    return listRunFiles(dataFolder(environment));
  } catch (error) {
    if (error instanceof FileError) return Promise.resolve([]);
    throw error;
  }
}
