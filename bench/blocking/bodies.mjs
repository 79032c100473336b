/** Bodies that are made to hold a process up, each in the Messages dialect. */
const MIB = 1 << 20;

const user = (content) => ({ role: 'user', content });
const bodyOf = (messages) =>
  Buffer.from(`{"model":"claude","max_tokens":64,"messages":${messages}}`);

export const BODIES = {
  '100,000 messages': () =>
    bodyOf(
      JSON.stringify(
        Array.from({ length: 100_000 }, (_, at) => ({
          role: at % 2 === 0 ? 'user' : 'assistant',
          content: `message ${at} says something about the port ${at}`,
        })),
      ),
    ),
  '140,000 calls in one message': () => callsIn(140_000, 1),
  '140,000 calls in 140,000 messages': () => callsIn(140_000, 140_000),
  '10,000 calls, their results last': () => callsIn(10_000, 10_000),
  '9,000 calls, their results last': () => callsIn(9_000, 9_000),
  '8,000 calls in one message': () => callsIn(8_000, 1),
  '19,999 messages': () => chatOf(19_999, 20),
  '7,999 messages': () => chatOf(7_999, 200),
  '4,000 long messages': () => chatOf(4_000, 3_000),
  'a string of 14 MB': () => bodyOf(`[{"role":"user","content":"${'word and '.repeat(1.6e6)}"}]`),
  'a string of 14 MB of escaped quotes': () =>
    bodyOf(`[{"role":"user","content":"${String.raw`\"`.repeat(7e6)}"}]`),
  'a tool result of 14 MB': () => resultOf('word and '.repeat(1.6e6)),
  'a tool result of 14 MB of escapes': () => resultOf('\n'.repeat(7e6)),
  'a string of 60 MB': () => bodyOf(`[{"role":"user","content":"${'word and '.repeat(6.9e6)}"}]`),
  'a string of 60 MB of escapes': () =>
    bodyOf(`[{"role":"user","content":"${'\\n'.repeat(31e6)}"}]`),
  'system of 60 MB': () =>
    Buffer.from(
      `{"model":"claude","system":"${'word and '.repeat(6.9e6)}","messages":${JSON.stringify([user('hello')])}}`,
    ),
  'depth 100,000': () => bodyOf(`[${'['.repeat(100_000)}${']'.repeat(100_000)}]`),
  'depth 500 in one item of 30 MB': () => bodyOf(`[[${deepList(30 * MIB)}]]`),
  '1,000,000 tiny items': () => bodyOf(`[${Array(1_000_000).fill('1').join(',')}]`),
  '30,000,000 tiny items': () => bodyOf(`[${Array(30_000_000).fill('1').join(',')}]`),
  '1,000,000 small messages': () =>
    bodyOf(`[${Array(1_000_000).fill('{"role":"user","content":"hello"}').join(',')}]`),
  'an ordinary body of 1 MB': () => ordinary(1),
  'an ordinary body of 4 MB': () => ordinary(4),
  'an ordinary body of 16 MB': () => ordinary(16),
};

/** Calls in so many messages, and after all of them their results. */
function callsIn(calls, messages) {
  const each = calls / messages;
  const id = (message, call) => `toolu_${message * each + call}`;
  const listOf = (make) =>
    Array.from({ length: messages }, (_, message) =>
      Array.from({ length: each }, (_unused, call) => make(id(message, call))),
    );
  const asked = listOf((name) => ({ type: 'tool_use', id: name, name: 'Bash', input: {} }));
  const answered = listOf((name) => ({ type: 'tool_result', tool_use_id: name, content: 'done' }));
  return bodyOf(
    JSON.stringify([
      user('Run them all.'),
      ...asked.map((content) => ({ role: 'assistant', content })),
      ...answered.map(user),
    ]),
  );
}

function chatOf(count, characters) {
  return bodyOf(
    JSON.stringify(
      Array.from({ length: count }, (_, at) => ({
        role: at % 2 === 0 ? 'user' : 'assistant',
        content: `The port of ${at} is ${at}. `.repeat(Math.ceil(characters / 24)),
      })),
    ),
  );
}

function resultOf(text) {
  const call = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} };
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: text };
  const rounds = Array.from({ length: 5 }, () => [
    { role: 'assistant', content: [{ ...call, id: 'toolu_2' }] },
    user([{ ...result, tool_use_id: 'toolu_2', content: 'short' }]),
  ]);
  return bodyOf(
    JSON.stringify([
      user('Read it.'),
      { role: 'assistant', content: [call] },
      user([result]),
      ...rounds.flat(),
    ]),
  );
}

function deepList(bytes) {
  const one = `${'['.repeat(500)}${']'.repeat(500)}`;
  return Array(Math.floor(bytes / (one.length + 1)))
    .fill(one)
    .join(',');
}

function ordinary(mib) {
  const text = 'The staging database listens on port 6432. '.repeat(100);
  const messages = [user('Look at all of it.')];
  for (let at = 0, bytes = 0; bytes < mib * MIB; at += 1, bytes += text.length + 250) {
    const name = `toolu_${at}`;
    messages.push(
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: name, name: 'Bash', input: { command: 'ls' } }],
      },
      user([{ type: 'tool_result', tool_use_id: name, content: `${at} ${text}` }]),
    );
  }
  return bodyOf(JSON.stringify(messages));
}
