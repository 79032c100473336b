import {
  CANDIDATES_MAX,
  CAPTURE_ITEMS_MAX,
  EXCLUDED_MAX,
  ITEM_CHARS_MAX,
  OLDER_SPACES_MAX,
  PAGE_MAX,
  QUERY_CHARS_MAX,
  QUOTES_MAX,
  RECALL_ITEMS_MAX,
  RECALL_TOKENS_MAX,
  RECENT_CHARS_MAX,
  RETRIEVE_REFS_MAX,
  WORDS_CHARS_MAX,
  PURGE_DIGESTS_MAX,
} from './limits.ts';
import { contentRecord, RECORD_BYTES_MAX } from './records.ts';
import {
  closed,
  eitherOf,
  flag,
  fraction,
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
import {
  branch,
  commitSequence,
  dialect,
  digest,
  fingerprint,
  generation,
  hash,
  lastFrom,
  itemKind,
  mark,
  name,
  NEW_GENERATION,
  position,
  program,
  reference,
  space,
  speaker,
  textReference,
} from './words.ts';

/**
 * The shape of every request and answer of the memory API, as in docs/memory-api.yaml. Client and service parse what
 * they receive with these shapes and build what they send from the types. So neither sends or keeps any other member.
 */

// --- whoami

const spaceState = members(
  { space, generation, commit_seq: commitSequence },
  { records: integer(0) },
);

export const whoAmI = members(
  {
    tenant_id: name,
    key: members(
      { key_id: name, scopes: listOf(oneOf('read', 'write', 'receipt:read'), { max: 3 }) },
      { name, spaces: listOf(name, { max: 256 }), expires_at: orNull(time) },
    ),
    memory_mode_default: oneOf('off', 'read', 'write', 'read-write'),
    limits: members(
      {},
      {
        max_candidates: integer(0),
        max_capture_items: integer(0),
        max_record_bytes: integer(0),
        max_body_bytes: integer(0),
        requests_per_minute: orNull(integer(0)),
      },
    ),
    features: listOf(text({ max: 64 }), { max: 64 }),
    server_time: time,
    api_version: text({ max: 16 }),
  },
  { space_state: spaceState, min_client: orNull(text({ max: 64 })) },
);
export type WhoAmI = Infer<typeof whoAmI>;
export type Scope = WhoAmI['key']['scopes'][number];

// --- recall

const query = members(
  { text: text({ max: QUERY_CHARS_MAX }) },
  { recent: listOf(text({ max: RECENT_CHARS_MAX }), { max: 4 }) },
);

const agentFacts = members(
  { session_id: name, quiet_share: fraction, brief_tokens: integer(0, RECALL_TOKENS_MAX) },
  { branch },
);

const recallFields = members(
  { space, max_tokens: integer(0, RECALL_TOKENS_MAX) },
  {
    include_spaces: listOf(space, { max: 4 }),
    session_id: name,
    agent_id: name,
    query,
    estimator: text({ max: 32 }),
    asked_at: time,
    max_items: integer(1, RECALL_ITEMS_MAX),
    kinds: listOf(itemKind, { max: 5 }),
    min_score: fraction,
    exclude_digests: listOf(digest, { max: EXCLUDED_MAX }),
    candidates: listOf(digest, { max: CANDIDATES_MAX }),
    nonce: hash,
    if_generation: generation,
    require_generation: flag,
    min_commit_seq: commitSequence,
    older_spaces: listOf(space, { max: OLDER_SPACES_MAX }),
    agent: agentFacts,
  },
);
export const recallRequest = such(
  recallFields,
  ({ candidates = [], nonce }) =>
    new Set(candidates).size === candidates.length &&
    (candidates.length === 0 || nonce !== undefined),
  'has duplicate candidates, or candidates without a nonce',
);
export type RecallRequest = Infer<typeof recallRequest>;

const provenance = members(
  { digest, source_id: name, observed_at: time },
  {
    ref: reference,
    space,
    text_digest: hash,
    session_id: orNull(name),
    role: oneOf('user', 'assistant', 'tool', 'operator'),
    client: program,
    position,
    fingerprint,
    branch,
    source: mark,
    last_from: lastFrom,
  },
);
export type Provenance = Infer<typeof provenance>;

const memoryItem = members(
  {
    item_id: name,
    kind: itemKind,
    text: text({ max: ITEM_CHARS_MAX }),
    tokens: integer(0),
    created_at: time,
    provenance: listOf(provenance, { min: 1, max: 16 }),
  },
  {
    verbatim: flag,
    score: fraction,
    updated_at: time,
    superseded_by: orNull(name),
  },
);
export type MemoryItem = Infer<typeof memoryItem>;

const coverageEntry = members(
  {
    digest,
    state: oneOf('durable', 'unknown', 'pending', 'purged', 'stale_generation', 'not_checked'),
  },
  {
    bytes: integer(1),
    pop: hash,
    ref: reference,
    item_ids: listOf(name, { max: RECALL_ITEMS_MAX }),
  },
);
export type CoverageEntry = Infer<typeof coverageEntry>;

const quotedRecords = listOf(textReference, { max: QUOTES_MAX });

const recalledExchange = members(
  {
    ref: text({ pattern: /^m_[a-z2-7]{4,16}$/ }),
    space,
    observed_at: time,
    quotes: listOf(
      members({ role: speaker, text: text({ max: ITEM_CHARS_MAX }) }, { source: mark }),
      { min: 1, max: QUOTES_MAX },
    ),
  },
  { client: program, records: quotedRecords },
);

const recalledSession = members(
  { observed_at: time, title: text({ max: RECENT_CHARS_MAX }) },
  { space, records: quotedRecords },
);

export const recallAnswer = such(
  members(
    {
      request_id: name,
      space,
      generation,
      commit_seq: commitSequence,
      as_of: time,
      items: listOf(memoryItem, { max: RECALL_ITEMS_MAX }),
      tokens_total: integer(0),
      coverage: listOf(coverageEntry, { max: CANDIDATES_MAX }),
    },
    {
      nonce: hash,
      truncated: flag,
      hold_until: time,
      exchanges: listOf(recalledExchange, { max: RECALL_ITEMS_MAX }),
      sessions: listOf(recalledSession, { max: RECALL_ITEMS_MAX }),
      degraded: orNull(oneOf('deadline', 'replica_lag', 'index_rebuilding')),
    },
  ),
  ({ coverage }) => new Set(coverage.map((entry) => entry.digest)).size === coverage.length,
  'has duplicate digests in coverage',
);
export type RecallAnswer = Infer<typeof recallAnswer>;

// --- capture

const captureItem = members(
  { digest, bytes: integer(1, RECORD_BYTES_MAX), record: contentRecord, observed_at: time },
  {
    session_id: name,
    client: program,
    position,
    fingerprint,
    branch,
    dialect,
    tool_name: name,
    redactions: integer(0),
    priority: integer(0, 9),
    source: mark,
    last_from: lastFrom,
    timed: flag,
  },
);
export type CaptureItem = Infer<typeof captureItem>;

export const captureRequest = members(
  {
    space,
    if_generation: eitherOf(oneOf(NEW_GENERATION), generation),
    items: listOf(captureItem, { min: 1, max: CAPTURE_ITEMS_MAX }),
  },
  { session_id: name, agent_id: name },
);
export type CaptureRequest = Infer<typeof captureRequest>;

const captureResult = members(
  { digest, state: oneOf('durable', 'duplicate', 'deferred', 'rejected') },
  {
    ref: reference,
    bytes: integer(1),
    reason: oneOf(
      'digest_mismatch',
      'invalid_record',
      'too_large',
      'quota',
      'policy',
      'ref_collision',
      'forgotten',
      'deadline',
      'store_error',
    ),
  },
);
export type CaptureResult = Infer<typeof captureResult>;

export const captureAnswer = members(
  {
    request_id: name,
    space,
    generation,
    commit_seq: commitSequence,
    results: listOf(captureResult, { max: CAPTURE_ITEMS_MAX }),
  },
  { deadline_exceeded: flag },
);
export type CaptureAnswer = Infer<typeof captureAnswer>;

// --- retrieve

export const retrieveRequest = members(
  {
    refs: listOf(eitherOf(reference, textReference, digest), {
      min: 1,
      max: RETRIEVE_REFS_MAX,
    }),
  },
  { space, max_bytes: integer(1024, 8_388_608) },
);
export type RetrieveRequest = Infer<typeof retrieveRequest>;

const storedObject = members(
  { ref: reference, digest, bytes: integer(1), record: contentRecord, provenance },
  { tool_name: name },
);
export type StoredObject = Infer<typeof storedObject>;

export const retrieveAnswer = members(
  {
    objects: listOf(storedObject, { max: 256 }),
    missing: listOf(members({ ref: name, reason: oneOf('unknown', 'purged', 'over_max_bytes') }), {
      max: RETRIEVE_REFS_MAX,
    }),
  },
  { space, generation },
);
export type RetrieveAnswer = Infer<typeof retrieveAnswer>;

// --- lists

function pageOf<Element>(element: Shape<Element>) {
  return members(
    { object: oneOf('list'), data: listOf(element, { max: PAGE_MAX }), has_more: flag },
    {
      first_id: orNull(name),
      last_id: orNull(name),
      next_cursor: orNull(text({ max: 200 })),
    },
  );
}

export const itemsPage = pageOf(memoryItem);
export type ItemsPage = Infer<typeof itemsPage>;

const source = members(
  {
    source_id: name,
    kind: oneOf('conversation', 'tool', 'import', 'manual'),
    first_seen: time,
    last_seen: time,
    records: integer(0),
  },
  { session_id: orNull(name), client: program, bytes: integer(0) },
);
export type Source = Infer<typeof source>;

export const sourcesPage = pageOf(source);

/** The query of `GET items`, after its texts were converted to numbers and lists. */
export const itemsQuery = members(
  {},
  {
    space,
    kind: itemKind,
    role: speaker,
    session_id: name,
    source_id: name,
    refs: listOf(eitherOf(reference, textReference), { max: RETRIEVE_REFS_MAX }),
    since: time,
    until: time,
    q: text({ min: 1, max: WORDS_CHARS_MAX }),
    limit: integer(1, PAGE_MAX),
    after: text({ max: 200 }),
  },
);
export type ItemsQuery = Infer<typeof itemsQuery>;

// --- health

const checkState = oneOf('ok', 'degraded', 'fail');
export type Health = {
  readonly status: Infer<typeof checkState> | 'shutting_down';
  readonly version?: string;
  readonly checks?: Readonly<Record<string, { status: Infer<typeof checkState>; ms?: number }>>;
};

// --- purge

const purgeScope = eitherOf(
  closed({ all: oneOf(true) }),
  closed({ digests: listOf(digest, { min: 1, max: PURGE_DIGESTS_MAX }) }),
  closed({ session_id: text({ min: 1, max: 128 }) }),
  closed({ source_id: text({ min: 1, max: 128 }) }),
  closed({ before: time }),
);
export type PurgeScope = Infer<typeof purgeScope>;

const NEEDED = { space, scope: purgeScope, confirm: text({ max: 128 }) } as const;
const MORE = { dry_run: flag, reason: text({ max: 500 }) } as const;

export const purgeRequest = confirmed(members(NEEDED, MORE));
/** The shape of a purge that a person writes. It has no unknown members, so a mistyped `dry_run` erases nothing. */
export const closedPurgeRequest = confirmed(closed(NEEDED, MORE));

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
