import type { Dialect, RequestView } from '../../src/core/conversation/view.ts';
import { dialectOf } from '../../src/core/dialects/dialects.ts';
import { viewRequest } from '../../src/core/request/request-view.ts';

/** The view of a body that a test wrote as an object; an absent list is an empty one. */
export function viewOf(dialect: Dialect, body: Record<string, unknown>): RequestView {
  const whole = { [dialectOf(dialect).listKey]: [], ...body };
  const view = viewRequest(Buffer.from(JSON.stringify(whole)), dialect);
  if (view === undefined) throw new Error('The body of this test is no request.');
  return view;
}
