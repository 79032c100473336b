import { expect, test } from 'vitest';
import { requestWith, said, toolRound } from '../../../test/support/dialect-wire.ts';
import { openModelService } from '../support/model-service.ts';
import { ask } from '../../../test/support/sockets.ts';

const DIALECT = 'anthropic_messages';

/** A session whose tools answered at length. */
function session(rounds: number): object {
  const filler = (at: number) =>
    Array.from({ length: 400 }, (_, line) => `line ${line} of output ${at}: ${at * 31 + line}`);
  const items = Array.from({ length: rounds }, (_, at) =>
    toolRound(DIALECT, `call_${at}`, filler(at).join('\n')),
  ).flat();
  const tools = [{ name: 'Bash', description: 'A shell.', input_schema: { type: 'object' } }];
  return requestWith(DIALECT, [said('user', 'Read all of these files.'), ...items], { tools });
}

test('old tool outputs leave, and are read again with curl and the same key', async () => {
  const stage = await openModelService({ limits: { publicUrl: 'https://svc.example' } });
  const { send, makeKey, addProvider, provider, port } = stage;
  await addProvider(DIALECT);
  const key = await makeKey();
  let state: unknown;
  for (let rounds = 12; rounds < 26 && state !== 'elided_tool_output'; rounds += 1) {
    // oxlint-disable-next-line no-await-in-loop
    const answer = await send(DIALECT, session(rounds), { key });
    state = answer.headers['x-svc-continuity-state'];
    // oxlint-disable-next-line no-await-in-loop
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  expect(state).toBe('elided_tool_output');
  const body = provider.seen.at(-1)?.body.toString() ?? '';
  expect(body).toContain('"https://svc.example/v1/svc/memory/objects/REFERENCE?format=text');
  const reference = /svc memory get (m_[a-z2-7]{16})/.exec(body)?.[1] ?? '';
  const read = (credential: string, more = '') =>
    ask(port, {
      method: 'GET',
      path: `/v1/svc/memory/objects/${reference}?format=text&lines=1-200${more}`,
      headers: ['authorization', `Bearer ${credential}`],
    });
  const answer = await read(key);
  expect(answer.status).toBe(200);
  const lines = answer.body.toString().split('\n');
  expect([lines.length, lines[0]]).toEqual([200, expect.stringMatching(/^line 0 of output \d+/)]);
  await stage.ask('POST tenants', { tenant_id: 'acme' });
  expect((await read(await makeKey({ tenant: 'acme' }))).status).toBe(404);
  expect((await read(await makeKey({ spaces: ['other'] }))).status).toBe(404);
});
