import { expect, test } from 'vitest';
import { isUiTarget } from '../../src/core/http/ui-gate.ts';
import { UI_TIMES } from '../../src/local/ui/sessions.ts';
import { AUTHORIZED, TOKEN } from '../support/local-server.ts';
import { startUiStage, type UiStage } from '../support/ui-server.ts';
import { openSocket } from '../support/raw-http.ts';

/** R47: who may see the page, and who may use its API. */

const JSON_TYPE = 'Content-Type: application/json';
const ABOUT = { method: 'GET', target: '/svc/ui/api/about' };

function ownOrigin({ running }: UiStage): string {
  return `Origin: http://127.0.0.1:${running.port}`;
}

function redeem(stage: UiStage, code: string, headers = [ownOrigin(stage), JSON_TYPE]) {
  const body = JSON.stringify({ code });
  return stage.running.ask({ target: '/svc/ui/api/session', headers, body });
}

test('R47: a link opens a session, and cookie and secret together open the API', async () => {
  const stage = await startUiStage();
  const credentials = await stage.open();
  const answer = await stage.running.ask({ ...ABOUT, headers: stage.headersOf(credentials) });
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.body)).toEqual({ version: '0.1.2' });
});

test('R47: the cookie is opaque, for the API only, and no script or other site gets it', async () => {
  const stage = await startUiStage();
  const line = (await redeem(stage, await stage.newCode())).headers.get('set-cookie') ?? '';
  expect(line).toMatch(
    /^svc_ui_\d+=[\w-]{43}; Path=\/svc\/ui\/api\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  );
});

test('R47: cookie alone and secret alone open nothing: a server on another port gets the cookie', async () => {
  const stage = await startUiStage();
  const [cookie = '', secret = ''] = stage.headersOf(await stage.open());
  const other = stage.headersOf(await stage.open());
  for (const headers of [
    [cookie],
    [secret],
    [],
    [cookie, other[1] ?? ''],
    [cookie, cookie, secret],
  ]) {
    const { status } = await stage.running.ask({ ...ABOUT, headers });
    expect([headers.length, status]).toEqual([headers.length, 401]);
  }
});

test('R47: a link is good once, and for a minute', async () => {
  const stage = await startUiStage();
  const code = await stage.newCode();
  expect((await redeem(stage, code)).status).toBe(200);
  const replayed = await redeem(stage, code);
  expect(replayed.status).toBe(401);
  expect(replayed.headers.has('set-cookie')).toBe(false);
  const late = await stage.newCode();
  stage.advance(UI_TIMES.linkMs + 1);
  expect((await redeem(stage, late)).status).toBe(401);
  const inTime = await stage.newCode();
  stage.advance(UI_TIMES.linkMs);
  expect((await redeem(stage, inTime)).status).toBe(200);
});

test('R47: a session ends after an hour without use, and after twelve in any case', async () => {
  const stage = await startUiStage();
  const headers = stage.headersOf(await stage.open());
  const status = async () => (await stage.running.ask({ ...ABOUT, headers })).status;
  for (let used = 0; used < 12; used += 1) {
    stage.advance(UI_TIMES.idleMs - 1);
    expect([used, await status()]).toEqual([used, 200]);
  }
  stage.advance(13);
  expect(await status()).toBe(401);
  const idle = stage.headersOf(await stage.open());
  stage.advance(UI_TIMES.idleMs + 1);
  expect((await stage.running.ask({ ...ABOUT, headers: idle })).status).toBe(401);
});

test('R47: closing ends the session and takes the cookie back', async () => {
  const stage = await startUiStage();
  const headers = [...stage.headersOf(await stage.open()), ownOrigin(stage), JSON_TYPE];
  const closed = await stage.running.ask({ target: '/svc/ui/api/close', headers, body: '{}' });
  expect(closed.headers.get('set-cookie')).toContain('Max-Age=0');
  expect((await stage.running.ask({ ...ABOUT, headers: headers.slice(0, 3) })).status).toBe(401);
});

test('R47, R3: a page of another origin is refused, with whatever it got hold of', async () => {
  const stage = await startUiStage();
  const credentials = stage.headersOf(await stage.open());
  const [cookie = '', secret = ''] = credentials;
  const foreign = [
    ['Origin: https://evil.example'],
    ['Origin: null'],
    [`Origin: http://127.0.0.1:${stage.running.port + 1}`],
    [`Origin: http://localhost:${stage.running.port}`],
    ['Sec-Fetch-Site: cross-site'],
    ['Sec-Fetch-Site: same-site'],
    ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site'],
  ];
  for (const headers of foreign) {
    for (const target of ['/svc/ui', '/svc/ui/app-ABCDEFGH.js', ABOUT.target]) {
      const asked = { method: 'GET', target, headers: [...headers, cookie, secret] };
      const { status } = await stage.running.ask(asked);
      expect([headers, target, status]).toEqual([headers, target, 403]);
    }
    const code = await stage.newCode();
    expect((await redeem(stage, code, [...headers, JSON_TYPE])).status).toBe(403);
  }
});

test('R47: a link elsewhere may lead a person to the page, never into a frame', async () => {
  const stage = await startUiStage();
  const from = (...more: string[]) =>
    stage.running.ask({
      method: 'GET',
      target: '/svc/ui',
      headers: ['Sec-Fetch-Site: cross-site', ...more],
    });
  const navigate = 'Sec-Fetch-Mode: navigate';
  expect((await from(navigate, 'Sec-Fetch-Dest: document')).status).toBe(200);
  expect((await from(navigate, 'Sec-Fetch-Dest: iframe')).status).toBe(403);
  expect((await from('Sec-Fetch-Mode: no-cors')).status).toBe(403);
});

test('R2, R47: a name that was rebound to this machine is refused', async () => {
  const stage = await startUiStage();
  const headers = stage.headersOf(await stage.open());
  const { port } = stage.running;
  for (const host of [
    `evil.example:${port}`,
    '127.0.0.1',
    `127.0.0.1:${port + 1}`,
    `x@127.0.0.1:${port}`,
  ]) {
    for (const target of ['/svc/ui', ABOUT.target]) {
      const asked = { method: 'GET', target, headers: [`Host: ${host}`, ...headers] };
      expect([host, (await stage.running.ask(asked)).status]).toEqual([host, 403]);
    }
  }
});

test('R47: a form cannot post, whatever it carries', async () => {
  const stage = await startUiStage();
  const credentials = stage.headersOf(await stage.open());
  const body = 'code=x';
  const types = [
    'application/x-www-form-urlencoded',
    'text/plain',
    'multipart/form-data; boundary=x',
  ];
  for (const type of types) {
    const headers = [...credentials, ownOrigin(stage), `Content-Type: ${type}`];
    const asked = { target: '/svc/ui/api/close', headers, body };
    expect([type, (await stage.running.ask(asked)).status]).toEqual([type, 415]);
  }
  const unnamed = { target: '/svc/ui/api/close', headers: [...credentials, JSON_TYPE], body: '{}' };
  expect((await stage.running.ask(unnamed)).status).toBe(403);
});

test('R47: the local token opens the link and nothing of the page; the session opens no other route', async () => {
  const stage = await startUiStage();
  const credentials = await stage.open();
  const headers = stage.headersOf(credentials);
  for (const token of [AUTHORIZED, `x-api-key: ${TOKEN}`, `x-svc-local-token: ${TOKEN}`]) {
    const alone = await stage.running.ask({ ...ABOUT, headers: [token] });
    const beside = await stage.running.ask({ ...ABOUT, headers: [...headers, token] });
    expect([token, alone.status, beside.status]).toEqual([token, 401, 401]);
  }
  const [cookie = '', secret = ''] = headers;
  const value = credentials.cookie.slice(credentials.cookie.indexOf('=') + 1);
  const routes = ['/v1/messages', '/v1/models', '/svc/open-requests', '/svc/ui-link'];
  for (const target of routes) {
    const method = target === '/v1/models' || target === '/svc/open-requests' ? 'GET' : 'POST';
    for (const one of [value, credentials.secret]) {
      const asked = { method, target, headers: [cookie, secret, `Authorization: Bearer ${one}`] };
      expect([target, (await stage.running.ask(asked)).status]).toEqual([target, 401]);
    }
    expect((await stage.running.ask({ method, target, headers: [cookie, secret] })).status).toBe(
      401,
    );
  }
  expect(stage.running.seen).toEqual([]);
});

test('R47: without the local token there is no link, and no page may ask for one', async () => {
  const stage = await startUiStage();
  const ask = (...headers: string[]) =>
    stage.running.ask({ target: '/svc/ui-link', headers: [...headers, JSON_TYPE], body: '{}' });
  expect((await ask()).status).toBe(401);
  expect((await ask('Authorization: Bearer svc_local_wrong')).status).toBe(401);
  expect((await ask(AUTHORIZED, ownOrigin(stage))).status).toBe(403);
  const byPath = { target: `/t/svc_path_x/svc/ui-link`, headers: [JSON_TYPE], body: '{}' };
  expect((await stage.running.ask(byPath)).status).toBe(401);
});

test('R47: every answer of the page forbids inline code, other hosts, frames and unsafe text', async () => {
  const stage = await startUiStage();
  for (const target of ['/svc/ui', '/svc/ui/app-ABCDEFGH.js', '/svc/ui/nothing', ABOUT.target]) {
    const { headers } = await stage.running.ask({ method: 'GET', target, headers: [] });
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("require-trusted-types-for 'script'; trusted-types 'none'");
    expect(policy).not.toContain('unsafe');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  }
});

test('the page has its hashed files and no other file', async () => {
  const stage = await startUiStage();
  const get = (target: string) => stage.running.ask({ method: 'GET', target, headers: [] });
  const shell = await get('/svc/ui');
  expect(shell.body).toContain('src="/svc/ui/app-ABCDEFGH.js"');
  expect(shell.body).not.toMatch(/<script>|<style|style=|onload/);
  expect(shell.headers.get('cache-control')).toBe('no-store');
  expect((await get('/svc/ui/app-ABCDEFGH.js')).headers.get('cache-control')).toContain(
    'immutable',
  );
  for (const path of [
    'secret.txt',
    '../package.json',
    '..%2fsecret.txt',
    'app-ZZZZZZZZ.js',
    '%61pp-ABCDEFGH.js',
  ]) {
    expect([path, (await get(`/svc/ui/${path}`)).status]).toEqual([path, 404]);
  }
});

test('a body that is too long or no JSON is refused, and other methods are', async () => {
  const stage = await startUiStage();
  const headers = [...stage.headersOf(await stage.open()), ownOrigin(stage), JSON_TYPE];
  const close = { target: '/svc/ui/api/close', headers };
  expect((await stage.running.ask({ ...close, body: 'x'.repeat((512 << 10) + 1) })).status).toBe(
    413,
  );
  expect((await stage.running.ask({ ...close, body: '{' })).status).toBe(400);
  expect((await stage.running.ask({ ...close, method: 'PUT', body: '{}' })).status).toBe(405);
  expect(
    (await stage.running.ask({ method: 'OPTIONS', target: ABOUT.target, headers })).status,
  ).toBe(405);
});

test('only the page itself is at the page’s address', () => {
  expect(['/svc/ui', '/svc/ui/', '/svc/ui?x', '/svc/ui/api/now'].map(isUiTarget)).toEqual([
    true,
    true,
    true,
    true,
  ]);
  expect(['/svc/ui-link', '/svc/uix', '/svc', '/v1/messages'].map(isUiTarget)).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

async function openStream(stage: UiStage, headers: readonly string[]) {
  const lines = [`Host: 127.0.0.1:${stage.running.port}`, ...headers].join('\r\n');
  const socket = await openSocket(stage.running.port);
  const stream = { heard: '', isClosed: false };
  socket.on('data', (chunk: Buffer) => (stream.heard += chunk.toString()));
  socket.on('close', () => (stream.isClosed = true));
  socket.write(`GET /svc/ui/api/events HTTP/1.1\r\n${lines}\r\nConnection: close\r\n\r\n`);
  await expect.poll(() => stream.heard).toContain('\r\n\r\n');
  return stream;
}

const REQUEST = { soFar: () => ({ id: 'req_1', end: 'open' }) as never };

test('an open page hears of requests, and the proxy stops although it is open', async () => {
  const stage = await startUiStage();
  const stream = await openStream(stage, stage.headersOf(await stage.open()));
  stage.inFlight.add(REQUEST);
  await expect.poll(() => stream.heard).toContain('"open":[{"id":"req_1"');
  const from = performance.now();
  stage.door.close();
  await stage.running.server.stop(20_000);
  expect(performance.now() - from).toBeLessThan(10_000);
});

test('R47: a stream ends with its session, and is refused without one', async () => {
  const stage = await startUiStage();
  const refused = await openStream(stage, ['Sec-Fetch-Site: same-origin']);
  expect(refused.heard).toContain('HTTP/1.1 401');
  const stream = await openStream(stage, stage.headersOf(await stage.open()));
  stage.advance(UI_TIMES.idleMs + 1);
  stage.inFlight.add(REQUEST);
  await expect.poll(() => stream.isClosed).toBe(true);
  expect(stream.heard).not.toContain('req_1');
});
