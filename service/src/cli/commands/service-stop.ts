import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../../../../src/adapters/files/file-error.ts';
import { isAlive } from '../../../../src/adapters/processes/processes.ts';
import { lockServiceFolder } from '../../adapters/service-store/folder-lock.ts';
import { DRAIN_MS } from '../../core/settings.ts';
import { CliError, type ExitCode } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { folderOf, type FolderOption } from './service-context.ts';
import { serviceSettings } from './service-settings.ts';
import { findService } from './service-status.ts';

/** After `drainMs` a service closes its store and its journals, which takes a second on a slow disk. */
const CLOSE_MS = 15_000;
const POLL_MS = 25;

/**
 * `svc-service stop`: ends the service that runs on this folder, once its open calls have finished. A
 * process gets a signal only while the folder is locked and the address in the run file answers.
 */
export async function stopService(
  options: FolderOption,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal } = context;
  const folder = folderOf(options, context);
  const { drainMs = DRAIN_MS } = await serviceSettings(folder);
  if (!(await isLocked(folder))) {
    terminal.note(`No service runs on ${folder}.`);
    return 0;
  }
  const running = await findService(folder);
  if (running === undefined) {
    throw new CliError(
      `A process uses ${folder}, but no service answers there yet.`,
      'It may be a service that starts, or a restore. Try again in a moment: svc-service status',
    );
  }
  sendStop(running.pid);
  const deadline = performance.now() + drainMs + CLOSE_MS;
  while (isAlive(running.pid) && performance.now() < deadline) await sleep(POLL_MS);
  if (isAlive(running.pid)) {
    throw new CliError(
      `Process ${running.pid} has not stopped yet. It may still be finishing calls.`,
      'Check again with: svc-service status',
    );
  }
  terminal.note(`Stopped: process ${running.pid}`);
  return 0;
}

async function isLocked(folder: string): Promise<boolean> {
  const lock = await lockServiceFolder(folder);
  lock?.close();
  return lock === undefined;
}

function sendStop(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch (error) {
    // It has ended since it answered.
    if (codeOf(error) !== 'EPERM') return;
    throw new CliError(
      `Process ${pid} belongs to another user.`,
      'Stop it as that user, or with the service manager that started it.',
    );
  }
}
