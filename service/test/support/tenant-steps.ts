import { randomBytes } from 'node:crypto';
import { recordBytes, recordOfText } from '../../../src/core/memory-api/canonical.ts';
import { contentDigest, contentReference } from '../../../src/core/memory/reference.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { promptOf, requestWith, said } from '../../../test/support/dialect-wire.ts';
import { callService, itemOf, type ServiceAnswer } from './memory-service.ts';
import { type ModelService, openModelService } from './model-service.ts';

/** Two tenants of one service that do the same things with the same words, and the view of each. */

export const TENANTS = ['default', 'acme'] as const;
export type Tenant = (typeof TENANTS)[number];
export const SPACES = ['shop', 'global'] as const;
export const DIALECT = 'anthropic_messages';

const TOLD = [
  'Remember this: the deploy code word of our staging cluster is marmalade.',
  'Note for later: the parser of the billing service writes its nodes in reverse order.',
];
const ASKED = [
  'What is the deploy code word of our staging cluster?',
  'In which order does the parser of the billing service write its nodes?',
];
/** One that all tenants use, for all of their calls of one kind. */
const IDEMPOTENCY_KEY = 'the-same-key';

export interface Step {
  readonly tenant: Tenant;
  readonly space: (typeof SPACES)[number];
  readonly what: 'tell' | 'ask' | 'again' | 'capture' | 'purge' | 'settings';
  readonly about: number;
}

export interface TwoTenants extends ModelService {
  readonly keys: Readonly<Record<Tenant, string>>;
  readonly tokens: Readonly<Record<Tenant, string>>;
  /** Conversations that were begun and are not purged: tenant, space and subject. */
  readonly begun: Set<string>;
}

export interface TwoTenantsOptions {
  /** Hashes of two runs can be compared only with the same one. */
  readonly pepper?: Uint8Array;
  readonly store?: ServiceStore;
}

export async function openTwoTenants(options: TwoTenantsOptions = {}): Promise<TwoTenants> {
  const { pepper = randomBytes(32) } = options;
  const service = await openModelService({ ...options, pepper });
  await service.ask('POST signing/rotate', {});
  await service.ask('POST tenants', { tenant_id: 'acme' });
  const keys: Record<string, string> = {};
  const tokens: Record<string, string> = {};
  for (const tenant of TENANTS) {
    /* oxlint-disable no-await-in-loop */
    await service.addProvider(DIALECT, { credential: `sk-of-${tenant}` }, tenant);
    keys[tenant] = await service.makeKey({ tenant });
    tokens[tenant] = await service.tokenOf('admin', tenant);
    /* oxlint-enable no-await-in-loop */
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Each tenant was set above.
  return { ...service, keys, tokens, begun: new Set() } as unknown as TwoTenants;
}

/** Does what the step says, as the tenant's own client or admin. */
export async function take(stage: TwoTenants, step: Step): Promise<void> {
  const { space, tenant, what, about } = step;
  const key = stage.keys[tenant];
  const [told = '', asked = ''] = [TOLD[about], ASKED[about]];
  const call = (path: string, body: object) =>
    callService(stage.service.url, `/v1/svc/memory/${path}`, {
      key,
      body,
      headers: { 'idempotency-key': `${IDEMPOTENCY_KEY}-${path}-${space}-${about}` },
    });
  switch (what) {
    case 'tell':
      return send(stage, step, promptOf(DIALECT, told));
    case 'ask':
      stage.begun.add(nameOf(step));
      return send(stage, step, promptOf(DIALECT, asked));
    case 'again': {
      // Unknown history is kept in the background, at a moment that chance decides.
      if (!stage.begun.has(nameOf(step))) return take(stage, { ...step, what: 'ask' });
      const before = [said('user', asked), said('assistant', 'Noted.')];
      return send(stage, step, requestWith(DIALECT, [...before, said('user', 'Say it again.')]));
    }
    case 'capture': {
      const { status } = await call('capture', {
        space,
        if_generation: await generationOf(stage, step),
        items: [itemOf(told)],
      });
      if (status !== 200 && status !== 409) throw new Error(`capture: ${status}`);
      return undefined;
    }
    case 'purge': {
      for (const other of [0, 1]) stage.begun.delete(nameOf({ ...step, about: other }));
      const { status } = await call('purges', { space, confirm: space, scope: { all: true } });
      if (status !== 200) throw new Error(`purge: ${status}`);
      return undefined;
    }
    case 'settings':
      return changeSettings(stage, step);
  }
}

function nameOf({ tenant, space, about }: Step): string {
  return `${tenant} ${space} ${about}`;
}

async function send(stage: TwoTenants, { tenant, space }: Step, body: object): Promise<void> {
  const headers = { 'x-svc-memory-space': space };
  const answer = await stage.send(DIALECT, body, { key: stage.keys[tenant], headers });
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body.toString()}`);
}

async function generationOf(stage: TwoTenants, { tenant, space }: Step): Promise<string> {
  const path = `/v1/svc/whoami?space=${space}`;
  const { json } = await callService(stage.service.url, path, { key: stage.keys[tenant] });
  return json.space_state.generation ?? 'new';
}

async function changeSettings(stage: TwoTenants, { tenant, about }: Step): Promise<void> {
  const key = stage.tokens[tenant];
  const path = '/v1/svc/console/settings';
  const { json } = await callService(stage.service.url, path, { key });
  await callService(stage.service.url, path, {
    key,
    method: 'PATCH',
    body: { input_budget: 20_000 + about },
    headers: { 'if-match': `"${json.version}"` },
  });
}

type Fields = Readonly<Record<string, unknown>>;

/** Everything that a tenant can see, without ids and times that chance gives. */
export async function viewOf(stage: TwoTenants, tenant: Tenant): Promise<Fields> {
  await stage.service.flush();
  await stage.service.receipts.flush();
  const key = stage.keys[tenant];
  const asKey = (path: string, body?: object): Promise<ServiceAnswer> =>
    callService(stage.service.url, `/v1/svc/${path}`, {
      key,
      ...(body === undefined ? {} : { body }),
    });
  const asAdmin = (path: string): Promise<ServiceAnswer> =>
    callService(stage.service.url, `/v1/svc/console/${path}`, { key: stage.tokens[tenant] });
  const spaces = await Promise.all(SPACES.map((space) => viewOfSpace(asKey, space)));
  const lists = {
    receipts: asKey('requests?limit=100'),
    heads: asKey('requests/heads'),
    purges: asKey('memory/purges'),
    requests: asAdmin('requests?limit=100'),
    usage: asAdmin('usage?group_by=model'),
    audit: asAdmin('audit'),
    providers: asAdmin('providers'),
    keys: asAdmin('keys'),
    items: asAdmin('memory/items?limit=100'),
    settings: asAdmin('settings'),
  };
  const view: Record<string, unknown> = { spaces };
  for (const [name, asked] of Object.entries(lists)) {
    // oxlint-disable-next-line no-await-in-loop
    const { status, json } = await asked;
    if (status !== 200) throw new Error(`${name}: ${status}`);
    view[name] = lasting(json);
  }
  view['provider'] = stage.provider.seen
    .filter(({ headers }) => headers.includes(`sk-of-${tenant}`))
    .map(({ body }) => body.toString());
  return view;
}

const NONCE = Buffer.alloc(32, 7).toString('base64url');

async function viewOfSpace(
  asKey: (path: string, body?: object) => Promise<ServiceAnswer>,
  space: string,
): Promise<Fields> {
  const records = TOLD.map((text) => {
    const record = recordOfText('user', text);
    const digest = contentDigest(recordBytes(record) ?? Buffer.alloc(0));
    return { digest, ref: contentReference(record.k, digest) };
  });
  const recalled = await Promise.all(
    ASKED.map(async (text) => {
      const question = { space, max_tokens: 512, query: { text }, nonce: NONCE };
      const candidates = records.map(({ digest }) => digest);
      return (await asKey('memory/recall', { ...question, candidates })).json;
    }),
  );
  const objects = await Promise.all(
    records.map(async ({ ref }) => {
      const { status, text } = await asKey(`memory/objects/${ref}?space=${space}`);
      return status === 200 ? text : status;
    }),
  );
  const refs = records.map(({ ref }) => ref);
  const retrieved = await asKey('memory/retrieve', { space, refs });
  const items = await asKey(`memory/items?space=${space}`);
  const sources = await asKey(`memory/sources?space=${space}`);
  const { json } = await asKey(`whoami?space=${space}`);
  return {
    recalled: lasting(recalled),
    retrieved: lasting(retrieved.json),
    items: lasting(items.json),
    sources: lasting(sources.json),
    commits: json.space_state?.commit_seq ?? null,
    objects,
  };
}

/** Members that chance or the clock gives, of every kind of answer. */
const FLEETING =
  /^(?:.*_id|ids|.*_ids|.*_at|at|as_of|latency_ms|signature|.*generation(?:_\w+)?|node|hash|previous|fingerprint|next_cursor|prefix|host|base_url|upstream_host|(?:first|last)_seen|actor|target|requested_by|hold_until)$/;
/** Ids that say what a conversation or a caller is: they count. */
const KEPT = /^(?:session_id|tenant_id|space)$/;

function lasting(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lasting);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([name]) => KEPT.test(name) || !FLEETING.test(name));
  return Object.fromEntries(members.map(([name, member]) => [name, lasting(member)]));
}
