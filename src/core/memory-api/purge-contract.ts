import { PURGE_DIGESTS_MAX } from './limits.ts';
import {
  eitherOf,
  flag,
  type Infer,
  integer,
  listOf,
  members,
  oneOf,
  orNull,
  type Shape,
  such,
  text,
  time,
} from './shape.ts';
import { digest, generation, name, space } from './words.ts';

/** Purges in the memory API; the rest of the contract is in contract.ts. */

const CLOSED = { closed: true } as const;
const purgeScope = eitherOf(
  members({ all: oneOf(true) }, {}, CLOSED),
  eitherOf(
    members({ digests: listOf(digest, { min: 1, max: PURGE_DIGESTS_MAX }) }, {}, CLOSED),
    eitherOf(
      members({ session_id: text({ min: 1, max: 128 }) }, {}, CLOSED),
      eitherOf(
        members({ source_id: text({ min: 1, max: 128 }) }, {}, CLOSED),
        members({ before: time }, {}, CLOSED),
      ),
    ),
  ),
);
export type PurgeScope = Infer<typeof purgeScope>;

const NEEDED = { space, scope: purgeScope, confirm: text({ max: 128 }) } as const;
const MORE = { dry_run: flag, reason: text({ max: 500 }) } as const;

export const purgeRequest = confirmed(members(NEEDED, MORE));
/** The same from a person: a mistyped `dry_run` must not erase. */
export const closedPurgeRequest = confirmed(members(NEEDED, MORE, CLOSED));

function confirmed<Request extends { readonly space: string; readonly confirm: string }>(
  request: Shape<Request>,
): Shape<Request> {
  return such(
    request,
    ({ space: named, confirm }) => named === confirm,
    'must repeat the space in confirm',
  );
}
export type PurgeRequest = Infer<typeof purgeRequest>;

export const purgeReceipt = members(
  {
    object: oneOf('svc.purge_receipt'),
    purge_id: text({ pattern: /^prg_[0-9a-z]{26}$/ }),
    space,
    scope: purgeScope,
    state: oneOf('dry_run', 'tombstoned', 'erased'),
    counts: members({ records: integer(0) }, { items: integer(0), bytes: integer(0) }),
    generation_before: generation,
    generation_after: generation,
    requested_at: time,
  },
  { requested_by: name, erased_at: orNull(time) },
);
export type PurgeReceipt = Infer<typeof purgeReceipt>;
