import { ERROR_ROWS, type ErrorCode } from '../errors.ts';
import type { ContinuityState, MemoryState } from './continuity.ts';
import { isUnfit, type LostThoughts } from '../conversation/lost-thoughts.ts';

/**
 * The meaning of every state of a request, as `svc requests`, the page and docs/states.md show it. A state without a
 * row does not compile.
 */

/** The group of a state: of memory, of shortening, of an answer's end, or an error. */
export type StateKind = 'memory' | 'continuity' | 'end' | 'error';

export interface StateText {
  readonly name: string;
  readonly kind: StateKind;
  /** What has happened, and why. */
  readonly meaning: string;
  /** What the user can do; '' if nothing. */
  readonly advice: string;
}

type Row = readonly [meaning: string, advice?: string];

const MEMORY: Readonly<Record<MemoryState, Row>> = {
  off: [
    'svc neither recalled nor stored anything, because the memory mode is off or the request has no conversation, like a list of models.',
    'Change the mode with proxy.memoryMode, or leave out the header x-svc-memory-mode.',
  ],
  write_only: [
    'svc stored the conversation and recalled nothing, because the memory mode is write.',
    'Change it with proxy.memoryMode.',
  ],
  recalled: [
    'The request carries memories of earlier sessions: beside the newest prompt, in a tool result, or beside earlier prompts, where earlier requests had them.',
  ],
  recalled_by_hook: [
    'A hook of svc has already put memories beside the newest prompt, into the client’s own transcript. The proxy added none.',
  ],
  empty: [
    'svc searched the memory and found nothing relevant. This is common, because most prompts need no memory.',
    'To search the memory yourself: svc memory search WORDS',
  ],
  skipped_side_call: [
    'The request is not a conversation but a title, a topic, a token count, a sub-agent or a compaction. svc adds nothing new here, and repeats what it changed in the same history before.',
  ],
  skipped_unsupported: [
    'svc added no memories: it could not parse the request well enough, the client named no project in it, the provider keeps the history or refused the memories, or the mode is shadow.',
    'If it happens often, run: svc doctor',
  ],
  degraded_timeout: [
    'The memory did not answer before its deadline. The request went on without it.',
    'This happens now and then on a busy machine. If it happens often, run: svc doctor',
  ],
  degraded_unavailable: [
    'The memory, or svc’s own ledger, could not be read, reached or written. The request went on without new memories.',
    'To find the cause, run: svc doctor',
  ],
  degraded_denied: [
    'The memory service refused the service key. The request went on without memory.',
    'Check the key’s scopes and spaces: svc doctor',
  ],
  degraded_rate_limited: [
    'The memory service refused the call because of a rate limit. The request went on without memory.',
    'Wait, or raise the limit of the service key.',
  ],
  degraded_invalid: [
    'The memory service sent an answer that svc could not use. The request went on without it.',
    'Compare the versions of both sides: svc doctor',
  ],
};

const CONTINUITY: Readonly<Record<ContinuityState, Row>> = {
  committed: [
    'svc left out older exchanges. The memory has proved that it holds them word for word.',
  ],
  elided_tool_output: [
    'svc replaced older tool outputs by stubs. The memory has proved that it holds them word for word.',
    'To read one again: svc memory get REFERENCE',
  ],
  not_needed: ['There was nothing to leave out: the request is short, or nothing in it is old.'],
  shadow_only: ['The mode is shadow: svc measured shortening and sent the request unchanged.'],
  not_applicable: ['The mode is passthrough, so svc leaves nothing out.'],
  bypassed_not_stored: [
    'The text that svc could leave out was not stored yet. svc stores it now, for a later request.',
  ],
  bypassed_unproven_recall: [
    'The memory did not prove that it holds the text to leave out, so svc sent all of it.',
    'If it happens often, run: svc doctor',
  ],
  bypassed_empty_recall: [
    'svc leaves out exchanges only in a request with recalled text. It recalled nothing, so it sent all of them.',
  ],
  bypassed_recall_degraded: [
    'The memory or svc’s own ledger did not answer in time, so svc sent everything.',
    'If it happens often, run: svc doctor',
  ],
  bypassed_memory_mode: [
    'Shortening must read the memory, and the memory mode does not allow that.',
    'Use the memory mode read or read-write.',
  ],
  bypassed_protected_context: [
    'The long parts of this request are protected: recent rounds, instructions, reasoning or small outputs. Or the context window is nearly full.',
  ],
  bypassed_provider_state: [
    'The provider keeps this conversation’s history, so svc must not change it.',
  ],
  bypassed_not_worth_it: [
    'Leaving out more now would cost more than it saves, because the provider would write its cache again.',
  ],
  bypassed_unparseable: ['svc could not parse the body and sent it unchanged.'],
  bypassed_too_large: [
    'The request has more items or bytes than svc parses, so svc sent it unchanged.',
  ],
  bypassed_provider_refused: [
    'The provider refused the changed request, so svc sent the client’s own bytes. svc makes no such change in this conversation for an hour.',
  ],
};

const ENDS: Readonly<Record<'complete' | 'client-gone' | 'upstream-cut' | 'open', Row>> = {
  complete: ['The whole answer reached the client.'],
  'client-gone': [
    'The client closed the connection before the answer ended. This is normal if a person stopped it.',
  ],
  'upstream-cut': [
    'The provider’s answer broke off.',
    'The client usually sends the request again by itself.',
  ],
  open: ['The answer has not ended yet.'],
};

/** What each of svc's own errors means. The table in core/errors.ts says what to do. */
const ERRORS: Readonly<Record<ErrorCode, string>> = {
  LOCAL_TOKEN_INVALID: 'The client did not send svc’s local token.',
  LOGIN_REFUSED: 'The client sent its own login, and svc is not set up to pass logins on.',
  LOGIN_MISSING: 'The upstream uses the client’s own login, and the request had none.',
  LOGIN_AMBIGUOUS: 'The request had both a login and a key, so svc cannot tell which one to use.',
  LOGIN_CLIENT_REFUSED: 'Another client than the one that the login belongs to sent it.',
  REQUEST_MALFORMED: 'The request is not well-formed HTTP, or is ambiguous.',
  ORIGIN_REFUSED: 'The request came from a web page, or with another host name.',
  ROUTE_UNKNOWN: 'svc does not serve this path.',
  METHOD_NOT_ALLOWED: 'svc serves this path with other methods only.',
  UPSTREAM_NOT_CONFIGURED: 'No provider is configured for the API of this client.',
  REQUEST_TIMEOUT: 'The request did not arrive in time.',
  BODY_TOO_LARGE:
    'The body is larger than the limit, or has more than 16,384 chunks with less than 64 bytes on average.',
  BODY_UNREADABLE: 'The body ended early, or is not in the encoding that its header names.',
  ENCODING_UNSUPPORTED: 'svc does not know the body’s encoding.',
  CONTENT_TYPE_UNSUPPORTED: 'The Content-Type of the body is not JSON.',
  EXPECTATION_FAILED: 'The request has an Expect header that svc does not support.',
  MODE_INVALID: 'A mode header has an unknown value, or is there twice.',
  UPGRADE_REFUSED: 'The client asked for a WebSocket. Clients fall back to HTTP by themselves.',
  HEADERS_TOO_MANY: 'The request has too many or too long headers.',
  INTERNAL: 'svc itself failed.',
  TRANSFER_ENCODING_UNSUPPORTED: 'The body has a transfer encoding that svc does not know.',
  UPSTREAM_UNREACHABLE: 'The provider could not be reached.',
  UPSTREAM_ADDRESS_REFUSED:
    'The provider’s name resolves to an address to which svc does not send keys.',
  SHUTTING_DOWN: 'svc is stopping and takes no new requests.',
  TOO_BUSY: 'svc has as many request bodies in memory as it may.',
  UPSTREAM_TIMEOUT: 'The provider sent no headers in time, or the network proxy did not answer.',
  HTTP_VERSION_UNSUPPORTED: 'The request uses a version of HTTP that svc does not support.',
};

export const STATE_TEXTS: readonly StateText[] = [
  ...texts('memory', MEMORY),
  ...texts('continuity', CONTINUITY),
  ...texts('end', ENDS),
  ...Object.entries(ERROR_ROWS).map(([name, { status, hint }]): StateText => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The keys of that very table.
    const meaning = `${ERRORS[name as ErrorCode]} svc answers ${status}.`;
    return { name, kind: 'error', meaning, advice: hint };
  }),
];

function texts(kind: StateKind, rows: Readonly<Record<string, Row>>): StateText[] {
  return Object.entries(rows).map(([name, [meaning, advice = '']]) => {
    return { name, kind, meaning, advice };
  });
}

export function stateText(name: string): StateText | undefined {
  return STATE_TEXTS.find((state) => state.name === name);
}

/** Says what the provider did with a request's thinking. `by`: who first changed something before it. */
export function lostThoughtsText(lost: LostThoughts, by?: 'client' | 'svc'): string {
  const { prefix = 0, model = 0, account = 0, allowed = 0, other = 0, refused } = lost;
  const deeds = [
    ...(refused === undefined ? [] : [`refused the request, because ${CHANGED}`]),
    ...(prefix === 0 ? [] : [`dropped ${blocks(prefix)}, because ${CHANGED}`]),
    ...(model === 0 ? [] : [`dropped ${blocks(model)} that another model had made`]),
    ...(account === 0 ? [] : [`dropped ${blocks(account)} that another account had made`]),
    ...(allowed === 0 ? [] : [`used ${blocks(allowed)}, although ${CHANGED}`]),
    ...(other === 0 ? [] : [`reported ${other} in a way that svc does not know`]),
  ];
  const who = isUnfit(lost) ? ` ${WHO[by ?? 'unknown']}` : '';
  return `The provider ${deeds.join(', and ')}.${who}`;
}

const CHANGED = 'something before the thinking had changed';
const WHO = {
  client: 'The client changed it first.',
  svc: 'svc changed it first.',
  unknown: 'svc does not know who changed it.',
} as const;

function blocks(count: number): string {
  return count === 1 ? '1 thinking block' : `${count} thinking blocks`;
}

/** Sums of lost thinking over the requests of the log. */
export interface ThoughtSums {
  /** The thinking blocks that the provider dropped, and how many of them because something before them had changed. */
  readonly dropped: number;
  readonly unfit: number;
  /** The requests that the provider refused because something before their thinking had changed. */
  readonly refused: number;
  /** How many of `unfit` and `refused` svc caused, because it was the first to change something. */
  readonly bySvc: number;
}

/** Writes the sums of many requests; undefined if no thinking was lost. */
export function thoughtSumsText(sums: ThoughtSums): string | undefined {
  const { dropped, unfit, refused, bySvc } = sums;
  if (dropped + refused === 0) return undefined;
  const requests = refused === 1 ? '1 request' : `${refused} requests`;
  return (
    `Providers dropped ${blocks(dropped)}, ${unfit} of them because something before them had changed, ` +
    `and refused ${requests} for that reason. svc had changed something first in ${bySvc} of these cases.`
  );
}
