import { expect, test } from 'vitest';
import {
  conclusionLines,
  isUnanswered,
  quoteExchange,
  withoutPoliteness,
} from '../../src/core/recall/conclusions.ts';
import { SaidLines } from '../../src/core/recall/said-lines.ts';
import { termsOf } from '../../src/core/recall/terms.ts';

function valuesOf(prompt: string): Map<string, number> {
  return new Map(termsOf(prompt).map((term) => [term, 3]));
}

const FENCE = '```';
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

test('the lines that fit the prompt are quoted whole, after the statement of the request', () => {
  const asked = 'ok. the parser drops its last chunk. can you find out why the stream ends? thanks';
  const quotes = quoteExchange({ asked, answered }, valuesOf('last chunk of a stream'), {
    tokensMax: 50,
  });
  expect(quotes).toEqual([
    { role: 'user', text: 'the parser drops its last chunk.' },
    {
      role: 'assistant',
      text: 'Root cause: `flushTail()` returned before the last chunk of the stream was decoded.',
    },
  ]);
});

test('a statement of the person that fits best is quoted whole, a long question not at all', () => {
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
  const answer = 'The database listens on port 6431.';
  const quotes = quoteExchange({ asked: question, answered: answer }, values, { tokensMax: 60 });
  expect(quotes).toEqual([{ role: 'assistant', text: answer }]);
});

test('a paragraph is quoted by as many of its first sentences as fit, never by a part of one', () => {
  const first = 'Pushed the fix: the stream decoder drops its tail whenever it closes.';
  const long = `It ${'waits for one more chunk of the slow stream and '.repeat(9)}gives up.`;
  const told = { asked: 'yes', answered: `All tests pass.\n\n${first} ${long}\n\n${long}` };
  const quotes = quoteExchange(told, valuesOf('stream decoder tail'), { tokensMax: 40 });
  expect(quotes.map(({ text }) => text)).toContain(first);
  for (const { text } of quotes) expect(text).not.toMatch(/waits|…/);
});

test('beside a line about the prompt, lines about other things are left out, but no cause', () => {
  const about = 'The stream decoder of `tail.ts` has one user.';
  const other = 'The crane of `harbour.ts` turns twice a day.';
  const cause = 'Root cause: `openGate()` returned before the ferry was there.';
  const quoted = (told: readonly string[]) =>
    quoteExchange({ asked: 'yes', answered: told.join('\n\n') }, valuesOf('decoder'), {
      tokensMax: 90,
      own: new Set(termsOf('decoder')),
    }).map(({ text }) => text);
  expect(quoted([cause, about, other])).toEqual([cause, about]);
  expect(quoted([cause, other])).toEqual([cause, other]);
});

test('beside a line that shares a rare word with the prompt, lines that share only common ones are left out', () => {
  const rare = 'The decoder of the parser drops its tail.';
  const common = 'The session of the harbour opens `quay.ts`.';
  const values = new Map([
    ['decod', 4],
    ['session', 0.8],
  ]);
  const limits = { tokensMax: 90, own: new Set(values.keys()) };
  const exchange = { asked: 'yes', answered: `${common}\n\n${rare}` };
  expect(quoteExchange(exchange, values, limits)).toEqual([{ role: 'assistant', text: rare }]);
  const other = { asked: 'yes', answered: `${common}\n\nThe crane is red in Bergen.` };
  expect(quoteExchange(other, values, limits)).toEqual([{ role: 'assistant', text: common }]);
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
  const given = { asked: stated, answered: '' };
  expect(quoteExchange(given, valuesOf('OAuth clock'), { tokensMax: 60 })).toEqual([
    { role: 'user', text: stated },
  ]);
  expect(quoteExchange(given, valuesOf('gateway'), { tokensMax: 60 })).toEqual([]);
  const asked = 'why does OAuth fail in CI?';
  expect(quoteExchange({ asked, answered: '' }, new Map(), { tokensMax: 60 })).toEqual([]);
  expect(quoteExchange({ asked: 'ok', answered: '' }, new Map(), { tokensMax: 60 })).toEqual([]);
});

test('a statement of one sentence is quoted whole beside any answer; a long order is not', () => {
  const fact =
    'The integration tests of the quay only pass when DOCKER=1 is set and the database listens on port 6431.';
  const limitsOf = { tokensMax: 70 };
  const told = { asked: fact, answered: 'The stream decoder of the parser drops its tail.' };
  const [stated] = quoteExchange(told, valuesOf('stream decoder'), limitsOf);
  expect(stated).toEqual({ role: 'user', text: fact });
  const order = { ...told, asked: `Check that ${fact}` };
  const quotes = quoteExchange(order, valuesOf('stream decoder'), limitsOf);
  expect(quotes).toEqual([{ role: 'assistant', text: told.answered }]);
});

test('the person’s statement comes before the order and the question beside it', () => {
  const statement = 'The gateway of the quay closes each stream after 30 seconds.';
  const asked = `Can you look at the gateway stream? Fix the gateway stream of the quay. ${statement}`;
  const said = 'The gateway stream of the quay is fixed.';
  const quotes = quoteExchange({ asked, answered: said }, valuesOf('gateway stream quay'), {
    tokensMax: 60,
  });
  expect(quotes).toEqual([
    { role: 'user', text: statement },
    { role: 'assistant', text: said },
  ]);
});

test('neither a question nor an order is quoted beside its answer, and a statement only where it fits the prompt', () => {
  const said = 'The gateway stream of the quay closes after 30 seconds.';
  const values = valuesOf('gateway stream quay');
  const answer = { role: 'assistant', text: said };
  const quotesOf = (asked: string) =>
    quoteExchange({ asked, answered: said }, values, { tokensMax: 60 });
  expect(quotesOf('When does the gateway stream of the quay close?')).toEqual([answer]);
  for (const text of [
    'Check whatever the harbour depot says about boats.',
    'Check the boats of `depot.ts`.',
    'Check the stream of the harbour depot.',
    'Wondering: the stream of the harbour depot may be late.',
    'The boats leave at six. The harbour depot is closed then.',
  ]) {
    expect(quotesOf(text)).toEqual([answer]);
  }
  const text = 'The stream of the harbour depot is slow.';
  expect(quotesOf(text)).toEqual([{ role: 'user', text }, answer]);
});

test.each([
  ['We have several boats at the harbour depot.', true],
  ['The boats leave because the harbour depot is closed.', false],
  ['The boats are listed in depot.json.', false],
  ['Move the boats to depot.json.', true],
])('%j without an answer says nothing: %j', (text, isNothing) => {
  expect(isUnanswered([{ role: 'user', text }])).toBe(isNothing);
  expect(
    isUnanswered([
      { role: 'user', text },
      { role: 'assistant', text },
    ]),
  ).toBe(false);
});

test.each([
  ['its subject was named before it', 'am I reading this right for the stream of the gateway?'],
  ['it asks about one place more', 'in the gateway stream of the quay?'],
  [
    'it lacks its mark of a question',
    'how should I set the gateway stream of quay.ts once it runs.',
  ],
  ['its object was named before it', 'add gateway stream tests for that case, too.'],
  ['it breaks off', 'the gateway stream of the quay leaks into'],
  ['it begins inside a bracket', 'the gateway stream and several quays in the same place)'],
  ['it begins inside a quotation', '"The gateway stream keeps both quays, but they are mixed.'],
  ['a program wrote it', 'error: failed to open the gateway stream of quay.ts'],
  ['its value is masked', 'the gateway stream takes the token [masked: secret]'],
])('a request is not quoted where %s', (_, asked) => {
  const answer = 'The gateway stream of the quay closes after 30 seconds.';
  const values = valuesOf('gateway stream quay');
  expect(quoteExchange({ asked, answered: answer }, values, { tokensMax: 60 })).toEqual([
    { role: 'assistant', text: answer },
  ]);
});

test('an offer goes also where a cut puts it at the end, and a remark goes from the head of a list', () => {
  const fact = 'The stream decoder of the parser drops its tail at the quay.';
  const line = `${fact} Want me to fix it? ${'The tail of it is kept by the harbour for a week. '.repeat(4)}`;
  const quotes = quoteExchange({ asked: 'yes', answered: line }, valuesOf('decoder'), {
    tokensMax: 30,
  });
  expect(quotes).toEqual([{ role: 'assistant', text: fact }]);
  const list =
    'Done. The stream decoder of the parser has two ports:\n- first `6431`, then the other';
  expect(conclusionLines(list)).toEqual([
    'The stream decoder of the parser has two ports: first `6431`, then the other',
  ]);
});

test('questions at the end of a line are not quoted, however many there are', () => {
  const fact = 'The stream decoder of the parser drops its tail at the quay.';
  const asks = 'Should the tail still be called a tail? Or does the harbour name it otherwise?';
  expect(conclusionLines(`${fact} ${asks}`)).toEqual([fact]);
});

test('the head of a list within a list is not that of the items beside it', () => {
  const list = [
    'The reader of the quay has two modes:',
    '- With `asList` the reader returns these:',
    '  - when boats are moored, their names',
    '- if `asList` is missing, the boats',
  ].join('\n');
  expect(conclusionLines(list)).toEqual([
    'With `asList` the reader returns these: when boats are moored, their names',
    'if `asList` is missing, the boats',
  ]);
});

test('each item that is no whole statement is quoted with the head of its list', () => {
  const head = 'The auto strategy of the quay has three steps:';
  const items = [
    'the crane of the depot is opened for boats with two masts',
    'no mooring at night in the harbour of Bergen',
  ];
  const whole = 'Moved the lock into `quay.ts`';
  const list = [head, ...[...items, whole].map((item) => `- ${item}`)].join('\n');
  expect(conclusionLines(list)).toEqual([...items.map((item) => `${head} ${item}`), whole]);
  const quotes = quoteExchange({ asked: 'yes', answered: list }, valuesOf('quay mooring crane'), {
    tokensMax: 90,
  });
  expect(quotes.map(({ text }) => text)).toEqual(conclusionLines(list));
});

test('a predicate whose subject is in the head of its list is not quoted without it', () => {
  const answer = '**Steps:**\n- Splits the text at `---`\n- `parser.ts` splits the text at `---`';
  expect(conclusionLines(answer)).toEqual(['`parser.ts` splits the text at `---`']);
});

test('headings, rows, numbers without their item, code and unclosed brackets are not quoted', () => {
  const pieces = [
    '## The stream decoder of the parser',
    '**The stream decoder of the parser:**',
    '| stream decoder | drops its tail | 3 |',
    '+ the stream decoder of the parser drops its tail in `parser.ts`',
    '| Silent stream decoder failures | of the parser can fail silently |',
    'The stream decoder of the parser does this:',
    '3.',
    'Stream decoder',
    'The stream decoder of the parser drops its tail and',
    'Of the `stream decoder the parser drops',
    'The stream decoder (of the parser, which',
    '→ the stream decoder of the parser',
    '— used as `parserStart` in the stream decoder',
    'e.g., the stream decoder, the parser and their tails in `parser.ts`',
    'Where `└` marks the end of the stream decoder, `·` is a tail of the parser.',
    '```ts\nconst decoder = stream();\nconst parser = decoder.tail;\n```',
  ];
  const whole = '3. The stream decoder of the parser drops its tail.';
  const told = [...pieces, whole].join('\n\n');
  const quotes = quoteExchange(
    { asked: 'yes', answered: told },
    valuesOf('stream decoder parser'),
    {
      tokensMax: 300,
    },
  );
  expect(quotes).toEqual([
    { role: 'assistant', text: 'The stream decoder of the parser drops its tail.' },
  ]);
});

test('a command of one line in a fence is a value', () => {
  const told = 'Build it so:\n\n```sh\ngo build -ldflags "-X main.key=KEY" ./cmd/quay\n```\n';
  expect(conclusionLines(told)).toEqual(['go build -ldflags "-X main.key=KEY" ./cmd/quay']);
});

test.each(['Quay: skipping on branch main - create a branch', 'Error: the port 6431 is in use'])(
  'a message of a program in a fence is nobody’s statement: %s',
  (message) => {
    expect(conclusionLines(['It prints:', '', FENCE, message, FENCE].join('\n'))).toEqual([]);
  },
);

test('a command of PowerShell in a fence is a value', () => {
  expect(conclusionLines('```\nSelect-String -Path quay.ts -Pattern crane\n```\n')).toEqual([
    'Select-String -Path quay.ts -Pattern crane',
  ]);
});

test('a list of what was so before a fix says nothing of today; the list after it does', () => {
  const items = '- The sessions in `1/` and `2/` were lost at each start of the quay.\n';
  expect(conclusionLines(`Before the fix:\n${items}`)).toEqual([]);
  expect(conclusionLines(`After the fix:\n${items}`)).toHaveLength(1);
});

test('a line that the prompt has is not quoted, from the request or from the answer', () => {
  const said = new SaidLines('Migrate the quay. The decoder drops its tail!');
  const exchange = { asked: 'Migrate the quay.', answered: 'The decoder drops its tail.' };
  expect(quoteExchange(exchange, valuesOf('quay decoder'), { tokensMax: 60, said })).toEqual([]);
});

test('an item that was quoted with the head of its list is not quoted again', () => {
  const head = 'The decoder of `quay.ts` does three things:';
  const item = 'Drops the tail of the stream';
  const exchange = { asked: 'yes', answered: `${head}\n- ${item}` };
  const values = valuesOf('decoder tail');
  const said = new SaidLines('');
  const [quote] = quoteExchange(exchange, values, { tokensMax: 60, said });
  expect(quote?.text).toBe(`${head} ${item}`);
  said.add(`${head} ${item}`);
  expect(quoteExchange(exchange, values, { tokensMax: 60, said })).toEqual([]);
});

test('an answer or a request of one line of a megabyte stays within its tokens and time', () => {
  const long = 'decoder stream '.repeat(70_000);
  const unbroken = 'x'.repeat(1_000_000);
  const started = performance.now();
  for (const text of [long, unbroken]) {
    const quotes = quoteExchange({ asked: text, answered: text }, valuesOf('decoder'), {
      tokensMax: 60,
    });
    expect(quotes).toEqual([]);
  }
  expect(performance.now() - started).toBeLessThan(20_000);
});

test.each([
  ['Can you rename the crane of the quay?', 'rename the crane of the quay'],
  ['All good, but, I would move the crane of the quay.', 'I would move the crane of the quay.'],
  ['Kannst du den Kran umbenennen?', 'den Kran umbenennen?'],
  ['is the crane of the quay used?', 'is the crane of the quay used?'],
  ['could we use the crane of the quay?', 'could we use the crane of the quay?'],
])('a polite order is no question: %s', (said, plain) => {
  expect(withoutPoliteness(said)).toBe(plain);
});

test.each([
  'The quay tests fail because `ps aux | grep quay` finds no process.',
  'The parser stops at `if (tail) {` when the chunk is empty.',
  'The tree is drawn by `├── quay` in the docs of the harbour.',
])('code within a sentence makes it no fragment: %s', (told) => {
  expect(conclusionLines(told)).toEqual([told]);
});

test.each([
  'quay | 6431 | the port of the harbour',
  'The parser stops at `if (tail) {',
  'The quay ends ├── here now.',
])('a row, a drawn line and half a piece of code are fragments: %s', (told) => {
  expect(conclusionLines(told)).toEqual([]);
});

test('words before a further call are quoted only where the last text says nothing, and only a finding', () => {
  const before =
    'The gateway has a quay.\n\nThe port of the quay is lost because the gateway trims it.\n\n';
  const quoted = (last: string) =>
    quoteExchange(
      { asked: 'fix the quay', answered: `${before}${last}`, lastFrom: before.length },
      valuesOf('port of the quay gateway'),
      { tokensMax: 80 },
    ).flatMap(({ role, text }) => (role === 'assistant' ? text : []));
  expect(quoted('The gateway keeps the port `6431` of the quay now.')).toEqual([
    'The gateway keeps the port `6431` of the quay now.',
  ]);
  const cause = 'The port of the quay is lost because the gateway trims it.';
  expect(quoted('All tests pass.')).toEqual([cause]);
  expect(quoted('')).toEqual([cause]);
});

test('an answer to a menu is not quoted', () => {
  const asked = '3 but apply it to the lighthouse branch.';
  const told = 'The lighthouse branch has the crane of quay 6.';
  const exchange = { asked, answered: told };
  expect(quoteExchange(exchange, valuesOf('the lighthouse branch'), { tokensMax: 60 })).toEqual([
    { role: 'assistant', text: told },
  ]);
});
