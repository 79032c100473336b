import { isAbsolute } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/config-folder.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { lastLines } from '../../adapters/files/last-lines.ts';
import { probeProxy } from '../../adapters/processes/health-probe.ts';
import { callProxy } from '../../adapters/processes/local-call.ts';
import { listRunFiles } from '../../adapters/processes/run-files.ts';
import { asRecord, asText, parseJson } from '../../core/bytes/json-fields.ts';
import { hookAnswer } from '../../core/hooks/hook-answer.ts';
import { type HookClient, hookClient } from '../../core/hooks/hook-clients.ts';
import { type HookEvent, readHookEvent } from '../../core/hooks/hook-event.ts';
import type { HookQuestion } from '../../core/hooks/hook-question.ts';
import {
  factsOfCalls,
  factsOfSession,
  NOTHING_SAID,
  type SessionFacts,
} from '../../core/hooks/session-view.ts';
import { HOOK_PATH } from '../../core/http/routes.ts';
import { rememberOwnSecrets } from '../../core/redaction/own-secrets.ts';
import {
  type Access,
  parseAccess,
  parseConfig,
  parseRecall,
} from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { ownSecretsOf } from '../../core/settings/own-secrets.ts';
import type { HookStore, HookStoreOptions } from '../compose-hook.ts';
import { beginFork, keepSession } from './keep-session.ts';
import { startWhereWanted } from './start-where-wanted.ts';

/**
 * `svc hook CLIENT EVENT`: the same memory in the client's own transcript, with no proxy in the path. Whatever goes
 * wrong, the client goes on without svc: nothing here throws, prints an error or takes longer than its limit.
 */

export interface HookCall {
  readonly client: string;
  readonly event: string;
  readonly stdin: Readable;
  readonly environment: Environment;
  /** This program. */
  readonly script: string;
}

export interface HookParts {
  openStore(options: HookStoreOptions): Promise<HookStore>;
  print(answer: string): Promise<void>;
  /** Milliseconds for everything up to the answer; absent: as long as a person may wait. */
  readonly wholeMs?: number;
}

/** A person waits. The process itself needs some 50 ms to start, so the whole stays below a second. */
const WHOLE_MS = 900;
/** After the answer: captures that are not in the memory by then wait in the outbox. */
const CLOSE_MS = 400;

export async function runHook(call: HookCall, parts: HookParts): Promise<void> {
  const end = new AbortController();
  const work = answerHook(call, parts).catch(() => undefined);
  const late = sleep(parts.wholeMs ?? WHOLE_MS, undefined, { signal: end.signal }).catch(
    () => undefined,
  );
  const close = await Promise.race([work, late]);
  end.abort();
  if (close !== undefined) await Promise.race([close().catch(() => undefined), sleep(CLOSE_MS)]);
}

type Close = () => Promise<void>;

/** Answers, and returns what is still to be closed. */
async function answerHook(call: HookCall, parts: HookParts): Promise<Close | undefined> {
  const client = hookClient(call.client);
  if (client === undefined) return undefined;
  const value = await readValue(call.stdin);
  const folder = folderOf(call);
  const event =
    value === undefined ? undefined : readHookEvent(client, call.event, { value, folder });
  if (event === undefined) return undefined;
  const setup = await setupOf(call.environment);
  if (setup === undefined) return undefined;
  const hook = new Hook({ client, event, setup, parts });
  switch (event.kind) {
    case 'start':
      await Promise.all([startWhereWanted(call, setup), hook.say('start')]);
      if (event.isFork && setup.writes) await beginFork(event, await hook.store());
      return hook.close;
    case 'prompt':
      await hook.say('prompt');
      return hook.close;
    case 'tool':
      await hook.say('look');
      return hook.close;
    case 'compacted':
      await hook.say('compacted');
      return hook.close;
    case 'stop':
    case 'end':
      if (setup.writes) await keepSession(client, event, await hook.store());
      return hook.close;
  }
}

interface HookSetup extends HookStoreOptions {
  /** Undefined without a configuration: then no proxy can be asked. */
  readonly access: Access | undefined;
  readonly reads: boolean;
  readonly writes: boolean;
}

interface HookWork {
  readonly client: HookClient;
  readonly event: HookEvent;
  readonly setup: HookSetup;
  readonly parts: HookParts;
}

class Hook {
  readonly #work: HookWork;
  #store: Promise<HookStore> | undefined;

  constructor(work: HookWork) {
    this.#work = work;
  }

  readonly close = async (): Promise<void> => (await this.#store)?.close();

  store(): Promise<HookStore> {
    const { parts, setup } = this.#work;
    const { wholeMs } = parts;
    return (this.#store ??= parts.openStore({
      ...setup,
      ...(wholeMs !== undefined && { answerMs: wholeMs }),
    }));
  }

  async say(kind: HookQuestion['kind']): Promise<void> {
    const { client, event, setup, parts } = this.#work;
    if (!setup.reads) return;
    const question = questionOf(kind, client, event);
    if (question === undefined) return;
    const text = await this.#ask(question);
    const answer = hookAnswer(client, event, { text });
    if (answer !== '') await parts.print(answer);
  }

  /** Asks the running proxy, which has all at hand; the store itself only where none runs. */
  async #ask(question: HookQuestion): Promise<string> {
    const { dataFolder: folder, access } = this.#work.setup;
    const proxy = access === undefined ? undefined : await proxyOf(folder, access);
    if (proxy === undefined || access === undefined) return (await this.store()).answer(question);
    const headers = { authorization: `Bearer ${access.localToken}` };
    const body = JSON.stringify(question);
    const answer = await callProxy(proxy, { path: HOOK_PATH, headers, body });
    return answer?.status === 200 ? asText(asRecord(parseJson(answer.body))['text']) : '';
  }
}

async function proxyOf(folder: string, { localToken }: Access) {
  const runs = await listRunFiles(folder);
  for (const run of runs.toReversed()) {
    // oxlint-disable-next-line no-await-in-loop -- The newest first; seldom more than one.
    if ((await probeProxy(run, localToken)).pid === run.pid)
      return { host: run.host, port: run.port };
  }
  return undefined;
}

/** Bytes of a transcript's end: the last exchanges of a long session. */
const TAIL_BYTES = 1 << 20;

/** Undefined where there is nothing to ask. */
function questionOf(
  kind: HookQuestion['kind'],
  { client, transcript }: HookClient,
  event: HookEvent,
): HookQuestion | undefined {
  const { session, folder, occasion, prompt } = event;
  const place = { kind, client, session, folder, occasion };
  if (kind === 'compacted') return { ...place, ...NOTHING_SAID };
  const tail =
    transcript === undefined || event.transcript === ''
      ? undefined
      : lastLines(event.transcript, TAIL_BYTES);
  const facts: SessionFacts =
    transcript === undefined || tail === undefined
      ? factsOfCalls(event)
      : factsOfSession(transcript, tail.lines, tail.isWhole);
  if (kind === 'look') return facts.action === undefined ? undefined : { ...place, ...facts };
  const { action: _, ...said } = facts;
  // A prompt that is a client's own text, such as the end of a background task, is no question.
  if (kind === 'prompt' && prompt === '') return undefined;
  if (kind === 'start') return said.isOpening ? { ...place, ...said, prompt: '' } : undefined;
  // The client may have written the prompt down already.
  const around = said.prompt === prompt ? said.around.slice(0, -1) : said.around;
  return { ...place, ...said, around, prompt };
}

/** Claude Code's folder of a session stays where it began, while `cwd` follows the agent. */
function folderOf({ client, environment }: HookCall): string | undefined {
  const project = client === 'claude' ? environment['CLAUDE_PROJECT_DIR'] : undefined;
  return project !== undefined && isAbsolute(project) ? project : undefined;
}

/** Undefined where the configuration cannot be read: it may name another place for memories. */
async function setupOf(environment: Environment): Promise<HookSetup | undefined> {
  const file = await readConfigFile(configFolder(environment));
  const value = file?.value ?? {};
  const { proxy: settings, memory = file === undefined ? EMBEDDED : undefined } = parseRecall(
    value,
    environment,
  );
  if (memory === undefined) return undefined;
  const { access } = parseAccess(value, environment);
  const { settings: whole } = parseConfig(value, environment);
  rememberOwnSecrets(ownSecretsOf({ ...access, memory, ...whole }));
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

/** The output of a tool is in it, as large as the client lets it be. */
const INPUT_BYTES_MAX = 32 * 1024 * 1024;
/** Clients write at once. Some keep the pipe open and silent behind it. */
const INPUT_MS = 500;

/** The first whole JSON value; undefined where none comes. Never waits for the end of the input. */
async function readValue(stdin: Readable): Promise<unknown> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const deadline = setTimeout(() => stdin.destroy(), INPUT_MS);
  try {
    for await (const piece of stdin as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > INPUT_BYTES_MAX) return undefined;
      pieces.push(piece);
      // Only an object that may be whole is parsed: of 32 MB each attempt takes 200 ms.
      if (!/\}\s*$/.test(piece.toString('latin1', Math.max(0, piece.length - 8)))) continue;
      const value = parseJson(Buffer.concat(pieces).toString('utf8'));
      if (value !== undefined) return value;
    }
    return parseJson(Buffer.concat(pieces).toString('utf8'));
  } catch {
    return undefined;
  } finally {
    clearTimeout(deadline);
  }
}
