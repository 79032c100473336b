import { type WhoAmI } from '../../../../src/core/memory-api/contract.ts';
import { PROOF_FEATURE, space as spaceShape } from '../../../../src/core/memory-api/words.ts';
import {
  CANDIDATES_MAX,
  CAPTURE_ITEMS_MAX,
  REQUEST_BYTES_MAX,
} from '../../../../src/core/memory-api/limits.ts';
import { RECORD_BYTES_MAX } from '../../../../src/core/memory-api/records.ts';
import { modeOf } from '../../../../src/core/memory-api/keys.ts';
import { checkSpaces, type Operation, readValue, replyJson } from '../call.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';

/** The features of this service, so that a client need not try them out. */
const FEATURES = [PROOF_FEATURE, 'capture.deadline.v1', 'retrieve.lines.v1', 'purge.signed.v1'];

export const whoami: Operation = async (call, { parts }) => {
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
    ...(state === undefined
      ? {}
      : {
          space_state: {
            space: state.space,
            generation: state.generation,
            commit_seq: state.commitSeq,
            records: state.records,
          },
        }),
    limits: {
      max_candidates: CANDIDATES_MAX,
      max_capture_items: CAPTURE_ITEMS_MAX,
      max_record_bytes: RECORD_BYTES_MAX,
      max_body_bytes: REQUEST_BYTES_MAX.capture,
      requests_per_minute: parts.settings.requestsPerMinute,
    },
    features: FEATURES,
    api_version: '1.0',
    min_client: null,
    server_time: isoTime(now),
  };
  return replyJson(answer);
};
