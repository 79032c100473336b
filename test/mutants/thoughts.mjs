/** Reading signed thoughts and their losses, each broken by one change, and the test file that must then fail. */

const MESSAGES = 'src/core/dialects/anthropic/dialect.ts';
const CHAT = 'src/core/dialects/chat/dialect.ts';
const THOUGHTS = 'test/core/thoughts.test.ts';
const LOST = 'test/core/lost-thoughts.test.ts';
const READER = 'test/core/answer-reader.test.ts';

/** As in list.mjs. */
export const THOUGHT_MUTANTS = [
  {
    name: 'the client has a thought before it is reported',
    file: 'src/proxy/relay.ts',
    from: 'const mayEnd = this.#ask((watcher) => watcher.data(chunk), false);',
    to: 'const mayEnd = false; setImmediate(() => this.#ask((watcher) => watcher.data(chunk), false));',
    test: 'test/proxy/relayed-thoughts.test.ts',
  },
  {
    name: 'a signature is skipped like other deltas',
    file: MESSAGES,
    from: "if (delta['type'] === 'signature_delta') this",
    to: "if (delta['type'] === 'signature') this",
    test: THOUGHTS,
  },
  {
    name: 'a repeated signature is another thought',
    file: 'src/core/conversation/thoughts.ts',
    from: 'if (idOf(before.copy()) !== thoughtId(piece)) before',
    to: 'before',
    test: THOUGHTS,
  },
  {
    name: 'pieces of a signature are thoughts each',
    file: CHAT,
    from: "typeof index === 'number' ?",
    to: "typeof index === 'bigint' ?",
    test: THOUGHTS,
  },
  {
    name: 'a list of lost thoughts is added to the one before',
    file: 'src/core/dialects/dialect-answer.ts',
    from: 'if (Array.isArray(list)) this',
    to: 'if (Array.isArray(list) && list.length > 0) this',
    test: LOST,
  },
  {
    name: 'a damaged signature counts as a changed prefix',
    file: 'src/core/conversation/lost-thoughts.ts',
    from: 'return REFUSAL.test(body);',
    to: "return REFUSAL.test(body) || body.includes('signature');",
    test: LOST,
  },
  {
    name: 'svc is not told of a client that changed an earlier item',
    file: 'src/proxy/accounts.ts',
    from: 'isBoundTo(difference, isBehind)',
    to: 'isBoundTo(difference, !isBehind)',
    test: 'test/proxy/lost-thoughts.test.ts',
  },
  {
    name: 'an unknown finish reason is a whole answer',
    file: CHAT,
    from: 'else if (!WHOLE.has(name)) this',
    to: "else if (name === 'length') this",
    test: READER,
  },
  {
    name: 'content that is flagged as a thought is text',
    file: CHAT,
    from: 'if (!isThought(said)) this',
    to: 'this',
    test: READER,
  },
  {
    name: 'a large last event ends no answer',
    file: 'src/core/dialects/responses/dialect.ts',
    from: 'this.#end({ status, usage: lastUsage(tail) });',
    to: 'void tail;',
    test: READER,
  },
  {
    name: 'an answer that is too large is a cut',
    file: 'src/proxy/relay.ts',
    from: '!this.#reader.gaveUp && ',
    to: '',
    test: 'test/proxy/cut-answers.test.ts',
  },
];
