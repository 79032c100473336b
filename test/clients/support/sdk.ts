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
  const { texts, ...end } = await runSdks(clients, stage, [start]);
  return { ...end, text: texts[0] ?? '' };
}

/** Calls of SDKs in one process, one after the other. The first one that fails ends them. */
export async function runSdks(
  clients: SdkClients,
  stage: Stage,
  starts: readonly SdkStart[],
): Promise<ProgramEnd & { readonly texts: readonly string[] }> {
  const calls = starts.map((start): SdkCall => ({
    sdk: start.sdk,
    isStreamed: start.isStreamed,
    folder: clients.sdk.folder,
    baseUrl: stage.url,
    token: start.token ?? stage.svc.token,
    prompt: start.prompt,
    headers: start.headers ?? {},
  }));
  const end = await runProgram({
    file: binaryOf(clients.node24, 'node'),
    args: [join(import.meta.dirname, 'sdk-session.ts'), JSON.stringify(calls)],
    folder: stage.project,
    env: clientEnvironment(stage),
  }).ended;
  const texts = end.status === 0 ? (JSON.parse(end.stdout) as readonly string[]) : [];
  return { ...end, texts };
}
