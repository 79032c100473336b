import { createHash } from 'node:crypto';
import { headerOf, type RawHeaders } from '../http/header-rules.ts';
import type { Item, RequestIdentity, RequestView, Shell, SoFar } from '../conversation/view.ts';
import { clientFacts } from './clients.ts';
import {
  conversationKey,
  hasProviderHistory,
  hasProviderState,
  identify,
  IDENTITY_HEADERS,
  projectOf,
} from './identity.ts';
import { SPACE_HEADER, spaceOf } from './space.ts';

/**
 * The facts that a client states about its request: in the headers, around the list, and at some
 * places in it. The requests of a conversation state the same again and again, so the last
 * ones are remembered beside the shell.
 */
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

/** Throws MODE_INVALID on a malformed space header. */
export function statedFactsOf(headers: RawHeaders, view: RequestView): StatedFacts {
  const known = KNOWN.get(view.shell);
  if (known !== undefined && sameHeaders(known.headers, headers) && sameItems(known, view)) {
    return known.facts;
  }
  const facts = readFacts(headers, view);
  const { items } = view;
  const last = items.at(-1);
  KNOWN.set(view.shell, {
    facts,
    headers,
    first: items[0],
    order: last?.clientOrder,
    userOrder: userOrder(items),
    soFar: last?.soFar,
  });
  return facts;
}

/** A shell is the same object from request to request while nothing in it changes. */
const KNOWN = new WeakMap<Shell, KnownFacts>();

interface KnownFacts {
  readonly facts: StatedFacts;
  readonly headers: RawHeaders;
  /** The items that the facts were read of. */
  readonly first: Item | undefined;
  readonly order: Item['clientOrder'];
  readonly userOrder: Item['clientOrder'];
  readonly soFar: SoFar | undefined;
}

const WINDOW_HEADER = 'anthropic-beta';
const LONG_WINDOW = /\bcontext-1m\b/;

/** The facts depend on no other header: ids of a single request may change. */
const READ_HEADERS: ReadonlySet<string> = new Set([
  ...IDENTITY_HEADERS,
  SPACE_HEADER,
  WINDOW_HEADER,
]);

function sameHeaders(one: RawHeaders, other: RawHeaders): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at += 2) {
    const name = one[at] ?? '';
    if (name !== other[at]) return false;
    if (one[at + 1] !== other[at + 1] && READ_HEADERS.has(name.toLowerCase())) return false;
  }
  return true;
}

function sameItems(known: KnownFacts, { items }: RequestView): boolean {
  const last = items.at(-1);
  const [one, other] = [known.soFar, last?.soFar];
  return (
    known.first === items[0] &&
    known.order === last?.clientOrder &&
    one?.userFolder === other?.userFolder &&
    one?.systemFolder === other?.systemFolder &&
    one?.systemPlace === other?.systemPlace &&
    one?.branch === other?.branch &&
    one?.systemOrder === other?.systemOrder &&
    one?.hasReference === other?.hasReference &&
    one?.firstHumanText === other?.firstHumanText &&
    known.userOrder === userOrder(items)
  );
}

function userOrder(items: readonly Item[]): Item['clientOrder'] {
  for (let at = items.length - 1; at >= 0; at -= 1) {
    if (items[at]?.role === 'user') return items[at]?.clientOrder;
  }
  return undefined;
}

function readFacts(headers: RawHeaders, view: RequestView): StatedFacts {
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
