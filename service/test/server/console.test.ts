import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findBreak } from '../support/audit-chain.ts';
import type { AdminRole } from '../../src/core/admins.ts';
import { openConsole } from '../support/console.ts';
import { itemOf, keyIdOf } from '../support/memory-service.ts';

const SPACE = 'project/api-0123456789';

// spec: 2.1-prefix, 2.1-revoked, 4.6-console, 5.4-shown-once
test('a key made over HTTP opens the memory of its tenant, and its secret is told once', async () => {
  const { ask, askMemory } = await openConsole();
  const made = await ask('POST keys', { name: 'laptop', scopes: ['read', 'write'] });
  expect([made.status, made.json.status]).toEqual([201, 'active']);
  const { secret, ...key } = made.json;
  expect(secret).toContain(key.prefix);
  const { json: who } = await askMemory('whoami', secret);
  expect(who).toMatchObject({ tenant_id: 'default', key: { key_id: key.key_id, name: 'laptop' } });
  const list = await ask('GET keys');
  expect(list.json.data).toMatchObject([{ key_id: key.key_id }]);
  expect(list.text).not.toContain(String(secret).split('_')[3]);
  expect((await ask(`DELETE keys/${key.key_id}`)).status).toBe(204);
  expect((await ask(`DELETE keys/${key.key_id}`)).status).toBe(404);
  expect((await askMemory('whoami', secret)).json.error.code).toBe('AUTH_REVOKED');
});

test('a rotated secret works for its grace, then is stale; a leaked one is refused at once', async () => {
  const { ask, askMemory, clock } = await openConsole();
  const first = (await ask('POST keys', { name: 'ci', scopes: ['read'] })).json;
  const codeOf = async (secret: string) => (await askMemory('whoami', secret)).json.error?.code;
  const path = `keys/${first.key_id}/rotate`;
  const second = (await ask(`POST ${path}`, { grace_seconds: 60 })).json;
  expect(second).toMatchObject({ key_id: first.key_id, status: 'grace' });
  expect([await codeOf(first.secret), await codeOf(second.secret)]).toEqual([undefined, undefined]);
  clock.goOn(60_000);
  expect([await codeOf(first.secret), await codeOf(second.secret)]).toEqual([
    'AUTH_STALE',
    undefined,
  ]);
  const third = (await ask(`POST ${path}`, { grace_seconds: 0 })).json;
  expect(third.status).toBe('active');
  expect([await codeOf(second.secret), await codeOf(third.secret)]).toEqual([
    'AUTH_STALE',
    undefined,
  ]);
  const long = await ask(`POST ${path}`, { grace_seconds: 604_801 });
  expect(long.json.error.code).toBe('INVALID_REQUEST');
});

test('R4: a live key opens no console operation, and a token nothing else', async () => {
  const { ask, askMemory, token } = await openConsole();
  const { secret } = (await ask('POST keys', { name: 'k', scopes: ['read'] })).json;
  expect((await askMemory('whoami', token)).json.error.code).toBe('AUTH_INVALID');
  for (const path of ['keys', 'nothing', 'tenants']) {
    // oxlint-disable-next-line no-await-in-loop
    expect((await ask(`GET ${path}`, undefined, { key: secret })).json.error.code).toBe(
      'AUTH_INVALID',
    );
  }
  expect((await ask('GET nothing', undefined, { key: undefined })).json.error.code).toBe(
    'AUTH_MISSING',
  );
  expect((await ask('GET nothing')).status).toBe(404);
  expect((await ask('PUT keys', {})).headers['allow']).toBe('GET, POST');
});

// spec: 7-403
test('each role may do what it includes, and nobody gives a role above their own', async () => {
  const { ask, tokenOf } = await openConsole();
  const calls: readonly [string, string, object | undefined, AdminRole][] = [
    ['GET', 'session', undefined, 'viewer'],
    ['GET', 'keys', undefined, 'viewer'],
    ['GET', 'audit', undefined, 'viewer'],
    ['POST', 'keys', { name: 'k', scopes: ['read'] }, 'admin'],
    ['GET', 'admins', undefined, 'admin'],
    ['POST', 'admins', { name: 'v', role: 'viewer' }, 'admin'],
    ['POST', 'admins', { name: 'o', role: 'operator' }, 'operator'],
    ['GET', 'tenants', undefined, 'operator'],
    ['POST', 'tenants', { tenant_id: 'mine' }, 'operator'],
    ['GET', 'plans', undefined, 'operator'],
    ['POST', 'plans', { name: 'mine', limits: {} }, 'operator'],
    ['PUT', 'plans/self-hosted', { limits: {} }, 'operator'],
    ['PATCH', 'tenants/default', { status: 'active' }, 'operator'],
  ];
  const roles: readonly AdminRole[] = ['viewer', 'admin', 'operator'];
  for (const role of roles) {
    // oxlint-disable-next-line no-await-in-loop
    const key = await tokenOf(role);
    for (const [method, path, body, needed] of calls) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await ask(`${method} ${path}`, body, { key });
      const isAllowed = roles.indexOf(role) >= roles.indexOf(needed);
      const code = answer.status < 300 ? 'let in' : answer.json.error.code;
      expect([role, method, path, code]).toEqual([
        role,
        method,
        path,
        isAllowed ? 'let in' : 'SCOPE_DENIED',
      ]);
    }
  }
});

test('for an admin no other tenant exists; an operator may act for any', async () => {
  const { ask, tokenOf, askMemory } = await openConsole();
  for (const id of ['acme', 'globex']) {
    // oxlint-disable-next-line no-await-in-loop
    expect((await ask('POST tenants', { tenant_id: id })).status).toBe(201);
  }
  const acme = await tokenOf('admin', 'acme');
  const own = (await ask('POST keys', { name: 'a', scopes: ['read', 'write'] }, { key: acme }))
    .json;
  const other = (
    await ask('POST keys', { name: 'g', scopes: ['read', 'write'] }, { tenant: 'globex' })
  ).json;
  const denied: readonly [string, string, object | undefined][] = [
    ['DELETE', `keys/${other.key_id}`, undefined],
    ['POST', `keys/${other.key_id}/rotate`, { grace_seconds: 0 }],
    ['DELETE', `admins/${keyIdOf(acme)}x`, undefined],
  ];
  for (const [method, path, body] of denied) {
    // oxlint-disable-next-line no-await-in-loop
    expect((await ask(`${method} ${path}`, body, { key: acme })).status, path).toBe(404);
  }
  expect((await ask('GET keys', undefined, { key: acme, tenant: 'globex' })).status).toBe(404);
  expect((await ask('GET audit', undefined, { key: acme, tenant: 'service' })).status).toBe(404);
  const { json: mine } = await ask('GET keys', undefined, { key: acme });
  expect(mine.data.map((key: { key_id: string }) => key.key_id)).toEqual([own.key_id]);
  expect((await ask('GET admins', undefined, { key: acme })).json.data).toHaveLength(1);
  expect((await ask('GET keys', undefined, { tenant: 'nobody' })).status).toBe(404);
  expect((await ask('GET keys', undefined, { tenant: 'No body' })).status).toBe(422);
  // The same words of both stay with each.
  const said = (text: string) => ({ space: SPACE, if_generation: 'new', items: [itemOf(text)] });
  await askMemory('memory/capture', own.secret, said('the same words'));
  expect((await askMemory('memory/items', other.secret)).json.data).toEqual([]);
  const again = await askMemory('memory/capture', other.secret, said('the same words'));
  expect(again.json.results).toMatchObject([{ state: 'durable' }]);
  expect(again.json.commit_seq).toBe(1);
});

test('the keys of a suspended tenant are refused until it is resumed, those of a deleted one for good, and its admins', async () => {
  const { ask, askMemory } = await openConsole();
  await ask('POST tenants', { tenant_id: 'acme' });
  const made = await ask('POST keys', { name: 'k', scopes: ['read'] }, { tenant: 'acme' });
  const admin = { name: 'a', role: 'admin' };
  const { token } = (await ask('POST admins', admin, { tenant: 'acme' })).json;
  expect((await ask('GET keys', undefined, { key: token })).status).toBe(200);
  const answer = async () => {
    const { status, json } = await askMemory('whoami', made.json.secret);
    return `${status} ${json.error?.code ?? ''}`.trim();
  };
  const set = (status: string) => ask('PATCH tenants/acme', { status });
  expect(await answer()).toBe('200');
  await set('suspended');
  expect(await answer()).toBe('403 TENANT_SUSPENDED');
  await set('active');
  expect(await answer()).toBe('200');
  await set('deleted');
  expect(await answer()).toBe('401 AUTH_REVOKED');
  expect((await ask('GET keys', undefined, { key: token })).json.error.code).toBe('AUTH_REVOKED');
  expect((await set('active')).json.error.code).toBe('CONFLICT');
  const { json } = await ask('GET audit', undefined, { tenant: 'service' });
  const kinds = json.data.map((event: { kind: string }) => event.kind);
  expect(kinds.slice(0, 4)).toEqual([
    'tenant.deleted',
    'tenant.resumed',
    'tenant.suspended',
    'admin.created',
  ]);
});

test('a plan bounds keys, and revoking one frees its place', async () => {
  const { ask } = await openConsole();
  await ask('POST plans', { name: 'small', limits: { keys: 1 } });
  await ask('POST tenants', { tenant_id: 'acme', plan: 'small' });
  const make = () => ask('POST keys', { name: 'k', scopes: [] }, { tenant: 'acme' });
  const { key_id: id } = (await make()).json;
  const over = await make();
  expect([over.status, over.json.error.code]).toEqual([403, 'PLAN_LIMIT_REACHED']);
  await ask(`DELETE keys/${id}`, undefined, { tenant: 'acme' });
  expect((await make()).status).toBe(201);
  const wrong = { name: 'typo', limits: { requests_per_minut: 5 } };
  expect((await ask('POST plans', wrong)).json.error.code).toBe('INVALID_REQUEST');
  expect((await ask('POST tenants', { tenant_id: 'x', plan: 'none' })).status).toBe(404);
  expect((await ask('POST tenants', { tenant_id: 'service' })).status).toBe(409);
});

test('lists are pages: every element once, and the end says so', async () => {
  const { ask } = await openConsole();
  for (let at = 0; at < 5; at += 1) {
    // oxlint-disable-next-line no-await-in-loop
    await ask('POST keys', { name: `k${at}`, scopes: [] });
  }
  for (const path of ['keys', 'audit']) {
    const seen: unknown[] = [];
    let after = '';
    do {
      // oxlint-disable-next-line no-await-in-loop
      const { json } = await ask(`GET ${path}?limit=2${after}`);
      seen.push(
        ...json.data.map((row: { name?: string; number?: number }) => row.name ?? row.number),
      );
      expect(json.has_more).toBe(json.next_cursor !== null);
      after = json.next_cursor === null ? '' : `&after=${json.next_cursor}`;
    } while (after !== '');
    expect([path, new Set(seen).size, seen.length]).toEqual([path, 5, 5]);
  }
  for (const query of ['limit=0', 'limit=101', 'limit=x', 'after=%00', 'after=']) {
    // oxlint-disable-next-line no-await-in-loop
    expect((await ask(`GET keys?${query}`)).status).toBe(422);
  }
  for (const after of ['x', '1-2', '9'.repeat(20)]) {
    // oxlint-disable-next-line no-await-in-loop
    expect((await ask(`GET audit?after=${after}`)).status).toBe(422);
  }
});

test('R29: a secret and a token are in no file, list, audit event or log', async () => {
  const { ask, token, service } = await openConsole();
  const { secret, key_id: id } = (await ask('POST keys', { name: 'k', scopes: ['read'] })).json;
  const rotated = (await ask(`POST keys/${id}/rotate`, {})).json.secret;
  const admin = (await ask('POST admins', { name: 'a', role: 'admin' })).json.token;
  const told = await Promise.all(
    ['keys', 'admins', 'audit', 'session'].map(async (path) => (await ask(`GET ${path}`)).text),
  );
  const files = readdirSync(service.folder).map((name) =>
    readFileSync(join(service.folder, name), 'latin1'),
  );
  const all = [...told, ...files, JSON.stringify([service.calls, service.reports])].join('\n');
  for (const one of [secret, rotated, admin, token]) {
    expect(all).not.toContain(String(one).split('_')[3]);
  }
});

// spec: 6-audit
test('the events over HTTP form a chain that anyone can check', async () => {
  const { ask } = await openConsole();
  const { key_id: id } = (await ask('POST keys', { name: 'k', scopes: [] })).json;
  await ask(`POST keys/${id}/rotate`, { grace_seconds: 0 });
  await ask(`DELETE keys/${id}`);
  const { json } = await ask('GET audit');
  const events = json.data
    .toReversed()
    .map((event: { at: string }) => ({ ...event, at: Date.parse(event.at) }));
  expect(events.map((event: { kind: string }) => event.kind)).toEqual([
    'key.created',
    'key.rotated',
    'key.revoked',
  ]);
  expect(events[0].actor).toMatchObject({ type: 'admin', ip_hash: expect.any(String) });
  expect(findBreak('default', events)).toBe(undefined);
});

test('a body that is no JSON, has unknown members or comes too large is refused, and nothing changes', async () => {
  const { ask } = await openConsole();
  const key = { name: 'k', scopes: ['read'] };
  const bodies: readonly [unknown, string][] = [
    ['{"name":', 'INVALID_JSON'],
    [{ ...key, scope: 'read' }, 'INVALID_REQUEST'],
    [{ ...key, scopes: ['read', 'read'] }, 'INVALID_REQUEST'],
    [{ ...key, expires_at: '2001-01-01T00:00:00Z' }, 'INVALID_REQUEST'],
    [{ ...key, name: 'x'.repeat(300_000) }, 'PAYLOAD_TOO_LARGE'],
  ];
  for (const [body, code] of bodies) {
    // oxlint-disable-next-line no-await-in-loop
    expect((await ask('POST keys', body)).json.error.code).toBe(code);
  }
  expect((await ask('GET keys')).json.data).toEqual([]);
  expect((await ask('GET audit')).json.data).toEqual([]);
});
