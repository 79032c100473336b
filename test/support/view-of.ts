import { finish } from '../../src/core/bytes/steps.ts';
import type { Dialect, RequestView } from '../../src/core/conversation/view.ts';
import { dialectOf } from '../../src/core/dialects/dialects.ts';
import { LOCAL_TENANT } from '../../src/core/ledger/entries.ts';
import { viewSteps, commonPrefix } from '../../src/core/request/request-view.ts';
import type { Conversations, Reading } from '../../src/proxy/conversations.ts';
import type { ClientRequest } from '../../src/proxy/dependencies.ts';
import { readSteps } from '../../src/proxy/read-request.ts';

/** The view of a body that a test wrote as an object; an absent list is an empty one. */
export function viewOf(dialect: Dialect, body: Record<string, unknown>): RequestView {
  const whole = { [dialectOf(dialect).listKey]: [], ...body };
  const view = viewRequest(Buffer.from(JSON.stringify(whole)), dialect);
  if (view === undefined) throw new Error('The body of this test is no request.');
  return view;
}

/** The view of a body, read at once. `previous` may be any earlier view. */
export function viewRequest(
  bytes: Buffer,
  dialect: Dialect,
  previous?: RequestView,
  hasFrames = () => false,
): RequestView | undefined {
  const shared = previous === undefined ? 0 : commonPrefix(previous.bytes, bytes);
  const earlier = previous === undefined ? undefined : { previous, shared };
  return readable(finish(viewSteps(bytes, { dialect, hasFrames }, earlier)));
}

/** The view of the next body that these conversations see. */
export function viewIn(
  conversations: Conversations,
  bytes: Buffer,
  dialect: Dialect,
): RequestView | undefined {
  return readable(finish(conversations.viewSteps(bytes, { dialect, hasFrames: () => false })));
}

function readable(view: RequestView | 'too_large' | undefined): RequestView | undefined {
  return view === 'too_large' ? undefined : view;
}

/** Reads a request at once; undefined for a body that svc does not read. */
export function readRequest(
  conversations: Conversations,
  request: ClientRequest,
): Reading | undefined {
  const reading = finish(readSteps(conversations, request, { tenant: LOCAL_TENANT }));
  return typeof reading === 'string' ? undefined : reading;
}
