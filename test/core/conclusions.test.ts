import { expect, test } from 'vitest';
import { estimateTextTokens } from '../../src/core/bytes/tokens.ts';
import { conclusionLines, quoteExchange } from '../../src/core/recall/conclusions.ts';
import { SaidLines } from '../../src/core/recall/said-lines.ts';
import { termsOf } from '../../src/core/recall/terms.ts';

function valuesOf(prompt: string): Map<string, number> {
  return new Map(termsOf(prompt).map((term) => [term, 3]));
}

const answered = [
  'Let me look at the parser first.',
  'Good, the tail is lost. Now let me check the caller:',
  '## Summary',
  'All tests pass.',
  '- **Root cause:** `flushTail()` returned before the last chunk of the stream was decoded.',
  '- Renamed the helper.',
  'Want me to push?',
].join('\n\n');

test('what was said on the way is no conclusion', () => {
  const lines = conclusionLines(answered);
  expect(lines.join('\n')).not.toMatch(/let me/i);
  expect(lines).toContain(
    'Root cause: `flushTail()` returned before the last chunk of the stream was decoded.',
  );
});

test('the lines that fit the prompt are quoted whole, after the sentence of the request', () => {
  const asked = 'ok. can you find out why the parser drops the last chunk? thanks';
  const quotes = quoteExchange({ asked, answered }, valuesOf('last chunk of a stream'), {
    tokensMax: 50,
  });
  expect(quotes).toEqual([
    { role: 'user', text: 'find out why the parser drops the last chunk?' },
    {
      role: 'assistant',
      text: 'Root cause: `flushTail()` returned before the last chunk of the stream was decoded.',
    },
  ]);
});

test('a statement of the person that fits best is quoted whole, a long question is cut', () => {
  const fact =
    'The staging database of the walrus shop, which Marta moved in May, listens on port 6431 of host tusk.';
  const values = valuesOf('which port does the staging database of the walrus shop listen on');
  expect(
    quoteExchange({ asked: fact, answered: 'Noted.' }, values, { tokensMax: 60 }),
  ).toContainEqual({
    role: 'user',
    text: fact,
  });
  const question = `${fact.slice(0, -1)}, or does it listen on another port these days?`;
  const [first] = quoteExchange({ asked: question, answered: 'It is 6431.' }, values, {
    tokensMax: 60,
  });
  expect(first?.text.endsWith('…')).toBe(true);
});

test('a long sentence of the conclusion is quoted, cut to the tokens that are left', () => {
  const cause = `Pushed. The root cause: ${'the stream decoder drops its tail whenever '.repeat(4)}it closes.`;
  const quotes = quoteExchange(
    { asked: 'yes', answered: `All tests pass.\n\n${cause}` },
    valuesOf('stream decoder tail'),
    { tokensMax: 30 },
  );
  expect(quotes.map(({ text }) => text).join()).toContain('The root cause: the stream decoder');
  expect(estimateTextTokens(quotes.map(({ text }) => text).join('\n'))).toBeLessThanOrEqual(30);
});

test('of two lines that fit alike, the one at the end of the answer is quoted', () => {
  const said = 'The stream decoder has two users.';
  const concluded = 'The stream decoder has one user.';
  const told = [said, ...Array.from({ length: 9 }, () => 'Nothing else.'), concluded].join('\n\n');
  const quotes = quoteExchange({ asked: 'yes', answered: told }, valuesOf('stream decoder'), {
    tokensMax: 12,
  });
  expect(quotes).toEqual([{ role: 'assistant', text: concluded }]);
});

test('a sentence comes before a line of code or of a drawn tree that has the same words', () => {
  const sentence = 'The metadata of a session is in one file.';
  const told = [
    '├── session  # metadata',
    sentence,
    'session := metadata',
    '// session metadata',
  ].join('\n\n');
  const quotes = quoteExchange({ asked: 'yes', answered: told }, valuesOf('session metadata'), {
    tokensMax: 16,
  });
  expect(quotes).toEqual([{ role: 'assistant', text: sentence }]);
});

test('a request of one word leaves the conclusion its place', () => {
  const quotes = quoteExchange({ asked: 'yes', answered }, valuesOf('stream chunk'), {
    tokensMax: 40,
  });
  expect(quotes.map(({ role }) => role)).toEqual(['assistant']);
});

test('an exchange without a conclusion gives what its request states, and never a question alone', () => {
  const stated = 'OAuth fails in CI because the clock is wrong.';
  expect(quoteExchange({ asked: stated, answered: '' }, new Map(), { tokensMax: 60 })).toEqual([
    { role: 'user', text: stated },
  ]);
  const asked = 'why does OAuth fail in CI?';
  expect(quoteExchange({ asked, answered: '' }, new Map(), { tokensMax: 60 })).toEqual([]);
  expect(quoteExchange({ asked: 'ok', answered: '' }, new Map(), { tokensMax: 60 })).toEqual([]);
});

test('a statement of one sentence is quoted whole beside any answer; an order is cut', () => {
  const fact =
    'The integration tests of the quay only pass when DOCKER=1 is set and the database listens on port 6431.';
  const limitsOf = { tokensMax: 70 };
  const told = { asked: fact, answered: 'The stream decoder of the parser drops its tail.' };
  const [stated] = quoteExchange(told, valuesOf('stream decoder'), limitsOf);
  expect(stated).toEqual({ role: 'user', text: fact });
  const order = { ...told, asked: `Check that ${fact}` };
  expect(quoteExchange(order, valuesOf('stream decoder'), limitsOf)[0]?.text).toMatch(/…$/);
});

test('a line that the prompt has is not quoted, from the request or from the answer', () => {
  const said = new SaidLines('Migrate the quay. The decoder drops its tail!');
  const exchange = { asked: 'Migrate the quay.', answered: 'The decoder drops its tail.' };
  expect(quoteExchange(exchange, valuesOf('quay decoder'), { tokensMax: 60, said })).toEqual([]);
});

test('an answer or a request of one line of a megabyte stays within its tokens and time', () => {
  const long = 'decoder stream '.repeat(70_000);
  const unbroken = 'x'.repeat(1_000_000);
  const started = performance.now();
  for (const text of [long, unbroken]) {
    const quotes = quoteExchange({ asked: text, answered: text }, valuesOf('decoder'), {
      tokensMax: 60,
    });
    for (const quote of quotes) expect(estimateTextTokens(quote.text)).toBeLessThan(260);
    expect(quotes[0]?.text.length).toBeLessThan(800);
  }
  expect(performance.now() - started).toBeLessThan(20_000);
});
