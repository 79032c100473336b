import { join } from 'node:path';
import { clientEnvironment } from './claude-code.ts';
import { type InstalledClient, binaryOf } from './installed-client.ts';
import { type ProgramEnd, runProgram } from './program.ts';
import type { SdkCall, SdkName } from './sdk-session.ts';
import type { Stage } from './stage.ts';

export interface SdkClients {
  readonly sdk: InstalledClient;
  readonly node24: InstalledClient;
}

export interface SdkStart {
  readonly sdk: SdkName;
  readonly isStreamed: boolean;
  readonly prompt: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly token?: string;
}

/** One call of an SDK; what it printed is the answer as the SDK's caller gets it. */
export async function runSdk(
  clients: SdkClients,
  stage: Stage,
  start: SdkStart,
): Promise<ProgramEnd & { readonly text: string }> {
  const call: SdkCall = {
    sdk: start.sdk,
    isStreamed: start.isStreamed,
    folder: clients.sdk.folder,
    baseUrl: stage.url,
    token: start.token ?? stage.svc.token,
    prompt: start.prompt,
    headers: start.headers ?? {},
  };
  const end = await runProgram({
    file: binaryOf(clients.node24, 'node'),
    args: [join(import.meta.dirname, 'sdk-session.ts'), JSON.stringify(call)],
    folder: stage.project,
    env: clientEnvironment(stage),
  }).ended;
  const text = end.status === 0 ? (JSON.parse(end.stdout) as { text: string }).text : '';
  return { ...end, text };
}
