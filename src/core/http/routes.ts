import type { Dialect } from '../conversation/view.ts';
import { DIALECT_APIS, apiOf } from '../dialects/apis.ts';

/**
 * The paths that svc answers. They are compared byte for byte, so no other spelling of a path reaches the provider.
 * Only the id in `/v1/models/ID` may have escapes.
 */

/**
 * What svc does with a request.
 * - 'model': it is a model request, which may use memory.
 * - 'relay': svc forwards it to the upstream of `dialect`, and makes only edits that earlier requests of the
 *   conversation had. If `dialect` is undefined, either of OpenAI's two dialects is meant.
 * - 'local': svc answers it itself, for any caller. All other kinds need the token.
 * - 'open-requests': svc lists the requests that it is answering.
 * - 'ui-link': svc returns a one-time link to its page.
 * - 'hook': svc answers a client's hook.
 */
export type Route =
  | { readonly kind: 'model'; readonly dialect: Dialect }
  | { readonly kind: 'relay'; readonly dialect: Dialect | undefined }
  | { readonly kind: 'local' }
  | { readonly kind: 'open-requests' }
  | { readonly kind: 'ui-link' }
  | { readonly kind: 'hook' };

export interface PathEntry {
  readonly route: Route;
  readonly methods: readonly string[];
}

/** Path of the list of open requests. Only svc's own commands call it. */
export const OPEN_REQUESTS_PATH = '/svc/open-requests';
/** Path that returns a one-time link to the page. It requires the token. */
export const UI_LINK_PATH = '/svc/ui-link';

/** Path that answers `svc hook` with the text for the client's transcript. */
export const HOOK_PATH = '/svc/hook';

const READ = ['GET', 'HEAD'] as const;
const POST = ['POST'] as const;
const RELAYED_METHODS = ['GET', 'HEAD', 'POST'] as const;

const PATHS: ReadonlyMap<string, PathEntry> = new Map<string, PathEntry>([
  ...DIALECT_APIS.flatMap(({ name, modelPath, helperPaths }): [string, PathEntry][] => [
    [modelPath, { route: { kind: 'model', dialect: name }, methods: POST }],
    ...helperPaths.map((path): [string, PathEntry] => [
      path,
      { route: { kind: 'relay', dialect: name }, methods: POST },
    ]),
  ]),
  ['/health', { route: { kind: 'local' }, methods: READ }],
  ['/livez', { route: { kind: 'local' }, methods: READ }],
  [OPEN_REQUESTS_PATH, { route: { kind: 'open-requests' }, methods: ['GET'] }],
  [UI_LINK_PATH, { route: { kind: 'ui-link' }, methods: POST }],
  [HOOK_PATH, { route: { kind: 'hook' }, methods: POST }],
]);

/** The path of the list of models. `/v1/models/NAME` is the path of one model. */
export const MODELS = '/v1/models';

// Matches a decoded model id. It may have slashes ("meta/llama"), but no part may begin with a dot: `..` could leave
// /v1/models at the provider.
const MODEL_ID = /^[\w:@+-][\w.:@+-]*(?:\/[\w:@+-][\w.:@+-]*)*$/;

export interface PathQuery {
  /** The target before its `?`. */
  readonly path: string;
  /** True if the request has `anthropic-version`. It decides for paths that both providers have. */
  readonly isAnthropic: boolean;
  /** Paths that are relayed unchanged: ProxySettings.relayPaths. */
  readonly relayPaths: readonly string[];
}

export function findPath({ path, isAnthropic, relayPaths }: PathQuery): PathEntry | undefined {
  const entry = PATHS.get(path);
  if (entry !== undefined) return entry;
  const dialect = isAnthropic ? 'anthropic_messages' : undefined;
  if (path === MODELS || isModelPath(path)) {
    return { route: { kind: 'relay', dialect }, methods: READ };
  }
  if (!relayPaths.includes(path)) return undefined;
  return {
    route: { kind: 'relay', dialect: apiOfPath(path) ?? dialect },
    methods: RELAYED_METHODS,
  };
}

/** Returns the dialect in which svc writes an error about this path; undefined if the path shows none. */
export function errorDialect(path: string, isAnthropic: boolean): Dialect | undefined {
  return apiOfPath(path) ?? (isAnthropic ? 'anthropic_messages' : undefined);
}

/**
 * Says whether a path is for telemetry. Claude Code sends it to its base URL, which is svc. svc answers 404 without
 * checking the token, and does not forward the request.
 */
export function isTelemetry(path: string): boolean {
  return path.startsWith('/api/event_logging/');
}

/** Returns the error text for an unknown path. It says how to correct the base URL if only `/v1` is wrong. */
export function explainUnknownPath(path: string, origin: string): string {
  const once = path.startsWith('/v1/v1/') ? path.slice('/v1'.length) : undefined;
  if (once !== undefined && isKnown(once)) {
    const dialect = apiOfPath(once);
    const hasVersion = dialect === undefined || apiOf(dialect).baseUrlHasVersion;
    const base = hasVersion ? `${origin}/v1` : origin;
    return `The path has /v1 twice: set the client's base URL to ${base} .`;
  }
  if (isKnown(`/v1${path}`)) {
    return `The path has no /v1: set the client's base URL to ${origin}/v1 .`;
  }
  return 'svc does not serve this path.';
}

function isKnown(path: string): boolean {
  return findPath({ path, isAnthropic: false, relayPaths: [] }) !== undefined;
}

function apiOfPath(path: string): Dialect | undefined {
  const rest = path.startsWith('/v1/v1/') ? path.slice('/v1'.length) : path;
  const inside = rest.startsWith('/v1/') ? rest.slice('/v1'.length) : rest;
  if (isTelemetry(path)) return 'anthropic_messages';
  return DIALECT_APIS.find(({ modelPath }) => {
    return isUnder(inside, modelPath.slice('/v1'.length));
  })?.name;
}

function isUnder(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

function isModelPath(path: string): boolean {
  if (!path.startsWith(`${MODELS}/`)) return false;
  const id = path.slice(MODELS.length + 1);
  return !id.includes('/') && MODEL_ID.test(decodeOnce(id));
}

function decodeOnce(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return '';
  }
}

/** Returns a request target without its query. */
export function pathOf(target: string): string {
  return target.split('?', 1)[0] ?? '';
}
