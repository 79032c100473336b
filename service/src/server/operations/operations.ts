import type { WhoAmI } from '../../../../src/core/memory-api/contract.ts';
import { PROOF_FEATURE, space as spaceShape } from '../../../../src/core/memory-api/words.ts';
import {
  CANDIDATES_MAX,
  CAPTURE_ITEMS_MAX,
  REQUEST_BYTES_MAX,
} from '../../../../src/core/memory-api/limits.ts';
import { RECORD_BYTES_MAX } from '../../../../src/core/memory-api/records.ts';
import type { Scope } from '../../../../src/core/memory-api/contract.ts';
import { modeOf } from '../../../../src/core/memory-api/keys.ts';
import {
  type Call,
  checkSpaces,
  type Operation,
  type OperationParts,
  readValue,
  type Reply,
  replyJson,
} from '../call.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { type Route, routeOf, RouteTable, type RouteText } from '../routes.ts';
import { capture } from './capture.ts';
import { getObject, listItems, listPurges, listSources, retrieve } from './reading.ts';
import { createPurge, deleteItem, getPurge } from './purges.ts';
import { recall } from './recall.ts';
import { getReceipt, listReceiptHeads, listReceipts } from './receipts.ts';

export interface KeyOperation extends Route {
  readonly name: string;
  /** The scope that a key needs; undefined means any valid key. */
  readonly scope: Scope | undefined;
  /** Bound on the body; undefined if the operation has no body. */
  readonly bodyBytesMax: number | undefined;
  readonly run: Operation;
}

export const KEY_START = '/v1/svc/';
/** Calls of paths that begin with this count against the plan's `memory_calls_per_minute`. */
export const MEMORY_START = `${KEY_START}memory/`;

const bytes = REQUEST_BYTES_MAX;

/** The operations for keys, each with its route, scope, handler and bound on the body. */
export const KEY_OPERATIONS = new RouteTable<KeyOperation>([
  row('whoami', 'GET whoami', undefined, whoami),
  row('recall', 'POST memory/recall', 'read', recall, bytes.recall),
  row('capture', 'POST memory/capture', 'write', capture, bytes.capture),
  row('retrieve', 'POST memory/retrieve', 'read', retrieve, bytes.retrieve),
  row('getObject', 'GET memory/objects/*', 'read', getObject),
  row('listItems', 'GET memory/items', 'read', listItems),
  row('deleteItem', 'DELETE memory/items/*', 'write', deleteItem),
  row('listSources', 'GET memory/sources', 'read', listSources),
  row('createPurge', 'POST memory/purges', 'write', createPurge, bytes.purge),
  row('listPurges', 'GET memory/purges', 'receipt:read', listPurges),
  row('getPurge', 'GET memory/purges/*', 'receipt:read', getPurge),
  row('listReceipts', 'GET requests', 'receipt:read', listReceipts),
  row('listReceiptHeads', 'GET requests/heads', 'receipt:read', listReceiptHeads),
  row('getReceipt', 'GET requests/*', 'receipt:read', getReceipt),
]);

function row(
  name: string,
  route: RouteText,
  scope: Scope | undefined,
  run: Operation,
  bodyBytesMax?: number,
): KeyOperation {
  return { name, ...routeOf(route), scope, bodyBytesMax, run };
}

/** The features that a client may use: see docs/memory-api.yaml. */
const FEATURES = [PROOF_FEATURE, 'capture.deadline.v1', 'retrieve.lines.v1', 'purge.signed.v1'];

async function whoami(call: Call, { settings }: OperationParts): Promise<Reply> {
  const { key, now } = call;
  const named = call.head.query.get('space');
  const space = named === null ? undefined : readValue(named, spaceShape);
  if (space !== undefined) checkSpaces(key, [space]);
  const state = space === undefined ? undefined : await call.store.spaceState(space, call.signal);
  const answer: WhoAmI = {
    tenant_id: key.tenant,
    key: {
      key_id: key.keyId,
      name: key.name,
      scopes: key.scopes,
      ...(key.spaces === undefined ? {} : { spaces: key.spaces }),
      expires_at: key.expiresAt === undefined ? null : isoTime(key.expiresAt),
    },
    memory_mode_default: modeOf(key.scopes),
    ...(state === undefined ? {} : { space_state: state }),
    limits: {
      max_candidates: CANDIDATES_MAX,
      max_capture_items: CAPTURE_ITEMS_MAX,
      max_record_bytes: RECORD_BYTES_MAX,
      max_body_bytes: REQUEST_BYTES_MAX.capture,
      requests_per_minute: settings.requestsPerMinute,
    },
    features: FEATURES,
    api_version: '1.0',
    min_client: null,
    server_time: isoTime(now),
  };
  return replyJson(answer);
}
