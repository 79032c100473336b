import { isAbsolute } from 'node:path';
import type { Readable } from 'node:stream';
import { readConfigFile } from '../../adapters/files/config-file.ts';
import { dataFolder, configFolder } from '../../adapters/files/own-folders.ts';
import { lastLines } from '../../adapters/files/lines.ts';
import { within } from '../../adapters/within.ts';
import { listRunFiles } from '../../adapters/processes/run-files.ts';
import { asRecord, asText, parseJson } from '../../core/bytes/json-fields.ts';
import { hookClient, type HookKind, kindOf } from '../../core/hooks/hook-clients.ts';
import type { HookRequest, TranscriptTail } from '../../core/hooks/hook-question.ts';
import { HOOK_PATH } from '../../core/http/routes.ts';
import { parseAccess } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { scriptPath } from '../context.ts';
import { type HookCall, type HookEnd, type HookParts, IN_BACKGROUND } from './hook-call.ts';

/**
 * Runs `svc hook CLIENT EVENT`, by which a client gets memory into its own transcript, without a proxy in the path. If
 * something fails or is late, the client continues without svc, and no error is printed. The hook asks a running proxy
 * where the proxy can answer, so this file loads little. The code of the store is loaded for every other hook.
 */

/**
 * Deadline of a hook while the user waits, in milliseconds. The process starts in 50 to 150 ms, so start and hook
 * together take at most about a second.
 */
const WHOLE_MS = 800;
/**
 * Deadlines of a hook at the end of an answer or session, in milliseconds: for storing the new exchanges, and for
 * starting a background process that stores them instead.
 */
const KEEP_MS = 650;
const HAND_OVER_MS = 150;
/** Longest time, in ms, for closing the store while the user waits. Captures not stored by then wait in the outbox. */
const CLOSE_MS_MAX = 400;
/** Time for closing the store if the answer has used up the deadline, in milliseconds. */
const CLOSE_MS_MIN = 50;

export async function runHook(call: HookCall, parts: HookParts): Promise<void> {
  const client = hookClient(call.client);
  const kind = client && kindOf(client, call.event);
  if (client === undefined || kind === undefined) return;
  const keeps = kind === 'stop' || kind === 'end';
  const wholeMs = parts.wholeMs ?? (keeps ? KEEP_MS : WHOLE_MS);
  const end = performance.now() + wholeMs;
  const input = await readValue(call.stdin);
  if (input === undefined) return;
  const request = requestOf(call, { kind, hasTranscript: client.transcript !== undefined }, input);
  const answered = answerHook(request, kind, call, parts);
  const ended = await within(end - performance.now(), answered).catch(() => 'done' as const);
  if (ended === 'done') return;
  if (ended === undefined || ended === 'late') {
    const isHandedOver = keeps && parts.wholeMs === undefined;
    if (isHandedOver) await within(HAND_OVER_MS, handOver(call, input)).catch(() => undefined);
    return;
  }
  const leftMs = end - performance.now();
  const closeMs = parts.wholeMs === undefined ? Math.min(CLOSE_MS_MAX, leftMs) : leftMs;
  await within(Math.max(CLOSE_MS_MIN, closeMs), ended()).catch(() => undefined);
}

async function answerHook(
  request: HookRequest,
  kind: HookKind,
  call: HookCall,
  parts: HookParts,
): Promise<HookEnd> {
  const told = await askProxy(request, kind, call.environment);
  if (told !== undefined) {
    if (told !== '') await parts.print(told);
    return 'done';
  }
  const { answerFromStore } = await import('./answer-from-store.ts');
  return answerFromStore(request, call, parts);
}

/** Starts a background process that stores the new exchanges. It may wait for another program's lock for a minute. */
async function handOver(call: HookCall, input: unknown): Promise<void> {
  const { client, event, environment } = call;
  const { startBackground } = await import('../../adapters/processes/background.ts');
  const background = startBackground({
    command: [scriptPath(), 'hook', client, event, IN_BACKGROUND],
    dataFolder: dataFolder(environment),
    environment,
    input: JSON.stringify(input),
  });
  await background.hasInput;
  background.release();
}

/** Bytes of the transcript's end that an answer needs. Other events need none, or read the file themselves. */
const TAIL_BYTES: Partial<Record<HookKind, number>> = {
  // 1 MiB contains the last exchanges of a long session.
  start: 1 << 20,
  prompt: 1 << 20,
  // 256 KiB usually contain the calls since the prompt. More would cost time at every call of a tool.
  tool: 1 << 18,
};

function requestOf(
  call: HookCall,
  { kind, hasTranscript }: { readonly kind: HookKind; readonly hasTranscript: boolean },
  input: unknown,
): HookRequest {
  const { client, event } = call;
  const fields = asRecord(input);
  const path = asText(fields['transcript_path'] ?? fields['transcriptPath']);
  const bytesMax = hasTranscript && path !== '' ? TAIL_BYTES[kind] : undefined;
  const tail = bytesMax === undefined ? undefined : tailOf(path, bytesMax);
  return { client, event, input, folder: folderOf(call), tail };
}

function tailOf(path: string, bytesMax: number): TranscriptTail {
  const { lines, isWhole } = lastLines(path, bytesMax);
  return { text: lines.join('\n'), isWhole };
}

/**
 * Returns the session's folder, if the client states it outside the event; '' otherwise. Claude Code's variable names
 * the folder of the project, while `cwd` in the event follows the agent.
 */
function folderOf({ client, environment }: HookCall): string {
  const project = client === 'claude' ? environment['CLAUDE_PROJECT_DIR'] : undefined;
  return project !== undefined && isAbsolute(project) ? project : '';
}

/**
 * Asks the running proxy, and returns its answer: '' if the proxy has nothing to say or fails. Returns undefined if the
 * store must answer.
 */
async function askProxy(
  request: HookRequest,
  kind: HookKind,
  environment: Environment,
): Promise<string | undefined> {
  // A hook that stores exchanges reads the transcript, so it stores them itself.
  if (kind === 'stop' || kind === 'end') return undefined;
  const input = asRecord(request.input);
  // The start of a fork must also be noted in the ledger, see beginFork().
  if (kind === 'start' && input['source'] === 'fork') return undefined;
  const file = await readConfigFile(configFolder(environment));
  // A hook that cuts an output stores it itself.
  if (kind === 'tool' && mayCut(file?.value, environment)) return undefined;
  const { access } = parseAccess(file?.value ?? {}, environment);
  const runs = access && (await listRunFiles(dataFolder(environment)));
  if (access === undefined || runs === undefined || runs.length === 0) return undefined;
  // Imported only here, because it loads Node's HTTP.
  const { callProxy, findProven } = await import('../../adapters/processes/local-calls.ts');
  const proxy = await findProven(runs, access.localToken);
  if (proxy === undefined) return undefined;
  // The client may need the proxy at the configured address, which this hook must start.
  if (kind === 'start' && proxy.port !== access.port) return undefined;
  // Leave out the tool's output: it may be very large, and the transcript has it.
  const { tool_response: _, toolResult: __, ...asked } = input;
  const answer = await callProxy(proxy, {
    path: HOOK_PATH,
    headers: { authorization: `Bearer ${access.localToken}` },
    body: JSON.stringify({ ...request, input: asked }),
  });
  return answer?.status === 200 ? asText(asRecord(parseJson(answer.body))['text']) : '';
}

/** Says whether the user may have switched `hookCut` on. The code that cuts reads the setting exactly. */
function mayCut(config: unknown, environment: Environment): boolean {
  const { hookCut } = asRecord(asRecord(config)['proxy']);
  return hookCut === true || Boolean(environment['SVC_HOOK_CUT']);
}

/** Bound on the bytes of an event. It may contain a tool's output, whose length the client bounds. */
const INPUT_BYTES_MAX = 32 * 1024 * 1024;
/** Deadline of reading the event, in milliseconds. Clients write it at once, but some keep the pipe open afterwards. */
const INPUT_MS = 500;
/** Bytes of the largest input that is parsed after each piece that ends in `}`, which takes a millisecond or two. */
const SMALL_BYTES = 256 * 1024;
/** A larger input is parsed when nothing has followed a piece that ends in `}` for this time, in milliseconds. */
const QUIET_MS = 20;

/** Reads a whole JSON value without waiting for the end of stdin; undefined if it is late, too long or no JSON. */
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
