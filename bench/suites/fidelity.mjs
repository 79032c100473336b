/**
 * Are the bytes of a request, of a JSON answer and of a stream the same on both sides? With memory off:
 * what memory adds it adds on purpose.
 */
import { createHash } from 'node:crypto';
import { Connection } from '../lib/connection.mjs';
import { within } from '../lib/clock.mjs';
import { CLIENT_HEADERS } from '../lib/targets.mjs';

const DIALECTS = ['messages', 'chat', 'responses'];
const ANSWER_MS = 5000;

/** What a rebuilt body loses: number forms, escapes, a duplicate key, unknown fields, white space. */
const ODD_FIELDS =
  '{"x_unknown" : {"n":1.0, "big":12345678901234567890,"esc":"\\/\\u00e9\\ud83d\\ude00 \u00e9 \u{1F600}","dup":1,"dup":2},\n ';
const PLAIN = { 'x-svc-memory-mode': 'off', 'x-svc-compression-mode': 'passthrough' };

export const fidelity = {
  title:
    'Fidelity: request, JSON answer and stream the same bytes? Is the client\u2019s key kept from the provider?',

  async measure(bench) {
    const seen = {};
    for (const target of bench.targets) {
      seen[target.name] = {};
      for (const dialect of target.dialects)
        seen[target.name][dialect] = await observe(bench, target, dialect);
    }
    return Object.fromEntries(
      Object.entries(seen).map(([name, byDialect]) => [name, compare(byDialect, seen.direct)]),
    );
  },

  columns: ['target', ...DIALECTS, 'client key kept', 'own headers kept'],
  row: (result) => [
    ...DIALECTS.map((dialect) => describe(result[dialect])),
    result.isKeyKept,
    result.areHeadersKept,
  ],
};

async function observe(bench, target, dialect) {
  const plain = bench.bodyFor(target, { size: '100k', dialect, isStream: false }).toString();
  const body = Buffer.from(plain.replace(/^\{/, ODD_FIELDS));
  await bench.provider.reset();
  await bench.provider.setMode({ kind: 'json', isRecorded: true, jsonBytes: 900 });
  const answer = await readAnswer(
    target,
    bench.requestFor(target, { dialect, body, headers: PLAIN }),
  );
  const record = (await bench.provider.report()).records.at(-1);
  await bench.provider.setMode({ kind: 'sse', events: 50 });
  const stream = await readAnswer(target, bench.requestFor(target, { dialect, headers: PLAIN }));
  return {
    isRequestSame: record?.digest === digestOf(body),
    headers: record?.headers ?? {},
    answer,
    stream,
  };
}

async function readAnswer(target, request) {
  const connection = new Connection(target);
  const parts = [];
  await within(
    ANSWER_MS,
    connection.request(request, { onData: (bytes) => parts.push(Buffer.from(bytes)) }),
  );
  connection.close();
  return digestOf(Buffer.concat(parts));
}

function digestOf(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

function compare(byDialect, direct) {
  const entries = Object.entries(byDialect);
  const headers = entries.map(([, it]) => it.headers);
  return {
    ...Object.fromEntries(
      entries.map(([dialect, { isRequestSame, answer, stream }]) => [
        dialect,
        {
          request: isRequestSame,
          answer: answer === direct[dialect].answer,
          stream: stream === direct[dialect].stream,
        },
      ]),
    ),
    isKeyKept: headers.every((it) => it.authorization !== CLIENT_HEADERS.authorization),
    areHeadersKept: headers.every(
      (it) => !Object.keys(it).some((name) => name.startsWith('x-svc-')),
    ),
  };
}

function describe(sameness) {
  if (sameness === undefined) return '-';
  const changed = Object.keys(sameness).filter((part) => !sameness[part]);
  return changed.length === 0 ? 'same' : `CHANGED ${changed.join(' ')}`;
}
