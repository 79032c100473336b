import { setTimeout as sleep } from 'node:timers/promises';
import { readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder, dataFolder } from '../../adapters/files/own-folders.ts';
import { withOutput } from '../../core/hooks/hook-answer.ts';
import { type HookClient, hookClient } from '../../core/hooks/hook-clients.ts';
import { type HookEvent, readHookEvent } from '../../core/hooks/hook-event.ts';
import type { HookRequest } from '../../core/hooks/hook-question.ts';
import { shellOutputOf, cutOutput } from '../../core/hooks/shell-output.ts';
import { rememberOwnSecrets } from '../../core/redaction/own-secrets.ts';
import {
  type Access,
  parseAccess,
  parseRecall,
  soundUpstreams,
} from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { ownSecretsOf } from '../../core/settings/own-secrets.ts';
import { commandLine, ownCommand } from '../clients/own-command.ts';
import { type HookStore, type HookStoreOptions, openHookStore } from '../compose-hook.ts';
import type { HookCall, HookEnd, HookParts } from './hook-call.ts';
import { beginFork, keepSession } from './keep-session.ts';

/**
 * Runs a hook in this process, without the proxy: answers from the store, or stores the new exchanges of the session.
 * With `hookCut` it also shortens a shell's output. At the start of a session it starts the proxy if the client's
 * settings name the proxy.
 */
export async function answerFromStore(
  request: HookRequest,
  call: HookCall,
  parts: HookParts,
): Promise<HookEnd> {
  const { input: value, folder } = request;
  const { wholeMs } = parts;
  const client = hookClient(request.client);
  const event = client && readHookEvent(client, request.event, { value, folder });
  const setup = await setupOf(call.environment);
  if (client === undefined || event === undefined || setup === undefined) return 'done';
  const { kind, isFork } = event;
  const keeps = kind === 'stop' || kind === 'end';
  const started =
    kind === 'start'
      ? import('./start-where-wanted.ts').then((it) => it.startWhereWanted(call, setup))
      : undefined;
  if (keeps ? !setup.writes : !setup.reads && !isFork) {
    await started;
    return 'done';
  }
  const options = { ...setup, ...(wholeMs !== undefined && { answerMs: wholeMs }) };
  const store = (await parts.openStore?.(options)) ?? (await openHookStore(options));
  if (keeps) {
    const end = performance.now() + (wholeMs ?? 0);
    while ((await keepSession(client, event, store)) === 'late') {
      if (performance.now() > end) return 'late';
      await sleep(RETRY_MS);
    }
  } else {
    const [said, output] = await Promise.all([
      setup.reads ? store.answer(request) : '',
      cutOf({ client, event, setup, store }, call.environment).catch(() => undefined),
    ]);
    const answer =
      output === undefined ? said : withOutput(client, event, { answer: said, output });
    if (answer !== '') await parts.print(answer);
    if (isFork && setup.writes) await beginFork(event, store);
  }
  await started;
  return () => store.close();
}

/** Pause before the next attempt to store while another program holds a lock, in milliseconds. */
const RETRY_MS = 1_000;

interface Cutting {
  readonly client: HookClient;
  readonly event: HookEvent;
  readonly setup: HookSetup;
  readonly store: HookStore;
}

/**
 * Returns a shell's output without its middle; undefined if nothing is to be cut, or memory does not hold the output.
 */
async function cutOf(
  { client, event, setup, store }: Cutting,
  environment: Environment,
): Promise<unknown> {
  const isChosen = setup.settings.hookCut && setup.writes;
  const output = isChosen && event.tool ? shellOutputOf(client, event.tool) : undefined;
  // An output that is too short to be cut is not stored either.
  if (output === undefined || cutOutput(output.text, '') === undefined) return undefined;
  const ref = await store.keepOutput(output.text, event, client.client);
  if (ref === undefined) return undefined;
  const command = ownCommand(environment, ['memory', 'get', ref]);
  const text = cutOutput(output.text, commandLine(command));
  return text === undefined ? undefined : output.with(text);
}

interface HookSetup extends HookStoreOptions {
  /** Address and token of the proxy; undefined if the configuration is missing, or one of them is wrong. */
  readonly access: Access | undefined;
  readonly reads: boolean;
  readonly writes: boolean;
}

/**
 * Returns the settings of this hook. Undefined if the configuration's member `memory` is invalid: it may mean a memory
 * service, so the store of this machine must not be used instead.
 */
async function setupOf(environment: Environment): Promise<HookSetup | undefined> {
  const file = await readConfigFile(configFolder(environment));
  const value = file?.value ?? {};
  const { proxy: settings, memory = file === undefined ? EMBEDDED : undefined } = parseRecall(
    value,
    environment,
  );
  if (memory === undefined) return undefined;
  const { access } = parseAccess(value, environment);
  const upstreams = soundUpstreams(value, environment);
  rememberOwnSecrets(ownSecretsOf({ ...access, memory, upstreams }));
  const { memoryMode } = settings;
  return {
    dataFolder: dataFolder(environment),
    settings,
    memory,
    access,
    reads: memoryMode === 'read' || memoryMode === 'read-write',
    writes: memoryMode === 'write' || memoryMode === 'read-write',
  };
}

const EMBEDDED = { kind: 'embedded' } as const;
