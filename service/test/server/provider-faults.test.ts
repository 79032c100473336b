import { describe, expect, test } from 'vitest';
import type { Socket } from 'node:net';
import { makeCertificate } from '../../../test/support/certificate.ts';
import { DIALECTS, PATHS, promptOf } from '../../../test/support/dialect-wire.ts';
import type { TestServiceOptions } from '../support/memory-service.ts';
import {
  errorIn,
  HOST,
  type ModelService,
  openModelService,
  providerCertificate,
  receiptIn,
} from '../support/model-service.ts';
import { exchange, openSocket } from '../../../test/support/raw-http.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  type Provider,
  type SeenRequest,
  startProvider,
  STREAM_HEAD,
  until,
} from '../../../test/support/sockets.ts';
import type { Dialect } from '../../../src/core/conversation/view.ts';

/**
 * Everything that can go wrong at a provider, on the model routes of a service: a documented answer in
 * the dialect, a receipt with the outcome, one attempt, and the next request is served.
 */

const LOOPBACK = { address: '127.0.0.1', family: 4 };

interface Stage extends ModelService {
  readonly faulty: Provider;
  readonly key: string;
}

/** A service whose one provider is written on bare sockets. */
async function open(
  dialect: Dialect,
  answer: (request: SeenRequest) => void,
  options: TestServiceOptions & { readonly certificate?: ReturnType<typeof makeCertificate> } = {},
): Promise<Stage> {
  const { certificate = providerCertificate(), ...more } = options;
  const faulty = await startProvider(answer, certificate);
  const egress = { ports: [faulty.port], allow: ['127.0.0.0/8'] };
  const stage = await openModelService({ egress, ...more });
  await stage.addProvider(dialect, { base_url: `https://${HOST}:${faulty.port}` });
  return { ...stage, faulty, key: await stage.makeKey() };
}

function ask(stage: Stage, dialect: Dialect, extra: object = {}) {
  return stage.send(dialect, promptOf(dialect, 'Hello', { ...extra }), { key: stage.key });
}

const WELL = (socket: SeenRequest['socket']) =>
  socket.write(`${head('200 OK', 'Content-Type: application/json', 'Content-Length: 2')}{}`);

/** The first answer of the provider is the fault, the later ones are well. */
function once(fault: (request: SeenRequest) => void): (request: SeenRequest) => void {
  let asked = 0;
  return (request) => {
    asked += 1;
    if (asked === 1) fault(request);
    else WELL(request.socket);
  };
}

const TYPES: Readonly<Record<Dialect, readonly [string, string]>> = {
  anthropic_messages: ['api_error', 'timeout_error'],
  openai_responses: ['api_error', 'api_error'],
  openai_chat_completions: ['api_error', 'api_error'],
};

function typeIn(body: Buffer): unknown {
  return (JSON.parse(body.toString()) as { error: { type: string } }).error.type;
}

describe.each(DIALECTS)('%s', (dialect) => {
  test.each([
    ['resets the connection before a head', ({ socket }: SeenRequest) => socket.destroy()],
    ['ends the connection before a head', ({ socket }: SeenRequest) => socket.end()],
    ['answers in no HTTP', ({ socket }: SeenRequest) => socket.end('SSH-2.0-CANARY\r\n\r\n')],
    [
      'breaks off in its head',
      ({ socket }: SeenRequest) => socket.end('HTTP/1.1 200 OK\r\nx-half: CANARY'),
    ],
  ])('a provider that %s: 502, once, and a receipt', async (_, fault) => {
    const stage = await open(dialect, once(fault));
    const answer = await ask(stage, dialect);
    expect([answer.status, errorIn(answer).code, typeIn(answer.body)]).toEqual([
      502,
      'PROVIDER_UNREACHABLE',
      TYPES[dialect][0],
    ]);
    expect(answer.headers).toMatchObject({
      'x-should-retry': 'true',
      'x-svc-error-source': 'service',
    });
    expect(answer.body.toString()).not.toContain('CANARY');
    expect(stage.faulty.requests).toHaveLength(1);
    expect(await receiptIn(stage, errorIn(answer).receipt)).toMatchObject({
      status: 'upstream_error',
      http_status: 502,
      error_code: 'PROVIDER_UNREACHABLE',
      error_source: 'service',
      upstream_status: null,
      provider_kind: 'custom',
    });
    expect((await ask(stage, dialect)).status).toBe(200);
  });

  test.each([
    ['after the head of a stream', STREAM_HEAD, ''],
    ['in the middle of a stream', STREAM_HEAD, chunk('event: ping\ndata: {"type":"ping"}\n\n')],
    [
      'in the middle of a counted body',
      head('200 OK', 'Content-Type: application/json', 'Content-Length: 4000'),
      '{"id":"a",',
    ],
  ])('an answer that is cut %s breaks off at the client, too', async (_, start, part) => {
    const fault = ({ socket }: SeenRequest): void => {
      socket.write(start);
      socket.write(part, () => setTimeout(() => socket.destroy(), 50));
    };
    const stage = await open(dialect, once(fault));
    const answer = await ask(stage, dialect, { stream: true });
    expect([answer.status, answer.isCut]).toEqual([200, true]);
    const sent = typeof part === 'string' ? part : 'event: ping\ndata: {"type":"ping"}\n\n';
    expect(answer.body.toString()).toBe(sent);
    expect(await receiptIn(stage, answer.headers['x-svc-receipt-id'])).toMatchObject({
      status: 'upstream_interrupted',
      http_status: 200,
      upstream_status: 200,
      error_source: 'provider',
    });
    expect(stage.faulty.requests).toHaveLength(1);
    expect((await ask(stage, dialect)).status).toBe(200);
  });

  test('a provider that sends no head in time: 504, and its connection is closed', async () => {
    const stage = await open(dialect, () => undefined, { providerHeadersMs: 1000 });
    const answer = await ask(stage, dialect);
    expect([answer.status, errorIn(answer).code, typeIn(answer.body)]).toEqual([
      504,
      'PROVIDER_TIMEOUT',
      TYPES[dialect][1],
    ]);
    expect(answer.headers['x-should-retry']).toBe('true');
    expect(await receiptIn(stage, errorIn(answer).receipt)).toMatchObject({
      status: 'upstream_error',
      http_status: 504,
      error_code: 'PROVIDER_TIMEOUT',
    });
    await until(() => stage.faulty.connections.every(({ destroyed }) => destroyed));
  });

  test('a stream that stalls is waited for; a client that leaves ends it at the provider', async () => {
    const first = 'data: {"a":1}\n\n';
    const fault = ({ socket }: SeenRequest): void => {
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(first)]));
      // Longer than any limit of the provider's head.
      setTimeout(() => socket.write(Buffer.concat([chunk(first), Buffer.from(LAST_CHUNK)])), 2500);
    };
    const stage = await open(dialect, once(fault), { providerHeadersMs: 1000 });
    const answer = await ask(stage, dialect, { stream: true });
    expect([answer.isCut, answer.body.toString()]).toEqual([false, first.repeat(2)]);

    const stalled = await open(dialect, ({ socket }) => {
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(first)]));
    });
    const client = await openSocket(stalled.port);
    const body = JSON.stringify(promptOf(dialect, 'Hello', { stream: true }));
    let said = '';
    client.on('data', (bytes: Buffer) => (said += bytes.toString()));
    client.write(
      [
        `POST ${PATHS[dialect]} HTTP/1.1`,
        'Host: svc',
        `Authorization: Bearer ${stalled.key}`,
        'Content-Type: application/json',
        `Content-Length: ${Buffer.byteLength(body)}`,
        '',
        body,
      ].join('\r\n'),
    );
    await until(() => said.includes('"a"'));
    client.destroy();
    // undici opens another connection at once, for the next request; nothing is asked over it.
    const isOver = ({ destroyed, bytesRead }: Socket) => destroyed || bytesRead === 0;
    await until(() => stalled.faulty.connections.every(isOver));
    const id = /x-svc-receipt-id: (\S+)/i.exec(said)?.[1];
    expect(await receiptIn(stalled, id)).toMatchObject({
      status: 'client_aborted',
      error_code: null,
      error_source: null,
    });
  });

  test.each([400, 401, 403, 413, 429, 500, 503, 529])(
    'status %i of a provider passes with its body, and is told as its own',
    async (status) => {
      const body = '{"error":{"message":"theirs"}}';
      const lines = [
        'Content-Type: application/json',
        'Retry-After: 7',
        'x-ratelimit-remaining: 0',
        `Content-Length: ${body.length}`,
      ];
      const stage = await open(dialect, ({ socket }) => {
        socket.write(`${head(`${status} Theirs`, ...lines)}${body}`);
      });
      const answer = await ask(stage, dialect);
      expect([answer.status, answer.body.toString()]).toEqual([status, body]);
      expect(answer.headers).toMatchObject({
        'x-svc-error-source': 'provider',
        'retry-after': '7',
      });
      expect(answer.headers['x-svc-error-code']).toBe(undefined);
      expect(await receiptIn(stage, answer.headers['x-svc-receipt-id'])).toMatchObject({
        status: 'upstream_error',
        http_status: status,
        upstream_status: status,
        error_code: null,
        error_source: 'provider',
      });
      expect(stage.faulty.requests).toHaveLength(1);
    },
  );

  test.each([301, 302, 303, 307, 308])(
    'a redirect with %i is followed by nobody: the client is not told where to',
    async (status) => {
      const stage = await open(dialect, ({ socket, line }) => {
        if (line.includes('stolen')) throw new Error('The redirect was followed.');
        const place = `Location: https://${HOST}/stolen`;
        socket.write(head(`${status} Elsewhere`, place, 'Content-Length: 0'));
      });
      const answer = await ask(stage, dialect);
      expect([answer.status, answer.headers.location]).toEqual([status, undefined]);
      expect(answer.headers['x-svc-error-source']).toBe('provider');
      expect(await receiptIn(stage, answer.headers['x-svc-receipt-id'])).toMatchObject({
        status: 'upstream_error',
        http_status: status,
        error_source: 'provider',
      });
      expect(stage.faulty.requests).toHaveLength(1);
    },
  );
});

const STYLE = 'anthropic_messages';

test.each([
  ['of another name', makeCertificate('other.provider.test')],
  ['that nobody trusts', makeCertificate(HOST)],
])('R17: a provider with a certificate %s gets no byte of a request', async (_, certificate) => {
  const isNamed = certificate.cert !== '';
  expect(isNamed).toBe(true);
  const stage = await open(STYLE, ({ socket }) => WELL(socket), { certificate });
  const answer = await ask(stage, STYLE);
  expect([answer.status, errorIn(answer).code]).toEqual([502, 'PROVIDER_UNREACHABLE']);
  expect(stage.faulty.requests).toEqual([]);
  expect(await receiptIn(stage, errorIn(answer).receipt)).toMatchObject({
    status: 'upstream_error',
    error_code: 'PROVIDER_UNREACHABLE',
  });
});

test.each([
  ['a public and a private address', ['93.184.216.34', '10.0.0.1']],
  ['a public address and one of this machine', ['93.184.216.34', '127.0.0.1']],
  ['the address of a metadata service', ['169.254.169.254']],
  ['a mapped address', ['::ffff:127.0.0.1']],
])('R35: a name with %s is not dialled at all', async (_, addresses) => {
  const { cert } = providerCertificate();
  const faulty = await startProvider(({ socket }) => WELL(socket), providerCertificate());
  const stage = await openModelService({
    trust: {
      ca: cert,
      resolve: (_name, done) =>
        done(
          null,
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        ),
    },
    egress: { ports: [faulty.port], allow: [] },
  });
  await stage.addProvider(STYLE, { base_url: `https://${HOST}:${faulty.port}` });
  const answer = await ask({ ...stage, faulty, key: await stage.makeKey() }, STYLE);
  expect([answer.status, errorIn(answer).code]).toEqual([502, 'PROVIDER_ADDRESS_REFUSED']);
  expect(answer.headers['x-should-retry']).toBe('false');
  expect(faulty.connections).toEqual([]);
  expect(await receiptIn(stage, errorIn(answer).receipt)).toMatchObject({
    status: 'upstream_error',
    http_status: 502,
    error_code: 'PROVIDER_ADDRESS_REFUSED',
  });
});

test('R35: a name that leads elsewhere after its first answer is refused when it is dialled again', async () => {
  const { cert } = providerCertificate();
  let looked = 0;
  const stage = await open(
    STYLE,
    ({ socket }) => socket.end(`${head('200 OK', 'Connection: close', 'Content-Length: 2')}{}`),
    {
      trust: {
        ca: cert,
        resolve: (_name, done) => {
          looked += 1;
          done(null, [looked === 1 ? LOOPBACK : { address: '169.254.169.254', family: 4 }]);
        },
      },
    },
  );
  expect((await ask(stage, STYLE)).status).toBe(200);
  const answer = await ask(stage, STYLE);
  expect([answer.status, errorIn(answer).code]).toEqual([502, 'PROVIDER_ADDRESS_REFUSED']);
  expect(stage.faulty.connections).toHaveLength(1);
});

test('R35: the address that a socket reached is looked at, whatever the resolver said', async () => {
  const { cert } = providerCertificate();
  // A hosts file or a rule of the network that sends a public address to this machine.
  const stage = await open(STYLE, ({ socket }) => WELL(socket), {
    trust: { ca: cert, resolve: (_name, done) => done(null, [{ address: '0.0.0.0', family: 4 }]) },
  });
  const answer = await ask(stage, STYLE);
  expect([answer.status, errorIn(answer).code]).toEqual([502, 'PROVIDER_ADDRESS_REFUSED']);
  expect(stage.faulty.requests).toEqual([]);
});

test('a pipelined second request is served after the first, each with a receipt', async () => {
  const stage = await open(STYLE, ({ socket }) => WELL(socket));
  const body = JSON.stringify(promptOf(STYLE, 'Hello'));
  const request = [
    `POST ${PATHS[STYLE]} HTTP/1.1`,
    'Host: svc',
    `Authorization: Bearer ${stage.key}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n');
  const last = request.replace('Host: svc', 'Host: svc\r\nConnection: close');
  const said = await exchange(stage.port, request + last);
  const ids = [...said.matchAll(/x-svc-receipt-id: (\S+)/gi)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(2);
  for (const id of ids) {
    // oxlint-disable-next-line no-await-in-loop
    expect(await receiptIn(stage, id)).toMatchObject({ status: 'completed' });
  }
});
