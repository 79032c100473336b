import { ERROR_ROWS, type LocalErrorCode } from '../errors.ts';
import type { Verdict } from '../shortening/meter.ts';
import type { MemoryState } from './memory-state.ts';
import type { ContinuityState } from './continuity.ts';

/**
 * The meaning of every state of a request, in one table: `svc explain`, docs/states.md and a test
 * read it. A state without a row does not compile.
 */

/** Where a state is seen. */
export type StateKind = 'memory' | 'continuity' | 'end' | 'verdict' | 'error';

export interface StateText {
  readonly name: string;
  readonly kind: StateKind;
  /** The event, and its reason. */
  readonly meaning: string;
  /** The remedy for the person; '' where nothing needs to be done. */
  readonly advice: string;
}

type Row = readonly [meaning: string, advice?: string];

const MEMORY: Readonly<Record<MemoryState, Row>> = {
  off: [
    'The memory was not asked and nothing was kept: the memory mode is off.',
    'Change it with proxy.memoryMode, or leave out the header x-svc-memory-mode.',
  ],
  write_only: [
    'The memory was not asked; what was said is kept. The memory mode is write.',
    'Change it with proxy.memoryMode.',
  ],
  recalled: ['Memories of earlier sessions were added to the newest prompt.'],
  empty: [
    'The memory was asked and had nothing worth saying. Most prompts need no memory, so this is common.',
    'See what there is: svc memory search WORDS',
  ],
  skipped_side_call: [
    'The request is no conversation: a title, a topic, a token count, a sub-agent or a compaction. Memory leaves those alone.',
  ],
  skipped_unsupported: [
    'svc did not understand the request well enough to add to it, or the provider refused what was added. The client’s own bytes were sent.',
    'If it happens often: svc doctor',
  ],
  degraded_timeout: [
    'The memory did not answer before its deadline. The request went on without it.',
    'On a busy machine this happens now and then. If it happens often: svc doctor',
  ],
  degraded_unavailable: [
    'The memory could not be read or reached. The request went on without it.',
    'svc doctor says why.',
  ],
  degraded_denied: [
    'The memory service refused the service key. The request went on without memory.',
    'Check the key’s scopes and spaces: svc doctor',
  ],
  degraded_rate_limited: [
    'The memory service limits how often it is asked. The request went on without memory.',
    'Wait, or raise the limit of the service key.',
  ],
  degraded_invalid: [
    'The memory service gave an answer that svc could not use. The request went on without it.',
    'Compare the versions of both sides: svc doctor',
  ],
};

const CONTINUITY: Readonly<Record<ContinuityState, Row>> = {
  committed: [
    'Older exchanges were left out. The memory proved in this request that it holds them word for word.',
  ],
  elided_tool_output: [
    'Older tool outputs were replaced by stubs. The memory proved in this request that it holds them word for word.',
    'Read one again: svc memory get REFERENCE',
  ],
  not_needed: ['Nothing needed to be left out: the request is short, or nothing in it is old.'],
  shadow_only: ['The mode is shadow: shortening was measured, and the request was sent unchanged.'],
  not_applicable: ['The mode is passthrough, so nothing is ever left out.'],
  bypassed_not_stored: [
    'What could be left out is not stored yet. It is stored now, ahead of a later request.',
  ],
  bypassed_unproven_recall: [
    'The memory did not prove that it holds what would be left out, so all was sent.',
    'If it happens often: svc doctor',
  ],
  bypassed_empty_recall: [
    'Exchanges leave only together with a recall, and nothing was recalled. All was sent.',
  ],
  bypassed_recall_degraded: [
    'The memory or svc’s own ledger did not answer in time, so all was sent.',
    'If it happens often: svc doctor',
  ],
  bypassed_memory_mode: [
    'Shortening needs a memory that may be read, and the memory mode does not allow it.',
    'Use the memory mode read or read-write.',
  ],
  bypassed_protected_context: [
    'What is long in this request is protected: recent rounds, instructions, reasoning, small outputs, or a window that is nearly full.',
  ],
  bypassed_provider_state: [
    'The provider keeps this conversation’s history, so svc must not change it.',
  ],
  bypassed_not_worth_it: [
    'Leaving out more now would cost more than it saves: the provider’s cache would have to be written again.',
  ],
  bypassed_unparseable: ['The body is nothing that svc can read. It was sent as it came.'],
  bypassed_too_large: [
    'The request has more items or bytes than svc reads. It was sent as it came.',
  ],
  bypassed_provider_refused: [
    'The provider refused the changed request, so the client’s own bytes were sent. That kind of change is off for this conversation for an hour.',
  ],
};

const ENDS: Readonly<Record<'complete' | 'client-gone' | 'upstream-cut' | 'open', Row>> = {
  complete: ['The whole answer reached the client.'],
  'client-gone': [
    'The client closed the connection before the answer ended. Nothing is wrong where a person stopped it.',
  ],
  'upstream-cut': [
    'The provider broke its answer off.',
    'The client usually asks again by itself.',
  ],
  open: ['The answer is still on its way.'],
};

const VERDICTS: Readonly<Record<Verdict, Row>> = {
  goes_on: ['Shortening pays in this conversation, or has not been judged yet.'],
  no_more: [
    'This conversation costs more than it would without svc. Nothing more is left out of it; what is out stays out.',
  ],
  send_all: [
    'This conversation costs more with every request than it would without svc. From now on all of it is sent.',
  ],
};

/** svc's own errors; what to do is in their own table. */
const ERRORS: Readonly<Record<LocalErrorCode, string>> = {
  LOCAL_TOKEN_INVALID: 'The client did not send svc’s local token.',
  LOGIN_REFUSED: 'The client sent its own login, and passing logins on is not turned on.',
  LOGIN_MISSING: 'The upstream takes the client’s own login, and the request carried none.',
  LOGIN_AMBIGUOUS: 'The request carried a login and a key, so nobody could tell who pays.',
  LOGIN_CLIENT_REFUSED:
    'A login belongs to the client that it was made for, and another one sent it.',
  REQUEST_MALFORMED: 'The request is no well-formed HTTP, or may be read in two ways.',
  ORIGIN_REFUSED: 'A web page, or a program under another host name, asked svc.',
  ROUTE_UNKNOWN: 'svc does not serve this path.',
  METHOD_NOT_ALLOWED: 'svc serves this path with another method.',
  UPSTREAM_NOT_CONFIGURED: 'No provider is configured for what this client speaks.',
  REQUEST_TIMEOUT: 'The request did not arrive in time.',
  BODY_TOO_LARGE: 'The body is larger than the limit.',
  BODY_UNREADABLE: 'The body ended early, or is not in the encoding that it names.',
  ENCODING_UNSUPPORTED: 'svc does not know the body’s encoding.',
  CONTENT_TYPE_UNSUPPORTED: 'The body is not said to be JSON.',
  EXPECTATION_FAILED: 'The request expects something that svc does not do.',
  MODE_INVALID: 'A mode header has a value that does not exist, or stands twice.',
  UPGRADE_REFUSED: 'The client asked for a WebSocket. Clients fall back to HTTP by themselves.',
  HEADERS_TOO_MANY: 'The request has too many or too long headers.',
  INTERNAL: 'svc itself failed.',
  TRANSFER_ENCODING_UNSUPPORTED: 'The body comes in a transfer encoding that svc does not know.',
  UPSTREAM_UNREACHABLE: 'The provider could not be reached.',
  UPSTREAM_ADDRESS_REFUSED:
    'The provider’s name leads to an address that svc does not send keys to.',
  SHUTTING_DOWN: 'svc is stopping and takes no new requests.',
  TOO_BUSY: 'svc holds as many request bodies as it may.',
  UPSTREAM_TIMEOUT:
    'The provider sent no headers in time, or the network proxy before it did not answer.',
  HTTP_VERSION_UNSUPPORTED: 'The request is in a version of HTTP that svc does not speak.',
};

export const STATE_TEXTS: readonly StateText[] = [
  ...texts('memory', MEMORY),
  ...texts('continuity', CONTINUITY),
  ...texts('end', ENDS),
  ...texts('verdict', VERDICTS),
  ...Object.entries(ERROR_ROWS).map(([name, { status, hint }]): StateText => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The keys of that very table.
    const meaning = `${ERRORS[name as LocalErrorCode]} svc answers ${status}.`;
    return { name, kind: 'error', meaning, advice: hint };
  }),
];

function texts(kind: StateKind, rows: Readonly<Record<string, Row>>): StateText[] {
  return Object.entries(rows).map(([name, [meaning, advice = '']]) => {
    return { name, kind, meaning, advice };
  });
}

/** Exactly this name, else all that begin so; without regard to capitals. */
export function findStates(words: string): readonly StateText[] {
  const wanted = words.toLowerCase();
  const same = STATE_TEXTS.filter(({ name }) => name.toLowerCase() === wanted);
  if (same.length > 0) return same;
  return STATE_TEXTS.filter(({ name }) => wanted !== '' && name.toLowerCase().startsWith(wanted));
}
