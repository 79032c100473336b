import { isAbsolute } from 'node:path';
import type { Readable } from 'node:stream';
import { readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/config-folder.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { lastLines } from '../../adapters/files/last-lines.ts';
import { within } from '../../adapters/within.ts';
import { callProxy, probeProxy } from '../../adapters/processes/local-calls.ts';
import { listRunFiles } from '../../adapters/processes/run-files.ts';
import { asRecord, asText, parseJson } from '../../core/bytes/json-fields.ts';
import { type HookClient, hookClient, type HookKind } from '../../core/hooks/hook-clients.ts';
import type { HookRequest, TranscriptTail } from '../../core/hooks/hook-question.ts';
import { HOOK_PATH } from '../../core/http/routes.ts';
import { type Access, parseAccess } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import type { Close, HookCall, HookParts } from './hook-call.ts';

/**
 * `svc hook CLIENT EVENT`: the same memory in the client's own transcript, with no proxy in the path. Whatever goes
 * wrong, the client goes on without svc: nothing here throws, prints an error or takes longer than its limit.
 * A proxy that runs answers with all at hand, so this file loads little: the store is loaded only where none runs.
 */

/** A person waits. The process itself needs 50 ms to start, 150 on a busy machine, so the whole stays below a second. */
const WHOLE_MS = 800;
/** Nobody waits where an answer or a session has ended, and what is cut off there is lost. */
const KEEP_MS = 2_500;
/** After the answer: captures that are not in the memory by then wait in the outbox. */
const CLOSE_MS_MAX = 400;
/** A late answer leaves so much to close the files. */
const CLOSE_MS_MIN = 50;

export async function runHook(call: HookCall, parts: HookParts): Promise<void> {
  const kind = hookClient(call.client)?.events[call.event];
  const wholeMs = parts.wholeMs ?? (kind === 'stop' || kind === 'end' ? KEEP_MS : WHOLE_MS);
  const end = performance.now() + wholeMs;
  const close = await within(wholeMs, answerHook(call, parts)).catch(() => undefined);
  if (close === undefined) return;
  const leftMs = Math.min(CLOSE_MS_MAX, end - performance.now());
  await within(Math.max(CLOSE_MS_MIN, leftMs), close()).catch(() => undefined);
}

async function answerHook(call: HookCall, parts: HookParts): Promise<Close | undefined> {
  const client = hookClient(call.client);
  if (client === undefined || !Object.hasOwn(client.events, call.event)) return undefined;
  const input = await readValue(call.stdin);
  if (input === undefined) return undefined;
  const request = requestOf(call, client, input);
  const told = await askProxy(request, client.events[call.event], call.environment);
  if (told !== undefined) {
    if (told !== '') await parts.print(told);
    return undefined;
  }
  const { answerFromStore } = await import('./answer-from-store.ts');
  return answerFromStore(request, call, parts);
}

/** Bytes of a transcript's end: the last exchanges of a long session. */
const TAIL_BYTES = 1 << 20;
/** The calls since the prompt. A client runs this hook for each of them. */
const LOOK_TAIL_BYTES = 1 << 18;

function requestOf(
  call: HookCall,
  { events, transcript }: HookClient,
  input: unknown,
): HookRequest {
  const { client, event } = call;
  const fields = asRecord(input);
  const path = asText(fields['transcript_path'] ?? fields['transcriptPath']);
  const isAsked = events[event] === 'prompt' || events[event] === 'start';
  const bytesMax = isAsked ? TAIL_BYTES : LOOK_TAIL_BYTES;
  const tail = transcript === undefined || path === '' ? undefined : tailOf(path, bytesMax);
  return { client, event, input, folder: folderOf(call), tail };
}

function tailOf(path: string, bytesMax: number): TranscriptTail {
  const { lines, isWhole } = lastLines(path, bytesMax);
  return { text: lines.join('\n'), isWhole };
}

/** Claude Code's folder of a session stays where it began, while `cwd` follows the agent. */
function folderOf({ client, environment }: HookCall): string {
  const project = client === 'claude' ? environment['CLAUDE_PROJECT_DIR'] : undefined;
  return project !== undefined && isAbsolute(project) ? project : '';
}

/** What the running proxy answers; undefined where none can. */
async function askProxy(
  request: HookRequest,
  kind: HookKind | undefined,
  environment: Environment,
): Promise<string | undefined> {
  // What is captured is written by the hook itself, which has read the transcript.
  if (kind === 'stop' || kind === 'end') return undefined;
  const input = asRecord(request.input);
  if (kind === 'start' && input['source'] === 'fork') return undefined;
  const file = await readConfigFile(configFolder(environment));
  // The hook stores what it cuts itself, as it does with what is captured.
  if (kind === 'tool' && mayCut(file?.value, environment)) return undefined;
  const { access } = parseAccess(file?.value ?? {}, environment);
  const proxy = access && (await proxyOf(dataFolder(environment), access));
  if (access === undefined || proxy === undefined) return undefined;
  // The client of this session may be set to a proxy that does not run.
  if (kind === 'start' && proxy.port !== access.port) return undefined;
  // The output of a tool may be as large as the client lets it be, and the transcript has it.
  const { tool_response: _, toolResult: __, ...asked } = input;
  const answer = await callProxy(proxy, {
    path: HOOK_PATH,
    headers: { authorization: `Bearer ${access.localToken}` },
    body: JSON.stringify({ ...request, input: asked }),
  });
  return answer?.status === 200 ? asText(asRecord(parseJson(answer.body))['text']) : '';
}

/** A person has turned `hookCut` on; whoever cuts reads the settings exactly. */
function mayCut(config: unknown, environment: Environment): boolean {
  const { hookCut } = asRecord(asRecord(config)['proxy']);
  return hookCut === true || Boolean(environment['SVC_HOOK_CUT']);
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

/** The output of a tool is in it, as large as the client lets it be. */
const INPUT_BYTES_MAX = 32 * 1024 * 1024;
/** Clients write at once. Some keep the pipe open and silent behind it. */
const INPUT_MS = 500;
/** To parse so much takes a millisecond or two, also where it is not whole yet. */
const SMALL_BYTES = 256 * 1024;
/** More of a larger input comes sooner. */
const QUIET_MS = 20;

/** The first whole JSON value; undefined where none comes. Never waits for the end of the input. */
function readValue(stdin: Readable): Promise<unknown> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let quiet: NodeJS.Timeout | undefined;
  const read = (): unknown => parseJson(Buffer.concat(pieces).toString('utf8'));
  return new Promise((resolve) => {
    const deadline = setTimeout(() => settle(read()), INPUT_MS);
    const settle = (value: unknown): void => {
      clearTimeout(deadline);
      clearTimeout(quiet);
      stdin.removeAllListeners('data').pause();
      resolve(value);
    };
    const end = (): void => settle(read());
    stdin.on('end', end).on('close', end).on('error', end);
    stdin.on('data', (piece: Buffer) => {
      clearTimeout(quiet);
      bytes += piece.length;
      if (bytes > INPUT_BYTES_MAX) return settle(undefined);
      pieces.push(piece);
      if (!/\}\s*$/.test(piece.toString('latin1', Math.max(0, piece.length - 8)))) return undefined;
      if (bytes > SMALL_BYTES) quiet = setTimeout(end, QUIET_MS);
      else {
        const value = read();
        if (value !== undefined) settle(value);
      }
      return undefined;
    });
  });
}
