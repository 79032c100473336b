import { delimiter, dirname } from 'node:path';
import { clientEnvironment } from './claude-code.ts';
import { type InstalledClient, binaryOf } from './installed-client.ts';
import { type Program, runProgram } from './program.ts';
import type { Stage } from './stage.ts';

/** `svc …` as the person types it who also starts the client: same home, the client on the PATH. */
export function svcCommand(
  stage: Stage,
  client: InstalledClient,
  args: readonly string[],
): Program {
  const bin = dirname(binaryOf(client, 'any'));
  return runProgram({
    file: process.execPath,
    args: [stage.svc.program, ...args],
    folder: stage.project,
    env: {
      ...stage.svc.env,
      ...clientEnvironment(stage),
      PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}`,
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
  });
}
