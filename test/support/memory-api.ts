import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { parse } from 'yaml';
import { recordBytes, recordOfText } from '../../src/core/memory-api/canonical.ts';
import {
  contentDigest,
  contentReference,
  textDigest,
  referenceOf,
} from '../../src/core/memory/reference.ts';

/** The contract as it is published, and values that use every member of it. */

export const contract = documentOf('docs/memory-api.yaml');
/** The contract of the console. */
export const consoleContract = documentOf('service/docs/hosted-api.yaml');

function documentOf(name: string): unknown {
  const text = readFileSync(join(import.meta.dirname, '../..', name), 'utf8');
  return parse(text);
}

const ajv = new Ajv2020({ strict: false, allErrors: false });
formats.default(ajv);
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- A document of OpenAPI 3.1 is a JSON schema as far as ajv goes.
ajv.addSchema(contract as object, 'api');
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The same.
ajv.addSchema(consoleContract as object, 'console');

export type ContractName = 'api' | 'console';

/** Validates against a schema of the published document: by its name, or by a JSON pointer. */
export function schemaOf(name: string, document: ContractName = 'api'): ValidateFunction {
  const pointer = name.startsWith('/') ? name : `/components/schemas/${name}`;
  return ajv.compile({ $ref: `${document}#${pointer}` });
}

const said = 'We pin undici 7: version 8 wants Node 22.';
const record = recordOfText('user', said);
const bytes = recordBytes(record) ?? Buffer.alloc(0);
const digest = contentDigest(bytes);
const ref = contentReference('exchange', digest);
const space = 'project/api-0123456789';
const generation = 'g7Kq2.3';
const time = '2026-05-01T12:00:00.000Z';

const provenance = {
  digest,
  ref,
  space,
  text_digest: textDigest('user', said),
  source_id: 'src_1',
  session_id: 's_01',
  role: 'user',
  client: 'claude-code',
  observed_at: time,
  position: 3,
  fingerprint: 'f',
  branch: 'main',
  source: 'unverified',
};

const item = {
  item_id: 'it_1',
  kind: 'exchange',
  text: said,
  verbatim: true,
  tokens: 14,
  score: 0.5,
  created_at: time,
  updated_at: time,
  superseded_by: null,
  provenance: [provenance],
};

/** A valid value for each schema, with every optional member. */
export const SAMPLES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  WhoAmI: {
    tenant_id: 't_1',
    key: {
      key_id: 'abcdefghijkl',
      name: 'laptop',
      scopes: ['read', 'write'],
      spaces: ['project/*'],
      expires_at: time,
    },
    memory_mode_default: 'read-write',
    space_state: { space, generation, commit_seq: 4, records: 2 },
    limits: {
      max_candidates: 512,
      max_capture_items: 64,
      max_record_bytes: 1_048_576,
      max_body_bytes: 8_388_608,
      requests_per_minute: null,
    },
    features: ['coverage.pop.v1'],
    api_version: '1.0',
    min_client: null,
    server_time: time,
  },
  RecallRequest: {
    space,
    include_spaces: ['global'],
    session_id: 's_01',
    agent_id: 'a',
    query: { text: 'why undici 7?', recent: ['It is pinned.'] },
    max_tokens: 512,
    estimator: 'svc-est-1',
    asked_at: time,
    max_items: 20,
    kinds: ['exchange', 'note'],
    min_score: 0.1,
    exclude_digests: [digest],
    candidates: [digest],
    nonce: 'A'.repeat(43),
    if_generation: generation,
    require_generation: false,
    min_commit_seq: 3,
    older_spaces: ['project/old-0123456789'],
    agent: { session_id: 's_02', branch: 'main', quiet_share: 0.65, brief_tokens: 125 },
  },
  RecallResponse: {
    request_id: 'req_1',
    space,
    nonce: 'A'.repeat(43),
    generation,
    commit_seq: 4,
    as_of: time,
    items: [item],
    tokens_total: 14,
    truncated: false,
    coverage: [
      {
        digest,
        state: 'durable',
        bytes: bytes.length,
        pop: 'B'.repeat(43),
        ref,
        item_ids: ['it_1'],
      },
    ],
    hold_until: time,
    exchanges: [
      {
        ref: 'm_aaaaaaaa',
        space,
        client: 'claude-code',
        observed_at: time,
        quotes: [{ role: 'user', text: said, source: 'unverified' }],
      },
    ],
    sessions: [{ observed_at: time, title: 'Why does the parser stop?' }],
    degraded: null,
  },
  CaptureRequest: {
    space,
    if_generation: 'new',
    session_id: 's_01',
    agent_id: 'a',
    items: [
      {
        digest,
        bytes: bytes.length,
        record,
        observed_at: time,
        session_id: 's_01',
        client: 'claude-code',
        position: 3,
        fingerprint: 'f',
        branch: 'main',
        dialect: 'anthropic_messages',
        tool_name: 'Bash',
        redactions: 0,
        priority: 5,
        source: 'unverified',
        timed: true,
      },
      {
        digest: contentDigest(recordBytes(recordOfText('tool', 'ok')) ?? Buffer.alloc(0)),
        bytes: 36,
        record: recordOfText('tool', 'ok'),
        observed_at: time,
      },
      { digest, bytes: 30, record: { k: 'note', v: 1, t: ['a', 'b'] }, observed_at: time },
    ],
  },
  CaptureResponse: {
    request_id: 'req_2',
    space,
    generation,
    commit_seq: 5,
    deadline_exceeded: false,
    results: [
      { digest, state: 'durable', ref, bytes: bytes.length },
      { digest, state: 'rejected', reason: 'forgotten' },
    ],
  },
  RetrieveRequest: {
    space,
    refs: [ref, digest, referenceOf(textDigest('user', said))],
    max_bytes: 65_536,
  },
  RetrieveResponse: {
    space,
    generation,
    objects: [{ ref, digest, bytes: bytes.length, record, tool_name: 'Bash', provenance }],
    missing: [{ ref: 'm_aaaaaaaaaaaaaaaa', reason: 'unknown' }],
  },
  PurgeRequest: { space, scope: { all: true }, confirm: space, dry_run: false, reason: 'asked' },
  PurgeReceipt: {
    object: 'svc.purge_receipt',
    purge_id: `prg_${'0'.repeat(26)}`,
    space,
    scope: { digests: [digest] },
    state: 'tombstoned',
    counts: { records: 1, items: 1, bytes: 80 },
    generation_before: generation,
    generation_after: 'g7Kq2.4',
    requested_by: 'abcdefghijkl',
    requested_at: time,
    erased_at: null,
  },
  Error: {
    error: {
      code: 'STALE_GENERATION',
      type: 'conflict_error',
      message: 'The space has moved on.',
      param: null,
      request_id: 'req_3',
      retry: { action: 'refresh_generation', after_ms: 5 },
      details: { current_generation: generation, current_commit_seq: 0, first_seen_at: time },
    },
  },
};

const page = { object: 'list', first_id: 'a', last_id: 'b', has_more: true, next_cursor: 'c' };

export const PAGES = {
  items: { ...page, data: [item] },
  sources: {
    ...page,
    data: [
      {
        source_id: 'src_1',
        kind: 'conversation',
        session_id: 's_01',
        client: 'claude-code',
        first_seen: time,
        last_seen: time,
        records: 1,
        bytes: 80,
      },
    ],
  },
} as const;
