import { createHash } from 'node:crypto';
import { headerOf, type RawHeaders } from '../http/header-rules.ts';
import type { RequestIdentity, RequestView } from '../conversation/view.ts';
import { clientFacts } from './clients.ts';
import {
  conversationKey,
  hasProviderHistory,
  hasProviderState,
  identify,
  projectOf,
} from './identity.ts';
import { SPACE_HEADER, spaceOf } from './space.ts';

/** The facts that a client states about its request: in the headers, around the list, and at some places in it. */
export interface StatedFacts {
  readonly identity: RequestIdentity;
  /** The folder that decides the space; undefined where a header does, or nothing. */
  readonly folder: string | undefined;
  /** The space of the request, unless the project of the folder is known. */
  readonly space: string;
  readonly branch: string | undefined;
  readonly conversation: string;
  /** The client named the conversation. */
  readonly isStated: boolean;
  readonly hasProviderState: boolean;
  readonly hasProviderHistory: boolean;
  readonly asksForLongWindow: boolean;
}

const WINDOW_HEADER = 'anthropic-beta';
const LONG_WINDOW = /\bcontext-1m\b/;

/** Throws MODE_INVALID on a malformed space header. */
export function statedFactsOf(headers: RawHeaders, view: RequestView): StatedFacts {
  const identity = identify(view.dialect, headers, view);
  const { client } = identity;
  const { folder, branch } = projectOf(headers, view, client);
  const isSpaceStated = headerOf(headers, SPACE_HEADER) !== undefined;
  const space = spaceOf(headers, {
    folder,
    client,
    statesFolder: clientFacts(client).statesFolder,
  });
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

// Clients choose their conversation ids; ours are stored and compared, so they are bounded.
const CONVERSATION_CHARS_MAX = 128;

function bounded(key: string): string {
  if (key.length <= CONVERSATION_CHARS_MAX) return key;
  return createHash('sha256').update(key).digest('base64url');
}
