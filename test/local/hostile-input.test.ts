import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { createBodyDecoder, hasNativeZstd } from '../../src/adapters/encoding/body-decoder.ts';
import { ProxyError } from '../../src/core/errors.ts';
import { answerTo, requestWith, said } from '../support/dialect-wire.ts';
import { decoded, hostile } from '../support/hostile.ts';
import { TOKEN } from '../support/local-server.ts';
import { exchange, openSocket, parseAnswer } from '../support/raw-http.ts';
import { pause, startSocketProvider } from '../support/sockets.ts';
import { startRecordingProvider, startStory, type Story } from '../support/story.ts';

/** Collections of input that has broken other programs, against the whole proxy over real sockets. */

/** An answer that is due comes at once; a request that is never whole gets none. */
const ANSWER_MS = 300;

async function startBoth() {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider });
  return { provider, story };
}

async function expectAlive(story: Story): Promise<void> {
  const body = requestWith('anthropic_messages', [said('user', 'Are you there?')]);
  expect((await story.send('anthropic_messages', body)).status).toBe(200);
}

async function statusesOf(port: number, requests: readonly Buffer[]): Promise<number[]> {
  const statuses: number[] = [];
  for (let at = 0; at < requests.length; at += 16) {
    const some = requests.slice(at, at + 16);
    const texts = await Promise.all(some.map((bytes) => exchange(port, bytes, ANSWER_MS)));
    for (const text of texts) if (text !== '') statuses.push(parseAnswer(text).status);
  }
  return statuses;
}

/** What comes until shortly after the first byte of an answer. */
async function firstAnswer(port: number, bytes: Buffer): Promise<void> {
  const socket = await openSocket(port);
  const over = new Promise((resolve) => socket.once('close', resolve));
  const first = new Promise((resolve) => socket.once('data', resolve));
  socket.write(bytes);
  await Promise.race([over, first]);
  await pause(ANSWER_MS);
  socket.destroy();
}

/** A version of HTTP that is not served is the client's matter. */
function isFault(status: number): boolean {
  return status >= 500 && status !== 505;
}

/** Each dialect gets a third of the collection: together they get all of it. */
function shareOf<Value>(dialect: Dialect, all: readonly Value[]): readonly Value[] {
  return all.filter((_, at) => at % DIALECTS.length === DIALECTS.indexOf(dialect));
}

function llhttp(collection: unknown): readonly Buffer[] {
  return decoded((collection as { readonly b: string }[]).map(({ b }) => b));
}

const GARDEN = hostile('http-garden.json');
const REQUESTS = hostile('llhttp-request.json');

test.skipIf(GARDEN.isMissing || REQUESTS.isMissing)(
  `R4: hostile requests are refused, and none reaches the provider${GARDEN.note}${REQUESTS.note}`,
  async () => {
    const { provider, story } = await startBoth();
    const requests = [...decoded(GARDEN.read()), ...llhttp(REQUESTS.read())];
    expect(requests.length).toBeGreaterThan(200);
    const statuses = await statusesOf(story.port, requests);
    expect(statuses.length).toBeGreaterThan(0);
    // They state no token.
    expect(statuses.filter((status) => status < 400 || isFault(status))).toEqual([]);
    expect(provider.seen).toEqual([]);
    await expectAlive(story);
  },
);

test.skipIf(GARDEN.isMissing || REQUESTS.isMissing)(
  `R4: nothing is smuggled behind a request with a token${GARDEN.note}${REQUESTS.note}`,
  async () => {
    const { provider, story } = await startBoth();
    const body = JSON.stringify(requestWith('anthropic_messages', [said('user', 'One.')]));
    const head = [
      'POST /v1/messages HTTP/1.1',
      `Host: 127.0.0.1:${story.port}`,
      `Authorization: Bearer ${TOKEN}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ].join('\r\n');
    const requests = [...decoded(GARDEN.read()), ...llhttp(REQUESTS.read())].map((hidden) =>
      Buffer.concat([Buffer.from(`${head}\r\n\r\n${body}`), hidden]),
    );
    await Promise.all(requests.map((bytes) => firstAnswer(story.port, bytes)));
    // Each of them brought one body, and no request was made of what came behind it.
    expect(provider.seen.length).toBeLessThanOrEqual(requests.length);
    expect(provider.seen.length).toBeGreaterThan(requests.length / 2);
    for (const { path, body: sent } of provider.seen) {
      expect(path).toBe('/v1/messages');
      expect(sent.toString()).toContain('One.');
    }
    await expectAlive(story);
  },
);

const RESPONSES = hostile('llhttp-response.json');

test.skipIf(RESPONSES.isMissing)(
  `R20: hostile answers of a provider end, and the next request works${RESPONSES.note}`,
  async () => {
    const answers = llhttp(RESPONSES.read());
    let next = 0;
    const bare = await startSocketProvider((socket) => {
      socket.once('data', () => {
        socket.end(answers[next] ?? '');
      });
    });
    const broken = { url: bare.url, seen: [], reply: answerTo };
    const story = await startStory({ provider: broken });
    const body = requestWith('openai_chat_completions', [said('user', 'One.')]);
    for (next = 0; next < answers.length; next += 1) {
      const asked = story.send('openai_chat_completions', body);
      const outcome = await asked.then(
        ({ status, isCut }) => ({ status, isCut }),
        () => ({ status: 502, isCut: true }),
      );
      // An answer that svc cannot read is its own 502, or a connection that breaks.
      expect(outcome.status, answers[next]?.toString('latin1')).toBeLessThanOrEqual(599);
    }
  },
);

const JSON_SUITE = hostile('json-test-suite.json');

test.skipIf(JSON_SUITE.isMissing).each(DIALECTS)(
  `%s: R10: odd and broken JSON reaches the provider as it came${JSON_SUITE.note}`,
  async (dialect) => {
    const { provider, story } = await startBoth();
    const files = Object.entries(JSON_SUITE.read() as Record<string, string>);
    expect(files.length).toBeGreaterThan(300);
    for (const [name, text] of shareOf(dialect, files)) {
      const odd = Buffer.from(text, 'base64');
      for (const body of [odd, around(odd)]) {
        provider.seen.length = 0;
        const { status } = await story.send(dialect, body);
        expect(status, name).toBe(200);
        const [sent] = provider.seen;
        // Only a body that svc can read gets a block, and this memory is empty.
        expect(sent?.body.equals(body), name).toBe(true);
      }
    }
    await expectAlive(story);
  },
);

/** A request that holds the text as the value of an unknown field. */
function around(odd: Buffer): Buffer {
  const messages = '"messages":[{"role":"user","content":"One."}],"input":"One."';
  return Buffer.concat([Buffer.from(`{"model":"m",${messages},"odd":`), odd, Buffer.from('}')]);
}

const NAUGHTY = hostile('blns.json');

test.skipIf(NAUGHTY.isMissing).each(DIALECTS)(
  `%s: a prompt of any naughty string reaches the provider as it was typed${NAUGHTY.note}`,
  async (dialect) => {
    const { provider, story } = await startBoth();
    const naughty = decoded(NAUGHTY.read());
    expect(naughty.length).toBeGreaterThan(500);
    for (const [index, bytes] of shareOf(dialect, naughty).entries()) {
      const text = bytes.toString();
      const body = Buffer.from(
        JSON.stringify(requestWith(dialect, [said('user', `${text} (number ${index})`)])),
      );
      provider.seen.length = 0;
      const headers = { 'session-id': `naughty-${index}`, 'x-svc-memory-space': `s${index}` };
      const { status } = await story.send(dialect, body, headers);
      expect(status, text).toBe(200);
      expect(provider.seen[0]?.body.equals(body), text).toBe(true);
    }
    await story.settled();
    await expectAlive(story);
  },
);

const GOLDEN = hostile('zstd-golden.json');

/** fzstd, which Node 20 needs, checks less, and refuses a form that no encoder writes. */
const LENIENT = {
  'decompression-errors/off0.bin.zst': '18 bytes',
  'decompression-errors/truncated_huff_state.zst': '7 bytes',
  'decompression/zeroSeq_2B.zst': 'BODY_UNREADABLE',
};

test.skipIf(GOLDEN.isMissing)(
  `R11: the reference decoder's golden frames are decoded, and its broken ones refused${GOLDEN.note}`,
  async () => {
    const limits = { decodedBytesMax: 1 << 20, deadlineMs: 30_000 };
    const files = Object.entries(GOLDEN.read() as Record<string, string>);
    for (const useNativeZstd of hasNativeZstd ? [false, true] : [false]) {
      const decoder = createBodyDecoder({ useNativeZstd });
      const verdicts = new Map<string, string>();
      for (const [name, text] of files) {
        if (name.startsWith('golden-compression/')) continue;
        const verdict = await decoder.decode(Buffer.from(text, 'base64'), 'zstd', limits).then(
          ({ length }) => `${length} bytes`,
          (error: unknown) => (error instanceof ProxyError ? error.code : String(error)),
        );
        verdicts.set(name.slice('golden-'.length), verdict);
      }
      await decoder.close();
      expect(Object.fromEntries(verdicts)).toEqual({
        'decompression-errors/off0.bin.zst': 'BODY_UNREADABLE',
        'decompression-errors/truncated_huff_state.zst': 'BODY_UNREADABLE',
        'decompression-errors/zeroSeq_extraneous.zst': 'BODY_UNREADABLE',
        'decompression/block-128k.zst': '131068 bytes',
        'decompression/empty-block.zst': '0 bytes',
        'decompression/rle-first-block.zst': '1048576 bytes',
        'decompression/zeroSeq_2B.zst': '13 bytes',
        ...(!useNativeZstd && LENIENT),
      });
    }
  },
);
