import { describe, expect, test } from 'vitest';
import { DIALECTS, promptOf } from '../../../test/support/dialect-wire.ts';
import { openModelService, PROVIDER_SECRET } from '../support/model-service.ts';

describe.each(DIALECTS)('%s', (dialect) => {
  test('a request goes to the provider of its tenant with the vaulted credential, bytes unchanged', async () => {
    const { addProvider, makeKey, send, provider } = await openModelService();
    await addProvider(dialect);
    const key = await makeKey();
    const body = JSON.stringify(promptOf(dialect, 'What is 1.0?')).replace('"m"', '"\\u006d"');
    const answer = await send(dialect, body, { key });
    expect(answer.status).toBe(200);
    const [seen] = provider.seen;
    if (seen === undefined) throw new Error('nothing was seen');
    expect(seen.body.toString()).toBe(body);
    expect(seen.headers.join('\n')).toContain(PROVIDER_SECRET);
    expect(seen.headers.join('\n')).not.toContain('svc_live');
    expect(answer.body.toString()).toBe(provider.reply(seen).body);
  });

  test('session two recalls what session one said, in the space of its tenant alone', async () => {
    const { addProvider, makeKey, send, provider, ask, service } = await openModelService();
    await ask('POST tenants', { tenant_id: 'acme' });
    await addProvider(dialect);
    await addProvider(dialect, {}, 'acme');
    const [key, other] = [await makeKey(), await makeKey({ tenant: 'acme' })];
    const told = 'Remember this: the deploy code word of our staging cluster is marmalade.';
    await send(dialect, promptOf(dialect, told), { key });
    await service.flush();
    const asked = promptOf(dialect, 'What is the deploy code word of our staging cluster?');
    const foreign = await send(dialect, asked, { key: other });
    expect(foreign.headers['x-svc-memory-state']).toBe('empty');
    const own = await send(dialect, asked, { key });
    expect(own.headers['x-svc-memory-state']).toBe('recalled');
    const bodies = provider.seen.map(({ body }) => body.toString());
    expect(bodies[1]).toBe(JSON.stringify(asked));
    expect(bodies[2]).toContain('marmalade');
  });
});
