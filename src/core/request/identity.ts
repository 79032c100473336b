import { createHash } from 'node:crypto';
import type {
  Dialect,
  RequestIdentity,
  RequestKind,
  RequestView,
  Shell,
} from '../conversation/view.ts';
import {
  asList,
  asRecord,
  asText,
  type Fields,
  isRecord,
  parseJson,
} from '../bytes/json-fields.ts';
import { findMember, parseSpan, valueEnd } from '../bytes/json-scan.ts';
import type { HasFrames } from '../dialects/descriptor.ts';
import { dialectOf } from '../dialects/dialects.ts';
import { orderOfSystem, textsOf } from '../dialects/common.ts';
import { headerOf, type RawHeaders } from '../http/header-rules.ts';
import { clientFacts, clientOfAgent, CLIENT_HEADER } from './clients.ts';
import {
  CONTRADICTED,
  folderAtEnd,
  isPiPrompt,
  NOTHING_STATED,
  projectInPrompt,
  type StatedProject,
} from '../conversation/stated-project.ts';

/**
 * Finds client, purpose, conversation and project of a request in the client's headers and body. A program can state
 * anything there. So a wrong statement may cost a recall, but must leak nothing: `kind` can only reduce what svc does,
 * and a project only selects one space.
 */

/** Headers with a session id, besides Claude Code's own. If a client sends several, the first of this list counts. */
const SESSION_HEADERS = [
  'thread-id',
  'session-id',
  'session_id',
  'conversation_id',
  'x-session-id',
];

/** Bound on the id of a session or a sub-agent, in characters. A longer text counts as none. */
const SESSION_CHARS_MAX = 256;

export function identify(
  dialect: Dialect,
  headers: RawHeaders,
  view: RequestView,
): RequestIdentity {
  const body = view.shell.value;
  const named = clientOf(headers, body);
  // Before 0.80 pi names only its SDK in the headers.
  const client = named === 'unknown' && isPiPrompt(systemHead(view)) ? 'pi' : named;
  const agent = bounded(headerOf(headers, 'x-claude-code-agent-id'));
  const { isKnown } = clientFacts(client);
  const kind = kindOf(client, headers, view);
  return { client, isKnown, kind, ...sessionOf(dialect, headers, body), agent };
}

/**
 * Returns 'count' for a path that only counts tokens, although its requests have the body of a model request. Returns
 * undefined for any other path.
 */
export function kindOfPath(path: string): RequestKind | undefined {
  const isCount = /^[^?#]*\/(?:count_tokens|input_tokens)\/?(?:[?#]|$)/.test(path);
  return isCount ? 'count' : undefined;
}

/**
 * Returns the folder and the branch that the client states; undefined where it states none. Whether the system prompt
 * or a user message comes first depends on the client. A user message counts only if this client writes its environment
 * there, because other text in it may come from a file or a tool. An unknown client may quote any document anywhere, so
 * its texts do not count. If texts contradict each other, no folder counts.
 */
export function projectOf(
  headers: RawHeaders,
  view: RequestView,
  client: string,
): { readonly folder?: string; readonly branch?: string } {
  const { workingFolder: named, branch } =
    client === 'unknown' || clientFacts(client).quotesFolders
      ? NOTHING_STATED
      : projectInTexts(view, client);
  const folder = workspaceOf(headers, named) ?? named;
  return {
    ...(folder !== undefined && folder !== CONTRADICTED && { folder }),
    ...(branch !== undefined && { branch }),
  };
}

function projectInTexts(view: RequestView, client: string): StatedProject {
  const so = view.items.at(-1)?.soFar;
  const inUser = so?.userFolder?.statedBy === client ? so.userFolder.folder : undefined;
  const system = projectInShell(view.shell);
  const { statesPlace, statesInMessage } = clientFacts(client);
  // pi writes its folder at the end of the system prompt, also of one that the user has written.
  const last = client === 'pi' ? folderAtEnd(systemTexts(view.shell.value)) : undefined;
  const inPrompt = last ?? (statesPlace ? system.place : undefined) ?? system.workingFolder;
  const inSystem = statesPlace ? (so?.systemPlace ?? so?.systemFolder) : so?.systemFolder;
  // Claude Code states its environment in a message. Its system prompt contains the project's output style and texts
  // that users append, which may quote any document.
  const placed = so?.systemPlace ?? inUser ?? lateFolder(so?.latePlace, system.place);
  const own = client === 'claude-code' && system.isBlock !== true ? placed : undefined;
  const first = statesInMessage === undefined ? own : inUser;
  const inTexts = statesInMessage === 'only' ? undefined : (inPrompt ?? inSystem);
  const named = first ?? inTexts ?? inUser ?? liveFolder(view.shell.value);
  const branch = so?.branch ?? system.branch;
  return {
    ...(named !== undefined && { workingFolder: named }),
    ...(branch !== undefined && { branch }),
  };
}

/** Returns the folder that the messages state late (`latePlace`); CONTRADICTED if the system prompt states another. */
function lateFolder(late: string | undefined, inPrompt: string | undefined): string | undefined {
  if (late === undefined || inPrompt === undefined || inPrompt === late) return late;
  return CONTRADICTED;
}

/** Cached by shell: if a request has the same shell as the one before, both views have the same Shell object. */
const projectsOf = new WeakMap<Shell, StatedProject>();

function projectInShell(shell: Shell): StatedProject {
  const known = projectsOf.get(shell) ?? projectInPrompt(systemTexts(shell.value));
  projectsOf.set(shell, known);
  return known;
}

/** Characters of the first prompt that the key of a conversation covers: the prompt may contain a pasted file. */
const OPENING_CHARS_MAX = 1 << 16;

/**
 * Returns the conversation's key. `isStated`: the client named it. Otherwise the key is a hash of the conversation's
 * beginning and its space, and conversations of one space with the same beginning share it. So equal keys do not prove
 * that it is the same conversation.
 */
export function conversationKey(
  identity: RequestIdentity,
  view: RequestView,
  space: string,
): { readonly key: string; readonly isStated: boolean } {
  // Programs with an SDK put a label into prompt_cache_key, which names no conversation.
  const isLabel =
    identity.sessionFrom === 'cache-key' && !clientFacts(identity.client).cacheKeyNamesSession;
  if (identity.session !== '' && !isLabel) {
    const key = identity.agent === '' ? identity.session : `${identity.session}/${identity.agent}`;
    return { key, isStated: true };
  }
  const typed = firstHumanText(view).slice(0, OPENING_CHARS_MAX);
  const opening = [identity.session, space, systemHead(view), typed];
  const hash = createHash('sha256').update(JSON.stringify(opening)).digest('base64url');
  return { key: `d_${hash}`, isStated: false };
}

export function offersTools({ shell: { value } }: RequestView): boolean {
  return asList(value['tools']).length > 0 || asList(value['functions']).length > 0;
}

/** Says whether the provider stores the history or a part of it, so that the request does not contain everything. */
export function hasProviderState(view: RequestView): boolean {
  return hasProviderHistory(view) || view.items.at(-1)?.soFar.hasReference === true;
}

/**
 * Says whether the request continues a history that the provider stores. Its own list is not the conversation from
 * the beginning, so its fingerprints do not show what was sent before.
 */
export function hasProviderHistory(view: RequestView): boolean {
  const body = view.shell.value;
  const diagnostics = asRecord(body['diagnostics']);
  return (
    STATE_FIELDS.some((field) => isSet(body[field])) || isSet(diagnostics['previous_message_id'])
  );
}

const STATE_FIELDS = ['previous_response_id', 'conversation', 'thread', 'thread_id'] as const;

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

// --- client

/** Identifies the client by headers alone, for a request whose body is not read. */
export function clientOfHeaders(headers: RawHeaders): string {
  return statedClient(headers) ?? clientOfAgent(headerOf(headers, 'user-agent') ?? '');
}

function clientOf(headers: RawHeaders, body: Fields): string {
  const stated = statedClient(headers);
  if (stated !== undefined) return stated;
  const heads = systemTexts(body).map((text) => text.slice(0, CLIENT_CHARS));
  const head = heads.join('\n').slice(0, CLIENT_CHARS);
  // In Anthropic's dialect Qwen Code sends Claude Code's User-Agent to a proxy (seen in 0.24.4).
  if (head.startsWith('You are Qwen Code')) return 'qwen';
  if (isClaudePrompt(head)) return 'claude-code';
  return clientOfAgent(headerOf(headers, 'user-agent') ?? '');
}

/**
 * Returns a function that says whether reminders at the end of a tool output may have typed text; see HasFrames. Only
 * Claude Code sends such reminders, and for another client they come from a file. The function identifies the client
 * only when it is called, because that may require reading the system prompt.
 */
export function framesOf(headers: RawHeaders, body: Buffer): HasFrames {
  let isClaude: boolean | undefined;
  return () => (isClaude ??= clientOf(headers, systemIn(body)) === 'claude-code');
}

function systemIn(body: Buffer): { readonly system: unknown } {
  const start = findMember(body, 'system');
  const end = start === -1 ? -1 : valueEnd(body, start);
  return { system: end === -1 ? undefined : parseSpan(body, { start, end }) };
}

function statedClient(headers: RawHeaders): string | undefined {
  const stated = headerOf(headers, CLIENT_HEADER) ?? '';
  if (clientFacts(stated).isKnown) return stated;
  return /^codex/i.test(headerOf(headers, 'originator') ?? '') ? 'codex' : undefined;
}

/** Characters of a system prompt's beginning, where a client names itself. */
const CLIENT_CHARS = 400;

// Says whether a system prompt is Claude Code's, because a gateway may have replaced the User-Agent.
function isClaudePrompt(head: string): boolean {
  return (
    head.startsWith('x-anthropic-billing-header:') ||
    head.includes("You are Claude Code, Anthropic's official CLI")
  );
}

// --- kind

function kindOf(client: string, headers: RawHeaders, view: RequestView): RequestKind {
  return statedKind(headers, view) ?? orderedKind(view) ?? shapeKind(client, headers, view);
}

const SUBAGENT_HEADERS = ['x-claude-code-agent-id', 'x-openai-subagent'];

/** Returns the kind of request that the client itself states. */
function statedKind(headers: RawHeaders, view: RequestView): RequestKind | undefined {
  const meta = codexMetadata(headers);
  const source = asText(meta['thread_source']);
  const isNamed = SUBAGENT_HEADERS.some((name) => headerOf(headers, name) !== undefined);
  if (isNamed || source === 'subagent' || isSubagentPrompt(view.shell.value)) return 'subagent';
  const requestKind = asText(meta['request_kind']);
  if (requestKind === 'compaction') return 'compaction';
  // A request of an unknown kind may have no question of a user, so it counts as a side call.
  if (requestKind !== '' && requestKind !== 'turn') return 'side';
  if (source !== '' && source !== 'user') return 'side';
  return REQUEST_CLASSES.get(requestClass(headers));
}

/**
 * The kind for each request class of Claude Code. The class `main` is missing, because a compaction may have it too:
 * orderedKind() recognises a compaction.
 */
const REQUEST_CLASSES: ReadonlyMap<string, RequestKind> = new Map([
  ['subagent', 'subagent'],
  ['workflow', 'subagent'],
  ['compaction', 'compaction'],
  ['auxiliary', 'side'],
  ['side_reply', 'side'],
]);

/** Returns the class that Claude Code sends with CLAUDE_CODE_GATEWAY_HINT_HEADERS=1. */
function requestClass(headers: RawHeaders): string {
  return headerOf(headers, 'x-claude-code-request-class') ?? '';
}

function isSubagentPrompt(body: Fields): boolean {
  return (systemTexts(body)[0] ?? '').slice(0, 200).includes('cc_is_subagent=true');
}

/** Returns the kind that a text of the client shows: in the last item, the newest user message or the system prompt. */
function orderedKind(view: RequestView): RequestKind | undefined {
  const asked = view.items.findLast((item) => item.role === 'user');
  return (
    view.items.at(-1)?.clientOrder ??
    asked?.clientOrder ??
    view.items.at(-1)?.soFar.systemOrder ??
    orderOfSystem(systemTexts(view.shell.value)[0] ?? '')
  );
}

/**
 * Returns the kind by the request's form. If a client that always offers tools offers none, the request is for a title,
 * a topic or a check. From any other client it is an ordinary chat.
 */
function shapeKind(client: string, headers: RawHeaders, view: RequestView): RequestKind {
  const body = view.shell.value;
  if (OUTPUT_LIMITS.some((field) => body[field] === 0 || body[field] === 1)) return 'side';
  const stated = requestClass(headers);
  if (stated !== '' && stated !== 'main') return 'side';
  const isMain = stated === 'main' || isCodexPrompt(headers);
  return !clientFacts(client).alwaysOffersTools || offersTools(view) || isMain ? 'main' : 'side';
}

/**
 * Says whether Codex states that a user sent the request. For some models Codex sends its tools as an item of the list,
 * so the missing member `tools` proves nothing.
 */
function isCodexPrompt(headers: RawHeaders): boolean {
  const meta = codexMetadata(headers);
  return meta['request_kind'] === 'turn' && meta['thread_source'] === 'user';
}

/** Members that limit the output tokens. A request for at most one token only checks a quota, a key or a model. */
const OUTPUT_LIMITS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'] as const;

// --- session

type Session = Pick<RequestIdentity, 'session' | 'sessionFrom'>;

function sessionOf(dialect: Dialect, headers: RawHeaders, body: Fields): Session {
  const claude = bounded(headerOf(headers, 'x-claude-code-session-id'));
  if (claude !== '') return { session: claude, sessionFrom: 'header' };
  const metadata = bounded(sessionInMetadata(asRecord(body['metadata'])));
  if (metadata !== '') return { session: metadata, sessionFrom: 'metadata' };
  const header = SESSION_HEADERS.map((name) => bounded(headerOf(headers, name))).find(
    (id) => id !== '',
  );
  if (header !== undefined) return { session: header, sessionFrom: 'header' };
  const { cacheKeyNamesSession } = dialectOf(dialect);
  const cacheKey = cacheKeyNamesSession ? bounded(body['prompt_cache_key']) : '';
  return { session: cacheKey, sessionFrom: cacheKey === '' ? 'nowhere' : 'cache-key' };
}

/** Reads the session in Claude Code's metadata: JSON since 2.1; earlier `user_<hex>_account_<…>_session_<uuid>`. */
function sessionInMetadata(metadata: Fields): string {
  const userId = asText(metadata['user_id']).slice(0, 2048);
  if (userId.startsWith('{')) return asText(asRecord(parseJson(userId))['session_id']);
  return /session_([0-9a-f-]{36})/.exec(userId)?.[1] ?? '';
}

function bounded(value: unknown): string {
  const text = asText(value).trim();
  return text.length <= SESSION_CHARS_MAX ? text : '';
}

// --- project

/**
 * Returns the path of the workspace that Codex states, of several the one with the folder; undefined if it states none.
 */
function workspaceOf(headers: RawHeaders, folder: string | undefined): string | undefined {
  const workspaces = codexMetadata(headers)['workspaces'];
  const paths = isRecord(workspaces) ? Object.keys(workspaces) : [];
  const holding = paths.find((path) => folder === path || folder?.startsWith(`${path}/`));
  return holding ?? paths[0];
}

/** Returns the folder that Claude Code states in the request's settings in auto mode. */
function liveFolder(body: Fields): string | undefined {
  const context = asRecord(asRecord(body['safeguards'])['classifier_context']);
  const folder = asText(context['live_cwd']);
  return folder === '' ? undefined : folder;
}

function codexMetadata(headers: RawHeaders): Fields {
  const text = headerOf(headers, 'x-codex-turn-metadata');
  return text === undefined ? {} : asRecord(parseJson(text));
}

// --- the body

function systemTexts(body: Fields): readonly string[] {
  return textsOf(body['system'] ?? body['instructions']);
}

/** Characters of a system prompt that identify a program. Facts that change, such as dates, mostly come after them. */
const HEAD_CHARS = 512;

function systemHead(view: RequestView): string {
  const texts = systemTexts(view.shell.value);
  const own = texts.find((text) => !text.startsWith('x-anthropic-billing-header:'));
  if (own !== undefined) return own.slice(0, HEAD_CHARS);
  const [first] = view.items;
  if (first?.role !== 'system') return '';
  const value = asRecord(parseSpan(view.bytes, first));
  return textsOf(value['content']).join('\n').slice(0, HEAD_CHARS);
}

function firstHumanText(view: RequestView): string {
  const typed = view.items.at(-1)?.soFar.firstHumanText ?? '';
  return typed === '' ? (view.items[0]?.digest ?? '') : typed;
}
