import type { Dialect } from '../conversation/view.ts';
import { apiOf } from '../dialects/apis.ts';
import type { ProxyError } from '../errors.ts';

// A path of no dialect is answered in the shape that most programs expect.
const SHAPE_WITHOUT_DIALECT: Dialect = 'openai_chat_completions';

/** The error as the client's own SDK expects it. `dialect` undefined: a path that has none. */
export function errorBody(
  error: ProxyError,
  dialect: Dialect | undefined,
  requestId: string,
): string {
  const { status, code } = error;
  const message = `svc: ${error.message} ${error.hint}`;
  const shape = apiOf(dialect ?? SHAPE_WITHOUT_DIALECT);
  return JSON.stringify(shape.errorBody({ status, code, message, requestId }));
}
