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
import { findMember, parseJson as parsePart, valueEnd } from '../bytes/json-scan.ts';
import type { HasFrames } from '../dialects/descriptor.ts';
import { dialectOf } from '../dialects/dialects.ts';
import { orderOfSystem, textsOf } from '../dialects/system-text.ts';
import { headerOf, type RawHeaders } from '../http/header-rules.ts';
import { clientFacts, clientOfAgent, isPiPrompt, CLIENT_HEADER } from './clients.ts';
import {
  CONTRADICTED,
  NOTHING_STATED,
  projectInPrompt,
  type StatedProject,
} from '../conversation/stated-project.ts';

/**
 * Finds the client, the purpose, the conversation and the project of a request in the client's own
 * headers and body. Nothing there is proof. So a wrong answer may cost a recall, but must never
 * leak: `kind` is only ever used to do less, and a project only to look in one space.
 */

type Names = ReadonlyMap<(typeof IDENTITY_HEADERS)[number], string>;

/** In the order in which a client's more exact id comes first. */
const SESSION_HEADERS = [
  'thread-id',
  'session-id',
  'session_id',
  'conversation_id',
  'x-session-id',
] as const;

/** The headers that identity and project are read of. No function here sees another one. */
export const IDENTITY_HEADERS = [
  'user-agent',
  'originator',
  'x-claude-code-agent-id',
  'x-claude-code-request-class',
  'x-claude-code-session-id',
  'x-codex-turn-metadata',
  'x-openai-subagent',
  CLIENT_HEADER,
  ...SESSION_HEADERS,
] as const;

/** A longer id is no id. The longest seen is Claude Code's metadata.user_id with 170 characters. */
const SESSION_CHARS_MAX = 256;

export function identify(
  dialect: Dialect,
  headers: RawHeaders,
  view: RequestView,
): RequestIdentity {
  const names = firstValues(headers);
  const body = view.shell.value;
  const named = clientOf(names, body);
  const client = named === 'unknown' && isPiPrompt(systemHead(view)) ? 'pi' : named;
  const agent = bounded(names.get('x-claude-code-agent-id'));
  const { isKnown } = clientFacts(client);
  const kind = kindOf(client, names, view);
  return { client, isKnown, kind, ...sessionOf(dialect, names, body), agent };
}

/** Paths that count tokens look like model requests, but no answer follows: nothing may be added. */
export function kindOfPath(path: string): RequestKind | undefined {
  const end = path.search(/[?#]/);
  const plain = end === -1 ? path : path.slice(0, end);
  return /\/(?:count_tokens|input_tokens)\/?$/.test(plain) ? 'count' : undefined;
}

/**
 * The project that the request is about: absent when the client states none. A client that svc does
 * not know may quote any document in any text, so none of its texts is read. The system prompt
 * comes first. A user message is read only if this client is known to write its environment there:
 * any other text in it may come from a file or a tool. Where texts contradict each other there is no project.
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
  const folder = workspaceOf(firstValues(headers), named) ?? named;
  return {
    ...(folder !== undefined && folder !== CONTRADICTED && { folder }),
    ...(branch !== undefined && { branch }),
  };
}

function projectInTexts(view: RequestView, client: string): StatedProject {
  const so = view.items.at(-1)?.soFar;
  const inUser = so?.userFolder?.statedBy === client ? so.userFolder.folder : undefined;
  const system = projectInShell(view.shell);
  const { statesPlace } = clientFacts(client);
  const inPrompt = statesPlace ? (system.place ?? system.workingFolder) : system.workingFolder;
  const inSystem = statesPlace ? (so?.systemPlace ?? so?.systemFolder) : so?.systemFolder;
  // Claude Code states its environment in a message. Its system prompt has a project's output style and what
  // a person appends, which may quote any document.
  const placed = so?.systemPlace ?? inUser;
  const own = client === 'claude-code' && system.isBlock !== true ? placed : undefined;
  const named = own ?? inPrompt ?? inSystem ?? inUser ?? liveFolder(view.shell.value);
  const branch = so?.branch ?? system.branch;
  return {
    ...(named !== undefined && { workingFolder: named }),
    ...(branch !== undefined && { branch }),
  };
}

/** A shell is the same object from request to request while nothing in it changes. */
const projectsOf = new WeakMap<Shell, StatedProject>();

function projectInShell(shell: Shell): StatedProject {
  const known = projectsOf.get(shell) ?? projectInPrompt(systemTexts(shell.value));
  projectsOf.set(shell, known);
  return known;
}

/** Enough of a first prompt, which may hold a pasted file, to tell conversations apart. */
const OPENING_CHARS_MAX = 1 << 16;

/**
 * Names the conversation. `isStated`: the client named it. Otherwise the name follows from the
 * conversation's beginning and from the space that the client states, so two of one project that begin
 * alike share it: use it to group, never to distinguish.
 */
export function conversationKey(
  identity: RequestIdentity,
  view: RequestView,
  space: string,
): { readonly key: string; readonly isStated: boolean } {
  // SDK programs put a label of their own into prompt_cache_key: it names no conversation.
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

/** The history, or part of it, is kept at the provider: what is in the request is not all of it. */
export function hasProviderState(view: RequestView): boolean {
  return hasProviderHistory(view) || view.items.at(-1)?.soFar.hasReference === true;
}

/**
 * The request continues a history that the provider stores. Its own list is not the conversation from
 * the beginning, so its fingerprints say nothing about what was sent before.
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

/** By headers alone: for a request whose body is not read. */
export function clientOfHeaders(headers: RawHeaders): string {
  const names = firstValues(headers);
  return statedClient(names) ?? clientOfAgent(names.get('user-agent') ?? '');
}

function clientOf(names: Names, body: Fields): string {
  const heads = systemTexts(body).map((text) => text.slice(0, CLIENT_CHARS));
  const head = heads.join('\n').slice(0, CLIENT_CHARS);
  const stated = statedClient(names);
  if (stated !== undefined) return stated;
  // Over Anthropic Messages it sends Claude Code's User-Agent to any base URL but its own (0.24.4).
  if (head.startsWith('You are Qwen Code')) return 'qwen';
  if (isClaudePrompt(head)) return 'claude-code';
  return clientOfAgent(names.get('user-agent') ?? '');
}

/**
 * Only Claude Code frames typed text in tool outputs: from any other client such a frame is a file's. The client is
 * found at the first question, because its system prompt may have to be read for that.
 */
export function framesOf(headers: RawHeaders, body: Buffer): HasFrames {
  let isClaude: boolean | undefined;
  return () => (isClaude ??= clientOf(firstValues(headers), systemIn(body)) === 'claude-code');
}

function systemIn(body: Buffer): { readonly system: unknown } {
  const start = findMember(body, 'system');
  const end = start === -1 ? -1 : valueEnd(body, start);
  return { system: end === -1 ? undefined : parsePart(body, { start, end })?.value };
}

function statedClient(names: Names): string | undefined {
  const stated = names.get(CLIENT_HEADER) ?? '';
  if (clientFacts(stated).isKnown) return stated;
  return /^codex/i.test(names.get('originator') ?? '') ? 'codex' : undefined;
}

/** A client names itself at the beginning of its system prompt. */
const CLIENT_CHARS = 400;

// A gateway before us may have put its own User-Agent; the system prompt is still Claude Code's.
function isClaudePrompt(head: string): boolean {
  return (
    head.startsWith('x-anthropic-billing-header:') ||
    head.includes("You are Claude Code, Anthropic's official CLI")
  );
}

// --- kind

function kindOf(client: string, names: Names, view: RequestView): RequestKind {
  return statedKind(names, view) ?? orderedKind(view) ?? shapeKind(client, names, view);
}

/** The kind that the client itself states for the request. */
function statedKind(names: Names, view: RequestView): RequestKind | undefined {
  const meta = codexMetadata(names);
  const source = asText(meta['thread_source']);
  if (names.has('x-claude-code-agent-id') || isSubagentPrompt(view.shell.value)) return 'subagent';
  if (names.has('x-openai-subagent') || source === 'subagent') return 'subagent';
  const requestKind = asText(meta['request_kind']);
  if (requestKind === 'compaction') return 'compaction';
  // A kind that is new to us is not a person's question: it passes through untouched.
  if (requestKind !== '' && requestKind !== 'turn') return 'side';
  if (source !== '' && source !== 'user') return 'side';
  return REQUEST_CLASSES.get(requestClass(names));
}

/** `main` is missing: a compaction that is labelled so must still be seen by what it orders. */
const REQUEST_CLASSES: ReadonlyMap<string, RequestKind> = new Map([
  ['subagent', 'subagent'],
  ['workflow', 'subagent'],
  ['compaction', 'compaction'],
  ['auxiliary', 'side'],
  ['side_reply', 'side'],
]);

/** Claude Code with CLAUDE_CODE_GATEWAY_HINT_HEADERS=1. */
function requestClass(names: Names): string {
  return names.get('x-claude-code-request-class') ?? '';
}

function isSubagentPrompt(body: Fields): boolean {
  return (systemTexts(body)[0] ?? '').slice(0, 200).includes('cc_is_subagent=true');
}

/**
 * The task in the client's own text: in the system prompt, the newest user message or last item.
 */
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
 * The kind of all other requests. Agents work with tools: a known one that offers none asks for a
 * title, a topic or a check. An unknown program without tools is a chat like any other.
 */
function shapeKind(client: string, names: Names, view: RequestView): RequestKind {
  const body = view.shell.value;
  if (OUTPUT_LIMITS.some((field) => body[field] === 0 || body[field] === 1)) return 'side';
  const stated = requestClass(names);
  if (stated !== '' && stated !== 'main') return 'side';
  const offersTools = asList(body['tools']).length > 0 || asList(body['functions']).length > 0;
  const isMain = stated === 'main' || isCodexPrompt(names);
  return !clientFacts(client).alwaysOffersTools || offersTools || isMain ? 'main' : 'side';
}

/** For some models Codex sends its tools as an item of the list: what it says of itself counts then. */
function isCodexPrompt(names: Names): boolean {
  const meta = codexMetadata(names);
  return meta['request_kind'] === 'turn' && meta['thread_source'] === 'user';
}

/** One token is no answer: such a request checks a quota, a key or a model's name. */
const OUTPUT_LIMITS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'] as const;

// --- session

type Session = Pick<RequestIdentity, 'session' | 'sessionFrom'>;

function sessionOf(dialect: Dialect, names: Names, body: Fields): Session {
  const claude = bounded(names.get('x-claude-code-session-id'));
  if (claude !== '') return { session: claude, sessionFrom: 'header' };
  const metadata = bounded(sessionInMetadata(asRecord(body['metadata'])));
  if (metadata !== '') return { session: metadata, sessionFrom: 'metadata' };
  const header = SESSION_HEADERS.map((name) => bounded(names.get(name))).find((id) => id !== '');
  if (header !== undefined) return { session: header, sessionFrom: 'header' };
  const { cacheKeyNamesSession } = dialectOf(dialect);
  const cacheKey = cacheKeyNamesSession ? bounded(body['prompt_cache_key']) : '';
  return { session: cacheKey, sessionFrom: cacheKey === '' ? 'nowhere' : 'cache-key' };
}

/** Claude Code: JSON since 2.1, before that `user_<hex>_account_<…>_session_<uuid>`. */
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

/** Codex names its workspaces by absolute path. With several, the one that holds the folder. */
function workspaceOf(names: Names, folder: string | undefined): string | undefined {
  const workspaces = codexMetadata(names)['workspaces'];
  const paths = isRecord(workspaces) ? Object.keys(workspaces) : [];
  const holding = paths.find((path) => folder === path || folder?.startsWith(`${path}/`));
  return holding ?? paths[0];
}

/** Claude Code in auto mode. */
function liveFolder(body: Fields): string | undefined {
  const context = asRecord(asRecord(body['safeguards'])['classifier_context']);
  const folder = asText(context['live_cwd']);
  return folder === '' ? undefined : folder;
}

function codexMetadata(names: Names): Fields {
  const text = names.get('x-codex-turn-metadata');
  return text === undefined ? {} : asRecord(parseJson(text));
}

// --- the body

function systemTexts(body: Fields): readonly string[] {
  return textsOf(body['system'] ?? body['instructions']);
}

/** Enough to distinguish programs; dates and other changing facts come further down. */
const HEAD_CHARS = 512;

function systemHead(view: RequestView): string {
  const texts = systemTexts(view.shell.value);
  const own = texts.find((text) => !text.startsWith('x-anthropic-billing-header:'));
  if (own !== undefined) return own.slice(0, HEAD_CHARS);
  const [first] = view.items;
  if (first?.role !== 'system') return '';
  const value = asRecord(parseJson(view.bytes.toString('utf8', first.start, first.end)));
  return textsOf(value['content']).join('\n').slice(0, HEAD_CHARS);
}

function firstHumanText(view: RequestView): string {
  const typed = view.items.at(-1)?.soFar.firstHumanText ?? '';
  return typed === '' ? (view.items[0]?.digest ?? '') : typed;
}

// Asked for by several functions about one request.
const namesOf = new WeakMap<RawHeaders, Names>();

function firstValues(headers: RawHeaders): Names {
  const known = namesOf.get(headers);
  if (known !== undefined) return known;
  const names = new Map<(typeof IDENTITY_HEADERS)[number], string>();
  for (const name of IDENTITY_HEADERS) {
    const value = headerOf(headers, name);
    if (value !== undefined) names.set(name, value);
  }
  namesOf.set(headers, names);
  return names;
}
