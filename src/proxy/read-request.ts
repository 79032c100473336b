import type { Steps } from '../core/bytes/steps.ts';
import {
  framesOf,
  conversationKey,
  hasProviderHistory,
  hasProviderState,
  identify,
  projectOf,
} from '../core/request/identity.ts';
import { headerOf, type RawHeaders } from '../core/http/header-rules.ts';
import type { Unread } from '../core/plan/plan.ts';
import { SPACE_HEADER, spaceOf } from '../core/request/space.ts';
import type { Place, Project, Projects } from '../ports/projects.ts';
import type { Conversations, Reading } from './conversations.ts';
import type { ClientRequest, ProxyDependencies } from './dependencies.ts';
import { createHash } from 'node:crypto';
import type { RequestView } from '../core/conversation/view.ts';

interface Readers {
  readonly tenant: string;
  readonly projects?: Pick<Projects, 'known'>;
}

/** Reads a request in steps; other requests run in between. Throws MODE_INVALID for a malformed space header. */
export function* readSteps(
  conversations: Conversations,
  request: ClientRequest,
  { tenant, projects }: Readers,
): Steps<Reading | Unread> {
  const { route, headers, body } = request;
  if (route.kind !== 'model' || body === undefined) return 'unparseable';
  const { dialect } = route;
  const hasFrames = framesOf(headers, body);
  const view = yield* conversations.viewSteps(body, { dialect, hasFrames });
  if (view === undefined) return 'unparseable';
  if (view === 'too_large') return view;
  const { folder, space: scope, conversation, isStated, ...stated } = statedFactsOf(headers, view);
  const where = folder ?? { space: scope };
  const place = { tenant, scope, space: scope, conversation, isStated };
  const reading = {
    ...stated,
    view,
    place,
    olderSpaces: [],
    unknownPlace: projects && where,
    state: conversations.states.of(place),
    workplace: undefined,
  };
  const known = projects?.known(where);
  return known === undefined ? reading : inProject(reading, where, known);
}

/**
 * Adds the facts about the project to the reading. Waits only for a place that svc has not examined since its start.
 */
export async function settleProject(
  read: Reading | Unread,
  projects: Projects | undefined,
): Promise<Reading | Unread> {
  if (typeof read === 'string' || read.unknownPlace === undefined || !projects) return read;
  return inProject(read, read.unknownPlace, await projects.find(read.unknownPlace));
}

function inProject(reading: Reading, stated: Place, project: Project): Reading {
  const { space, olderSpaces, root, branch = reading.branch, isMemoryOff } = project;
  const isHere = typeof stated === 'string' && root !== undefined;
  return {
    ...reading,
    place: { ...reading.place, space },
    olderSpaces,
    unknownPlace: undefined,
    branch,
    workplace: isHere ? { folder: stated, root } : undefined,
    ...(isMemoryOff && { hasNoSpace: isMemoryOff }),
  };
}

/** Returns the reading with the space that the request may use. Throws what `placeIn` throws. */
export function placeReading(
  reading: Reading,
  request: Pick<ClientRequest, 'headers'>,
  placeIn: PlaceIn,
): Reading {
  const isNamed = headerOf(request.headers, SPACE_HEADER) !== undefined;
  const space = placeIn(reading.place.space, isNamed);
  if (space === undefined) return { ...reading, hasNoSpace: true };
  if (space === reading.place.space) return reading;
  const place = { ...reading.place, space };
  return { ...reading, place, olderSpaces: [] };
}

type PlaceIn = NonNullable<ProxyDependencies['placeIn']>;

/** The facts that a client states about its request, in headers and body. */
interface StatedFacts extends Pick<
  Reading,
  'identity' | 'branch' | 'hasProviderState' | 'hasProviderHistory' | 'asksForLongWindow'
> {
  /** The folder of the project; undefined if a header states the space, or if the client states no folder. */
  readonly folder: string | undefined;
  /** The space that spaceOf() derives from what the client states. It is used if the folder's project is unknown. */
  readonly space: string;
  readonly conversation: string;
  /** True if the client stated the conversation's id. */
  readonly isStated: boolean;
}

const WINDOW_HEADER = 'anthropic-beta';
const LONG_WINDOW = /\bcontext-1m\b/;

/** Reads what a client states. Throws MODE_INVALID for a malformed space header. */
export function statedFactsOf(headers: RawHeaders, view: RequestView): StatedFacts {
  const identity = identify(view.dialect, headers, view);
  const { client } = identity;
  const { folder, branch } = projectOf(headers, view, client);
  const isSpaceStated = headerOf(headers, SPACE_HEADER) !== undefined;
  const space = spaceOf(headers, client, folder);
  const { key, isStated } = conversationKey(identity, view, space);
  return {
    identity,
    folder: isSpaceStated || folder === '' ? undefined : folder,
    space,
    branch,
    conversation: bounded(key),
    isStated,
    hasProviderState: hasProviderState(view),
    hasProviderHistory: hasProviderHistory(view),
    asksForLongWindow: LONG_WINDOW.test(headerOf(headers, WINDOW_HEADER) ?? ''),
  };
}

// Most characters of a conversation's key. The client chooses the key's length, and svc stores it in every row and
// entry, so a longer key is replaced by its hash.
const CONVERSATION_CHARS_MAX = 128;

function bounded(key: string): string {
  if (key.length <= CONVERSATION_CHARS_MAX) return key;
  return createHash('sha256').update(key).digest('base64url');
}
