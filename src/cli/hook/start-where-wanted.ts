import { CODEX_FOLDER, readClientFile } from '../../adapters/foreign/client-files.ts';
import { startBackground } from '../../adapters/processes/background.ts';
import { probeProxy } from '../../adapters/processes/local-calls.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { scriptPath } from '../context.ts';
import type { HookCall } from './hook-call.ts';

/** Starts the proxy for a client whose settings name it. Without a proxy the client would show nothing for a minute. */

/** Deadline, in ms, of waiting for a starting proxy, which takes some 300. A client repeats a failed first request. */
const START_MS = 700;
const POLL_MS = 25;

export async function startWhereWanted(
  call: HookCall,
  { access, dataFolder }: { readonly access: Access | undefined; readonly dataFolder: string },
): Promise<void> {
  if (access === undefined || access.port === 0) return;
  if (!isSetTo(`${access.host}:${access.port}`, call)) return;
  const isThere = async (): Promise<boolean> =>
    (await probeProxy(access, access.localToken)).listener !== 'nobody';
  if (await isThere()) return;
  const command = [scriptPath(), 'start', '--quiet'];
  startBackground({ command, dataFolder, environment: call.environment }).release();
  const end = performance.now() + START_MS;
  while (performance.now() < end && !(await isThere())) await sleep(POLL_MS);
}

/**
 * Says whether Claude Code or Codex is configured for this address; false for other clients. Claude Code passes the
 * variables of its settings to hooks; Codex has the address in its file.
 */
function isSetTo(address: string, { client, environment }: HookCall): boolean {
  if (client === 'claude')
    return (environment['ANTHROPIC_BASE_URL'] ?? '').includes(`//${address}`);
  if (client !== 'codex') return false;
  return readClientFile(environment, CODEX_FOLDER, 'config.toml').includes(`//${address}/`);
}
