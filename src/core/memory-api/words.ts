import { DIALECTS } from '../dialects/apis.ts';
import {
  BRANCH_CHARS_MAX,
  CLIENT_CHARS_MAX,
  COMMIT_SEQUENCE_MAX,
  FINGERPRINT_CHARS_MAX,
  SESSION_CHARS_MAX,
} from './limits.ts';
import { SPACE_NAME } from '../request/space.ts';
import { RECORD_CHARS_MAX } from '../memory/record.ts';
import { integer, oneOf, text } from './shape.ts';

/** The shapes of names, digests and counts in the memory API. */

export const space = text({ pattern: SPACE_NAME });
export const digest = text({ pattern: /^sha256:[A-Za-z0-9_-]{43}$/ });
export const reference = text({ pattern: /^(?:ex|to|nt)_[a-z2-7]{16}$/ });
export const textReference = text({ pattern: /^m_[a-z2-7]{16}$/ });
export const generation = text({ pattern: /^g[0-9A-Za-z]{1,24}\.[0-9]{1,15}$/ });
export const hash = text({ pattern: /^[A-Za-z0-9_-]{43}$/ });
export const commitSequence = integer(0, COMMIT_SEQUENCE_MAX);
export const itemKind = oneOf('exchange', 'tool_output', 'note', 'fact', 'summary');
export const name = text({ max: SESSION_CHARS_MAX });
export const program = text({ max: CLIENT_CHARS_MAX });
export const position = integer(0, 4_294_967_295);
export const lastFrom = integer(0, RECORD_CHARS_MAX);
export const fingerprint = text({ max: FINGERPRINT_CHARS_MAX });
export const branch = text({ max: BRANCH_CHARS_MAX });
export const dialect = oneOf(...DIALECTS);

export const speaker = oneOf('user', 'assistant');
export const mark = oneOf('unverified');

/** The value of `if_generation` if the client does not know the space's generation. */
export const NEW_GENERATION = 'new';

/** An entry in the `features` of `whoami`: the service proves what it stores. Otherwise svc leaves no text out. */
export const PROOF_FEATURE = 'coverage.pop.v1';
