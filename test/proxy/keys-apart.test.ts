import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { answerTo, DIALECTS, promptOf } from '../support/dialect-wire.ts';
import { TOKEN } from '../support/local-server.ts';
import { PROVIDER_KEY, startRecordingProvider, startStory } from '../support/story.ts';

const PROMPT = 'The staging database of the walrus shop listens on port 6431.';

/** What a client might send along, and no provider may see. */
const PRIVATE_HEADERS = {
  Cookie: 'session=CANARY-cookie',
  'X-Forwarded-For': 'CANARY-forwarded',
  X_Forwarded_For: 'CANARY-underscores',
  Referer: 'http://CANARY-referer/',
  'Proxy-Authorization': 'Basic CANARY-proxy',
  'Api-Key': 'CANARY-api-key',
  'X-Svc-Memory-Space': 'canary-space',
  'X-Svc-Anything': 'CANARY-svc',
  Connection: 'keep-alive, X-Nominated',
  'X-Nominated': 'CANARY-nominated',
};

// spec: 2.4-local-token, 2.4-provider-key, 1.6-provider-direct, 1.7-key-stays-local, 5.5-provider-auth-last, 5.5-headers-removed, 5.7-local-token, 5.7-provider-key-upstream
test.each(DIALECTS)(
  'R14, R29: %s: each key is where it belongs and nowhere else',
  async (dialect) => {
    const provider = await startRecordingProvider();
    const story = await startStory({ provider });
    const answers = [
      await story.send(dialect, promptOf(dialect, PROMPT), PRIVATE_HEADERS),
      await story.send(
        dialect,
        promptOf(dialect, 'Which port has the walrus database?'),
        PRIVATE_HEADERS,
      ),
      await story.send(dialect, '{"not": json', PRIVATE_HEADERS),
      await story.send(dialect, promptOf(dialect, PROMPT), { 'x-svc-memory-mode': 'no' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 422]);
    await story.settled();
    expect(provider.seen).toHaveLength(3);
    for (const { headers, body } of provider.seen) {
      const sent = `${headers.join('\n')}\n${body.toString('latin1')}`;
      expect(sent).not.toContain(TOKEN);
      expect(sent).not.toMatch(/CANARY-(?!5d1f)|x-svc-|canary-space/i);
      expect(sent.split(PROVIDER_KEY)).toHaveLength(2);
      const name = dialect === 'anthropic_messages' ? 'x-api-key' : 'authorization';
      const names = headers.filter((_, at) => at % 2 === 0).map((one) => one.toLowerCase());
      expect(
        names.filter((one) => ['x-api-key', 'authorization', 'api-key'].includes(one)),
      ).toEqual([name]);
    }
    for (const { rawHeaders, body } of answers) {
      const got = `${rawHeaders.join('\n')}\n${body.toString('latin1')}`;
      expect(got).not.toContain(PROVIDER_KEY);
      expect(got).not.toContain(TOKEN);
    }
    expect(JSON.stringify([story.rows, story.lines])).not.toMatch(/CANARY|svc_local_|walrus/);
    await story.stop();
    for (const name of readdirSync(story.folder)) {
      const bytes = readFileSync(join(story.folder, name)).toString('latin1');
      expect(bytes).not.toContain(PROVIDER_KEY);
      expect(bytes).not.toContain(TOKEN);
      expect(bytes).not.toContain('CANARY');
    }
  },
);

test('R15: what a provider says in the name of svc, or sets for a browser, does not reach the client', async () => {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider });
  provider.reply = (request) => {
    const reply = answerTo(request);
    const extra = {
      'x-svc-memory-state': 'CANARY',
      'X-Svc-Whatever': 'CANARY',
      'set-cookie': 'a=CANARY',
      'access-control-allow-origin': '*',
      'alt-svc': 'h3=":443"',
      'request-id': 'req_provider',
      'anthropic-ratelimit-requests-remaining': '7',
      'x-should-retry': 'true',
    };
    return { ...reply, headers: { ...reply.headers, ...extra } };
  };
  const { headers, rawHeaders } = await story.send(
    'anthropic_messages',
    promptOf('anthropic_messages', PROMPT),
  );
  expect(rawHeaders.join('\n')).not.toContain('CANARY');
  expect(Object.keys(headers)).not.toContain('access-control-allow-origin');
  expect(headers).toMatchObject({
    'x-svc-memory-state': 'empty',
    'request-id': 'req_provider',
    'anthropic-ratelimit-requests-remaining': '7',
    'x-should-retry': 'true',
    'x-content-type-options': 'nosniff',
  });
});

test('R29: an upstream that cannot be reached is said without its address, key or prompt', async () => {
  const provider = await startRecordingProvider();
  const nowhere = { ...provider, url: 'http://127.0.0.1:9' };
  const story = await startStory({ provider: nowhere });
  const answer = await story.send('anthropic_messages', promptOf('anthropic_messages', PROMPT));
  expect(answer.status).toBe(502);
  expect(answer.headers).toMatchObject({
    'x-svc-error-source': 'proxy',
    'x-svc-memory-state': 'empty',
    'x-svc-continuity-state': 'not_needed',
  });
  const got = `${answer.rawHeaders.join('\n')}\n${answer.body.toString()}`;
  expect(got).not.toMatch(/127\.0\.0\.1|walrus|CANARY/);
  expect(story.rows[0]).toMatchObject({ status: 502, end: 'UPSTREAM_UNREACHABLE' });
});

// spec: 1.7-no-receipts
test('a request leaves one row, without a text or a key, and it can be read again', async () => {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider });
  const answer = await story.send(
    'openai_responses',
    promptOf('openai_responses', PROMPT, { stream: true }),
  );
  await story.send('openai_responses', '{"not": json');
  await story.stop();
  const store = openEmbeddedStore({ folder: story.folder, report: () => {} });
  const rows = await store.requestLog.list({ limit: 10 });
  await store.close();
  expect(rows).toHaveLength(2);
  expect(rows.at(-1)).toMatchObject({
    id: answer.headers['x-svc-request-id'],
    dialect: 'openai_responses',
    status: 200,
    end: 'complete',
    memoryState: 'empty',
    usage: { input: 7, output: 3 },
  });
  expect(JSON.stringify(rows)).not.toContain('walrus');
});
