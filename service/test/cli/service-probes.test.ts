import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runServiceHere } from '../../../test/support/cli.ts';
import { callService, itemOf } from '../support/memory-service.ts';
import { consoleOf, initModelHome, providerBody } from '../support/model-process.ts';

/** The commands are clients of the console: each is tried on the folder, and over HTTP with a token. */

test('presets are listed, models fetched and a provider tested, here and with --url', async () => {
  const place = await initModelHome();
  const service = await place.start('--quiet');
  const { provider, home, token, environment } = place;
  const answer = provider.reply;
  const models = '{"data":[{"id":"a-1"},{"id":"b/2"},{"id":"no\\u001b"}]}';
  const listing: typeof answer = (request) =>
    request.path === '/v1/models' ? { status: 200, headers: {}, body: models } : answer(request);
  provider.reply = listing;
  const body = providerBody('openai_responses', place.baseUrl, { name: 'gateway' });
  const call = consoleOf(service, token);
  await call('POST providers', body);
  // The service counts probes by tenant, and makes those of both.
  await call('POST tenants', { tenant_id: 'acme' });
  await call('POST providers', body, { tenant: 'acme' });
  const away = (...words: string[]) => {
    const env = { ...environment, SVC_ADMIN_TOKEN: token };
    return runServiceHere(['providers', ...words, '--url', service.url, '--tenant', 'acme'], {
      home,
      env,
    });
  };
  const here = (...words: string[]) => place.svc('providers', ...words);
  for (const run of [here, away]) {
    /* oxlint-disable no-await-in-loop */
    const presets = await run('presets', 'anthropic');
    expect(presets.stdout).toMatch(/^anthropic +Anthropic +anthropic_messages/m);
    const named = JSON.parse((await run('presets', 'Anthropic', '--json')).stdout);
    expect(named).toContainEqual(expect.objectContaining({ preset_id: 'anthropic' }));
    expect((await run('presets', 'no-such-preset')).stderr).toContain('--base-url');
    const listed = await run('models', 'gateway');
    expect([listed.code, listed.stdout]).toEqual([0, 'a-1\nb/2\n']);
    expect(listed.stderr).toContain('1 entry without a usable name');
    const tested = await run('test', 'gateway');
    expect([tested.code, tested.stdout]).toEqual([0, expect.stringMatching(/^200 in \d+ ms\n$/)]);
    provider.reply = () => ({ status: 404, headers: {}, body: '' });
    const none = await run('models', 'gateway');
    expect([none.code, none.stdout]).toEqual([1, '']);
    expect(none.stderr).toContain('svc-service providers update gateway --model NAME');
    const failed = await run('test', 'gateway', '--json');
    expect([failed.code, JSON.parse(failed.stdout)]).toMatchObject([1, { ok: false, status: 404 }]);
    provider.reply = listing;
    expect((await run('models', 'nobody')).code).toBe(1);
    /* oxlint-enable no-await-in-loop */
  }
  // Six probes a minute.
  await away('test', 'gateway');
  await away('test', 'gateway');
  expect((await away('test', 'gateway')).stderr).toContain('RATE_LIMIT_EXCEEDED');
  const typed = await away(
    'update',
    'gateway',
    '--model',
    'typed-by-hand',
    '--default-model',
    'typed-by-hand',
  );
  expect(typed.code).toBe(0);
  const shown = JSON.parse((await away('show', 'gateway', '--json')).stdout);
  expect(shown.allowed_models).toEqual(['typed-by-hand']);
});

test('records are listed and deleted, purges listed, and the status told, here and with --url', async () => {
  const place = await initModelHome();
  const service = await place.start('--quiet');
  const { home, token, environment } = place;
  const console = consoleOf(service, token);
  const { json } = await console('POST keys', { name: 'k', scopes: ['read', 'write'] });
  const items = ['The harbour has nine lockers.', 'The parser reads backwards.'].map((text) =>
    itemOf(text),
  );
  const captured = await callService(service.url, '/v1/svc/memory/capture', {
    key: json.secret,
    body: { space: 'shop', if_generation: 'new', items },
  });
  expect(captured.status).toBe(200);
  const away = (...words: string[]) => {
    const env = { ...environment, SVC_ADMIN_TOKEN: token };
    return runServiceHere([...words, '--url', service.url], { home, env });
  };
  const here = (...words: string[]) => place.svc(...words);
  let left = 2;
  for (const run of [here, away]) {
    /* oxlint-disable no-await-in-loop */
    const all = JSON.parse((await run('items', 'list', '--space', 'shop', '--json')).stdout);
    expect(all).toHaveLength(left);
    left -= 1;
    const [item] = all as { item_id: string; text: string }[];
    const list = await run('items', 'list', '--space', 'shop', '--role', 'user');
    expect(list.stdout).toContain(`${item?.item_id} `);
    expect(list.stdout).toContain(item?.text);
    const gone = await run('items', 'delete', item?.item_id ?? '', '--space', 'shop');
    expect([gone.code, gone.stderr]).toEqual([0, expect.stringContaining('prg_')]);
    expect((await run('items', 'delete', item?.item_id ?? '', '--space', 'shop')).code).toBe(1);
    const purges = await run('purges');
    expect(purges.stdout.split('\n')[0]).toMatch(/^prg_\w+ +erased +shop +1 record$/);
    /* oxlint-enable no-await-in-loop */
  }
  const file = join(home, 'purges.json');
  const printed = (await place.svc('purges', '--json')).stdout;
  const keys = join(home, 'keys.json');
  writeFileSync(keys, (await callService(service.url, '/.well-known/svc/receipt-keys.json')).text);
  const verify = async (text: string) => {
    writeFileSync(file, text);
    const ran = await place.svc('receipts', 'verify', file, '--keys', keys);
    return [ran.code, ran.stderr.trim()];
  };
  expect(await verify(printed)).toEqual([0, '2 receipts, 0 wrong, 0 missing.']);
  expect(await verify(printed.replace('"shop"', '"shed"'))).toEqual([
    1,
    '2 receipts, 1 wrong, 0 missing.',
  ]);
  const none = await away('items', 'list', '--search', 'harbour');
  expect(none.stderr).toContain('No record matches');
  expect((await away('items', 'list', '--limit', '0')).code).toBe(2);
  const status = await away('status');
  expect([status.code, status.stdout]).toEqual([
    0,
    expect.stringMatching(/ready, svc \d.*\n1 space, 0 records, 1 key\n/),
  ]);
  expect(JSON.parse((await away('status', '--json')).stdout)).toMatchObject({ keys: 1 });
  const denied = await runServiceHere(['status', '--url', service.url], { home });
  expect([denied.code, denied.stderr]).toEqual([1, expect.stringContaining('SVC_ADMIN_TOKEN')]);
});
