import {
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
} from '../../../src/core/memory-api/shape.ts';
import { DIALECTS } from '../../../src/core/conversation/view.ts';
import { UPSTREAM_NAME } from '../../../src/core/settings/config-upstreams.ts';
import { MODEL_ID } from './providers.ts';
import { GRACE_SECONDS } from '../../../src/core/memory-api/keys.ts';
import { MASTER_KEY_ID } from './settings.ts';
import { TENANT_ID } from './tenants.ts';

/**
 * Bodies of console operations, as service/docs/hosted-api.yaml has them. An unknown member makes a body
 * wrong: a typing mistake in a limit must not mean "no limit".
 */

const CLOSED = { closed: true } as const;

/** A name on one line, for people. */
const name = text({ min: 1, max: 100, pattern: /^[^\p{Cc}\p{Zl}\p{Zp}]*$/u });
/** Plans and providers are named in commands. */
const planName = text({ pattern: /^[a-z0-9][a-z0-9-]{0,62}$/ });
const tenantId = text({ pattern: TENANT_ID });
const count = orNull(integer(0, 2 ** 40));
const rate = orNull(integer(1, 1_000_000_000));

/** An identifier of a model, or the beginning of some with a star behind it. */
export const MODEL_NAME = /^(?:[\w.:@/+~-]{1,256}|[\w.:@/+~-]{0,255}\*)$/;
const models = distinct(listOf(text({ pattern: MODEL_NAME }), { min: 1, max: 500 }));
const spaces = distinct(
  listOf(text({ pattern: /^[a-z0-9*][a-z0-9._/*-]{0,127}$/ }), { min: 1, max: 256 }),
);

export const keyCreate = members(
  { name, scopes: distinct(listOf(oneOf('read', 'write', 'receipt:read'), { max: 3 })) },
  {
    spaces: orNull(spaces),
    allowed_models: orNull(models),
    expires_at: orNull(time),
    tokens_per_day: count,
    tokens_per_month: count,
  },
  CLOSED,
);

export const keyRotate = members({}, { grace_seconds: integer(0, GRACE_SECONDS.max) }, CLOSED);

/** RFC 9110: visible ASCII, blanks and bytes above. Line ends and NUL would split a header. */
const customValues = listOf(
  members(
    {
      name: text({ min: 1, max: 256, pattern: /^[\u0021-\u007e]*$/ }),
      value: text({ max: 4096, pattern: /^[\t\u0020-\u007e\u0080-\u00ff]*$/ }),
    },
    {},
    CLOSED,
  ),
  { max: 32 },
);

const credential = text({ min: 1, max: 8192, pattern: /^[\u0021-\u007e]*$/ });

/** A secret that is compared with the one that was saved. */
export const providerCompare = members({ credential }, {}, CLOSED);

/** The parts of a provider that change. Its address does not: a credential stays where it belongs. */
const providerMembers = {
  credential,
  custom_headers: customValues,
  custom_query: customValues,
  enabled: flag,
} as const;
const providerModels = {
  default_model: text({ pattern: MODEL_ID }),
  allowed_models: models,
} as const;

export const providerCreate = members(
  {
    name: planName,
    kind: oneOf('preset', 'custom'),
    api_style: oneOf(...DIALECTS),
    ...providerModels,
  },
  {
    ...providerMembers,
    preset_id: text({ pattern: UPSTREAM_NAME }),
    base_url: text({ min: 1, max: 2048 }),
    auth: oneOf('default', 'bearer', 'x-api-key', 'none'),
  },
  CLOSED,
);
export type ProviderCreate = Infer<typeof providerCreate>;

/** `version`: the one that the caller has seen, where If-Match does not say it. */
export const providerUpdate = members(
  {},
  { version: integer(1), name: planName, ...providerModels, ...providerMembers },
  CLOSED,
);
export type ProviderUpdate = Infer<typeof providerUpdate>;

export const tenantCreate = members({ tenant_id: tenantId }, { name, plan: planName }, CLOSED);

export const tenantUpdate = members(
  {},
  { name, plan: planName, status: oneOf('active', 'suspended', 'deleted') },
  CLOSED,
);
export type TenantUpdate = Infer<typeof tenantUpdate>;

/** Operations without members: the empty object. */
export const nothing = members({}, {}, CLOSED);

/** An id that the settings name a source for. */
export const masterKeyAdd = members({ key_id: text({ pattern: MASTER_KEY_ID }) }, {}, CLOSED);

/** A limit that is left out does not hold. */
const limits = members(
  {},
  {
    requests_per_minute: rate,
    requests_burst: rate,
    input_tokens_per_minute: rate,
    concurrent_requests: rate,
    memory_calls_per_minute: rate,
    tokens_per_day: count,
    tokens_per_month: count,
    records: count,
    providers: count,
    keys: count,
    retention_days: rate,
  },
  CLOSED,
);

export const planCreate = members({ name: planName, limits }, {}, CLOSED);
export const planUpdate = members({ limits }, {}, CLOSED);

export const adminCreate = members(
  { name, role: oneOf('operator', 'admin', 'viewer') },
  { expires_at: orNull(time) },
  CLOSED,
);

function distinct<Element>(shape: Shape<readonly Element[]>): Shape<readonly Element[]> {
  return such(shape, (list) => new Set(list).size === list.length, 'has a duplicate element');
}
