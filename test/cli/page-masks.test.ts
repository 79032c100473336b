import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { UI_SECRET_HEADER } from '../../src/core/http/ui-gate.ts';
import { runHere } from '../support/cli.ts';
import { LOCAL_TOKEN, validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { startProxyProcess } from '../support/proxy-process.ts';

/** Nothing about it looks like a key. */
const KEY = 'heron-parade/south+gate';

test('R41: an open page masks the key that a changed configuration brings', async () => {
  const home = homeWith(validConfig());
  const env = { SVC_DATA_HOME: join(home, 'data') };
  const added = ['memory', 'add', 'The gate opens at nine.', '--space', 'team', '--json'];
  expect((await runHere(added, { home, env })).code).toBe(0);
  const proxy = await startProxyProcess(home, env);
  let headers: Record<string, string> = { authorization: `Bearer ${LOCAL_TOKEN}` };
  const call = (path: string, body?: object): Promise<Response> =>
    fetch(proxy.url + path, {
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
  const { link } = (await (await call('/svc/ui-link', {})).json()) as { link: string };
  headers = { origin: new URL(proxy.url).origin };
  const opened = await call('/svc/ui/api/session', { code: link.slice('/svc/ui#link='.length) });
  const { secret } = (await opened.json()) as { secret: string };
  const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
  headers = { ...headers, cookie, [UI_SECRET_HEADER]: secret };
  const listed = async () => {
    const answer = await call('/svc/ui/api/memories?space=team');
    return (await answer.json()) as { records: { ref: string; text: string }[] };
  };
  const [upstream] = validConfig()['upstreams'] as object[];
  const changed = { ...validConfig(), upstreams: [{ ...upstream, providerKey: KEY }] };
  writeFileSync(join(home, '.config/svc/config.json'), JSON.stringify(changed));
  let edits = 0;
  const edited = async (): Promise<string> => {
    const [{ ref } = { ref: '' }] = (await listed()).records;
    edits += 1;
    await call('/svc/ui/api/edit', { space: 'team', ref, text: `Edit ${edits} names ${KEY}.` });
    return (await listed()).records.map(({ text }) => text).join();
  };
  await expect.poll(edited).toMatch(/^Edit \d+ names \[masked: [a-z-]+\]/);
});
