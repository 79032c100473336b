import { type CommandContext, scriptPath } from '../context.ts';
import { loadAccess } from '../setup/load-config.ts';
import { spawn } from 'node:child_process';
import { probeProxy } from '../../adapters/processes/local-calls.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import { CliError } from '../cli-error.ts';

export interface TokenOptions {
  /** True: start the proxy if none listens. */
  readonly start?: boolean;
}

/** Runs `svc config token`: prints only the token and a line end on stdout. Messages go to stderr. */
export async function printToken(options: TokenOptions, context: CommandContext): Promise<void> {
  const access = await loadAccess(context.environment);
  if (options.start === true) await startForClient(access, context);
  context.terminal.out(access.localToken);
}

/** Deadline of starting a proxy, in ms: Codex gives its token command 5 seconds, during which the user sees nothing. */
const START_MS = 4_500;

/**
 * Starts the proxy if none listens or another build of this program does, because the client is about to send it a
 * request. Clients ask for the token often; if the proxy listens, that costs one call on loopback and a look at the run
 * files. Throws CliError if the proxy cannot be started, also because another program has its port: the client would
 * send the token to that program. The reason is already on stderr.
 */
async function startForClient(
  access: Access,
  { environment, terminal }: CommandContext,
): Promise<void> {
  const { listener, pid } = await probeProxy(access, access.localToken);
  // A proxy on a busy machine may be silent. A second start would not answer sooner.
  if (pid !== undefined || listener === 'silent') {
    const { runsOtherBuild } = await import('./running-access.ts');
    // `svc start --detach` replaces an older build of this program.
    if (!(await runsOtherBuild(access, environment))) return;
  }
  const child = spawn(process.execPath, [scriptPath(), 'start', '--detach', '--quiet'], {
    env: { ...environment },
    // stdout must contain only the token.
    stdio: ['ignore', 'ignore', 'inherit'],
    windowsHide: true,
  });
  const code = await new Promise<number | 'late'>((resolve) => {
    const timer = setTimeout(resolve, START_MS, 'late');
    child.on('error', () => resolve(1));
    child.on('exit', (exit) => resolve(exit ?? 1));
    child.on('close', () => clearTimeout(timer));
  });
  if (code === 0) return;
  if (code === 'late') {
    child.unref();
    terminal.note('svc is still starting. If the client cannot connect, check: svc status');
    return;
  }
  throw new CliError(
    'The proxy does not run, and could not be started for this client.',
    'The reason is above. For more details, run: svc start, svc doctor',
  );
}
