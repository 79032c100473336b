import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DIALECTS, PATHS, promptOf } from '../../../test/support/dialect-wire.ts';
import { callService } from '../support/memory-service.ts';
import {
  consoleOf,
  initModelHome,
  type ModelHome,
  providerBody,
} from '../support/model-process.ts';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { formsOf, type Planted, secretsBelow, secretsIn } from '../support/secret-search.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { ask, type ClientAnswer, until } from '../../../test/support/sockets.ts';

/**
 * R29, R38: secrets of a service that works: no file, no log, no answer, no receipt, no event, no
 * metric and no process title has one, but for the one answer that shows it once.
 */

/** With characters that JSON, URLs and forms write in another way. */
const plant = (): Record<string, string> => ({
  'provider key': 'CANARY-91"c2\\/+=&%7x~kq',
  'provider key in a known form': `sk-ant-api03-${'CANARYq7'.repeat(11)}AA`,
  'new provider key': 'CANARY-new-0f"3b\\z+=&',
  'header value': 'CANARY-header-5521"x',
  'query value': 'CANARY-query-77+k&=',
  'mistyped key': `svc_live_CANARYmisTyp_${'x'.repeat(43)}_0000000`,
});

/** A text that is no secret: a search that does not find it would find nothing. */
const CONTROL = 'Where are the lockers of the northern harbour?';

const NAMES = { anthropic_messages: 'a', openai_responses: 'b', openai_chat_completions: 'c' };

interface Opened {
  readonly place: ModelHome;
  /** Where files of it are, beside its home. */
  readonly folders: readonly string[];
  readonly commands: readonly (readonly string[])[];
}

function law(open: () => Promise<Opened>): void {
  const title =
    'R29: after traffic, errors, operations, rotations, a crash and a recovery no secret is anywhere';
  test(title, { timeout: 300_000 }, async () => {
    const { place, folders, commands } = await open();
    const { provider, home } = place;
    const planted = plant();
    planted['token of the first operator'] = place.token;
    const found = (what = planted) =>
      [home, ...folders].flatMap((folder) => secretsBelow(folder, what));
    const said: string[] = [];
    const service = await place.start('--log', 'json', '--metrics', '127.0.0.1:0');
    const titles = [titleOf(service)];
    const keys = await setUp(place, service, { planted, said });
    const talk = { keys, planted, said };
    await traffic(place, service, talk);
    await operate(place, service, talk);
    said.push(await metricsOf(service));
    titles.push(titleOf(service));
    expect(found()).toEqual([]);
    expect(found({ CONTROL })).not.toEqual([]);

    provider.reply = () => ({ status: 200, headers: {}, body: 'half', hangs: true });
    const before = provider.seen.length;
    const cut = send(service, ['openai_responses', keys.main]).catch(() => undefined);
    await until(() => provider.seen.length > before);
    await service.end('SIGKILL');
    await cut;
    expect(found()).toEqual([]);

    for (const words of commands) {
      // oxlint-disable-next-line no-await-in-loop
      const ran = await place.svc(...words.map((word) => word.replace('HOME', home)));
      // `doctor` names what is not as it should be.
      const codes = words[0] === 'doctor' ? [0, 1] : [0];
      expect(codes, `${words.join(' ')}: ${ran.stderr}`).toContain(ran.code);
      said.push(ran.stdout, ran.stderr);
    }
    const again = await place.start('--log', 'text');
    said.push((await callService(again.url, '/health')).text);
    expect(await again.end('SIGTERM')).toBe(0);
    for (const one of [service, again]) said.push(one.stdout(), one.stderr());
    expect(found()).toEqual([]);
    expect(secretsIn(Buffer.from([...said, ...titles].join('\n')), planted)).toEqual([]);
    const reached = JSON.stringify(provider.seen.map(({ path, headers }) => [path, headers]));
    expect(secretsIn(Buffer.from(reached), keysIn(planted))).toEqual([]);
  });
}

describe('on SQLite', () => {
  law(async () => {
    const commands = [...COMMANDS, ['backup', 'HOME/backup.db']];
    return { place: await initModelHome(), folders: [], commands };
  });
});

describe.skipIf(missingPostgres() !== undefined)('on PostgreSQL', () => {
  const stores = postgresStores();
  law(async () => {
    const place = await initModelHome(await stores.server().newDatabase());
    return { place, folders: [stores.server().folder], commands: COMMANDS };
  });
});

test('the search finds a secret in each form, and at each place in base64', () => {
  const secret = 'CANARY-91"c2\\/+=&%7x~kq';
  for (const { name, bytes } of formsOf(secret)) {
    expect([name, secretsIn(bytes, { secret }).length]).not.toEqual([name, 0]);
  }
  for (const before of ['', 'a', 'ab', 'abc']) {
    const packed = Buffer.from(`${before}${secret} and more`).toString('base64');
    expect(secretsIn(Buffer.from(packed), { secret })).not.toEqual([]);
  }
  expect(secretsIn(Buffer.from('CANARY'), { secret })).toEqual([]);
});

const COMMANDS: readonly (readonly string[])[] = [
  ['receipts', 'recover', '--json'],
  ['receipts', 'list', '--json'],
  ['receipts', 'export', 'HOME/export'],
  ['receipts', 'archive', 'HOME/archive', '--older-than', '1d'],
  ['audit', '--json', '--limit', '100'],
  ['keys', 'list', '--json'],
  ['admins', 'list', '--json'],
  ['providers', 'list', '--json'],
  ['providers', 'show', 'a'],
  ['vault', 'status', '--json'],
  ['vault', 'add'],
  ['vault', 'rotate'],
  ['vault', 'verify', '--json'],
  ['signing', 'rotate'],
  ['usage', '--json'],
  ['doctor', '--json'],
  ['items', 'list', '--json'],
];

interface Keys {
  readonly main: string;
  readonly other: string;
  readonly otherId: string;
}

/** Providers of all dialects, with every place in which a secret may stand; keys and admins. */
async function setUp(
  place: ModelHome,
  service: ServiceProcess,
  { planted, said }: Omit<Talk, 'keys'>,
): Promise<Keys> {
  const console = consoleOf(service, place.token);
  for (const dialect of DIALECTS) {
    const more = {
      name: NAMES[dialect],
      credential:
        planted[dialect === 'openai_responses' ? 'provider key in a known form' : 'provider key'],
      custom_headers: [
        { name: 'x-extra', value: `${planted['header value']} $API_KEY` },
        { name: 'x-team', value: 'api' },
      ],
      custom_query: [{ name: 'sig', value: `${planted['query value']}$API_KEY` }],
    };
    // oxlint-disable-next-line no-await-in-loop
    const made = await console('POST providers', providerBody(dialect, place.baseUrl, more));
    said.push(made.text);
  }
  const keys: Record<string, string> = {};
  for (const name of ['main', 'other'] as const) {
    const scopes = ['read', 'write', 'receipt:read'];
    // oxlint-disable-next-line no-await-in-loop -- This answer shows the key: it is not kept.
    const { json } = await console('POST keys', { name, scopes });
    planted[`live key ${name}`] = keys[name] = String(json.secret);
    keys[`${name}Id`] = String(json.key_id);
  }
  for (const role of ['operator', 'admin', 'viewer']) {
    // oxlint-disable-next-line no-await-in-loop
    const { json } = await console('POST admins', { name: role, role });
    planted[`token of an ${role}`] = String(json.token);
  }
  const { main = '', other = '', otherId = '' } = keys;
  return { main, other, otherId };
}

interface Talk {
  readonly keys: Keys;
  /** Grows with each secret that the service makes. */
  readonly planted: Record<string, string>;
  /** Everything that it answered, but for answers that show a secret once. */
  readonly said: string[];
}

async function traffic(
  { provider }: ModelHome,
  service: ServiceProcess,
  { keys, planted, said }: Talk,
): Promise<void> {
  const { reply } = provider;
  const known = planted['provider key in a known form'];
  for (const dialect of DIALECTS) {
    const from: From = [dialect, keys.main];
    const tell = async (who: From, more?: Said): Promise<void> => {
      said.push(textOf(await send(service, who, more)));
    };
    /* oxlint-disable no-await-in-loop */
    for (const stream of [true, false]) await tell(from, { stream });
    // A person who pastes keys, and a caller who puts one where a name belongs.
    await tell(from, { text: `My keys are ${keys.main} and ${known}.` });
    await tell(from, { model: keys.other });
    await tell(from, { headers: { 'x-svc-memory-mode': keys.other } });
    await tell([dialect, planted['mistyped key'] ?? '']);
    await tell([dialect, planted['token of an admin'] ?? '']);
    for (const status of [401, 429, 500, 529]) {
      provider.reply = () => ({ status, headers: {}, body: '{"error":{"message":"no"}}' });
      await tell(from);
    }
    // This provider tells the credential itself; its own answer is not svc's to change.
    provider.reply = (request) => echo(request.headers);
    await send(service, from);
    provider.reply = () => ({ status: 200, headers: {}, body: '{"half', cutAfter: 3 });
    await tell(from);
    provider.reply = reply;
    /* oxlint-enable no-await-in-loop */
  }
}

/** Says the credential in a header and where the name of a model belongs. */
function echo(headers: readonly string[]) {
  const at = headers.findIndex((name) => /^(?:authorization|x-api-key)$/i.test(name));
  const credential = (headers[at + 1] ?? '').replace('Bearer ', '');
  return {
    status: 200,
    headers: { 'content-type': 'application/json', 'x-request-id': credential },
    body: JSON.stringify({ id: credential, model: credential, usage: { note: credential } }),
  };
}

async function operate(
  place: ModelHome,
  service: ServiceProcess,
  { keys, planted, said }: Talk,
): Promise<void> {
  const console = consoleOf(service, place.token);
  const { json: providers } = await console('GET providers');
  const { provider_id: id, version } = providers.data[0];
  const changed = await console(`PATCH providers/${id}`, {
    version,
    credential: planted['new provider key'],
  });
  said.push(changed.text);
  for (const call of [`POST providers/${id}/models`, `POST providers/${id}/test`]) {
    // oxlint-disable-next-line no-await-in-loop
    said.push((await console(call, {})).text);
  }
  const rotated = await callService(service.url, `/v1/svc/console/keys/${keys.otherId}/rotate`, {
    key: place.token,
    body: { grace_seconds: 60 },
  });
  planted['rotated live key'] = String(rotated.json.secret);
  const wrong = await callService(service.url, '/v1/svc/console/providers', {
    key: place.token,
    body: {
      ...providerBody('openai_responses', `https://${planted['new provider key']}`),
      name: 'w',
    },
  });
  said.push(wrong.text);
  for (const path of [
    'requests?limit=100',
    'memory/items',
    'memory/sources?space=default',
    'whoami',
  ]) {
    // oxlint-disable-next-line no-await-in-loop
    said.push((await callService(service.url, `/v1/svc/${path}`, { key: keys.main })).text);
  }
  for (const path of [
    'audit',
    'keys',
    'admins',
    'providers',
    'vault',
    'signing',
    'status',
    'usage',
  ]) {
    // oxlint-disable-next-line no-await-in-loop
    said.push((await console(`GET ${path}`)).text);
  }
}

interface Said {
  readonly stream?: boolean;
  readonly model?: string;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

type From = readonly [dialect: (typeof DIALECTS)[number], key: string];

function send(
  { port }: ServiceProcess,
  [dialect, key]: From,
  { text = CONTROL, headers = {}, ...more }: Said = {},
): Promise<ClientAnswer> {
  const own = ['authorization', `Bearer ${key}`, 'content-type', 'application/json'];
  return ask(port, {
    path: PATHS[dialect],
    headers: [...own, ...Object.entries(headers).flat()],
    body: Buffer.from(JSON.stringify(promptOf(dialect, text, { model: 'm', ...more }))),
  });
}

function textOf({ rawHeaders, body }: ClientAnswer): string {
  return [...rawHeaders, body.toString()].join('\n');
}

/** What `ps` shows of it. */
function titleOf({ child }: ServiceProcess): string {
  const folder = `/proc/${child.pid}`;
  return ['cmdline', 'comm'].map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
}

/** Only a service's own secrets: the credential must reach its provider. */
function keysIn(planted: Planted): Planted {
  const own = Object.entries(planted).filter(([name]) => /live key|token|mistyped/.test(name));
  return Object.fromEntries(own);
}

async function metricsOf({ stdout }: ServiceProcess): Promise<string> {
  const { metricsPort } = JSON.parse(stdout().split('\n')[0] ?? '') as { metricsPort: number };
  return new Promise((resolve, reject) => {
    const asked = httpRequest(
      { host: '127.0.0.1', port: metricsPort, path: '/metrics', agent: false },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => (text += part));
        answer.on('end', () => resolve(text));
      },
    );
    asked.on('error', reject).end();
  });
}
