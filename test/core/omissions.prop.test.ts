import { TEXTS } from '../../src/adapters/texts.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { textDigest } from '../../src/core/memory/reference.ts';
import type { Dialect, RequestView } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { applyEdits, type Edit } from '../../src/core/plan/item-edits.ts';
import { type Exchange, groupExchanges } from '../../src/core/conversation/exchanges.ts';
import {
  findOmissions,
  isOmitted,
  isProven,
  isShortText,
  type Omission,
  omit,
  readExchangeTexts,
  writeNextOmissionNote,
  writeOmissionNote,
} from '../../src/core/shortening/omissions.ts';
import {
  readFacts,
  recallObstacle,
  removalOf,
  type RequestFacts,
  settle,
  type ShorteningFacts,
} from '../../src/core/shortening/removal.ts';
import { cachePrices } from '../../src/core/shortening/pricing.ts';
import { viewRequest } from '../support/view-of.ts';
import { longOutput } from '../support/tool-session.ts';
import { bodyOf, plainItem, type PlainItem } from '../support/plain-chat.ts';

/** One exchange of a test, and whether it may ever be left out. */
interface Scene {
  readonly name: string;
  readonly isPlain: boolean;
  readonly items: (dialect: Dialect, at: number) => readonly PlainItem[];
}

const asks = (at: number): string => `Which port does staging server number ${at} listen on?`;
const says = (at: number): string => `Staging server number ${at} listens on port ${6000 + at}.`;

function plain(change: { asked?: (at: number) => string; said?: (at: number) => string } = {}) {
  return (dialect: Dialect, at: number): readonly PlainItem[] => [
    plainItem(dialect, 'user', (change.asked ?? asks)(at)),
    plainItem(dialect, 'assistant', (change.said ?? says)(at)),
  ];
}

const rounds: Readonly<Record<Dialect, (at: number) => readonly PlainItem[]>> = {
  anthropic_messages: (at) => [
    { role: 'assistant', content: [{ type: 'tool_use', id: `c${at}`, name: 'Bash', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: `c${at}`, content: 'port' }] },
  ],
  openai_responses: (at) => [
    { type: 'function_call', call_id: `c${at}`, name: 'Bash', arguments: '{}' },
    { type: 'function_call_output', call_id: `c${at}`, output: 'port' },
  ],
  openai_chat_completions: (at) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'Bash', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: `c${at}`, content: 'port' },
  ],
};

const thoughts: Readonly<Record<Dialect, (at: number) => readonly PlainItem[]>> = {
  anthropic_messages: (at) => [
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: `sig${at}==` },
        { type: 'text', text: says(at) },
      ],
    },
  ],
  openai_responses: (at) => [
    { type: 'reasoning', id: `rs_${at}`, summary: [], encrypted_content: `enc${at}==` },
    plainItem('openai_responses', 'assistant', says(at)),
  ],
  openai_chat_completions: (at) => [
    { role: 'assistant', content: says(at), reasoning_content: 'hm' },
  ],
};

const SCENES: readonly Scene[] = [
  { name: 'plain', isPlain: true, items: plain() },
  { name: 'plain again', isPlain: true, items: plain() },
  { name: 'plain once more', isPlain: true, items: plain() },
  {
    name: 'tools',
    isPlain: false,
    items: (dialect, at) => [
      plainItem(dialect, 'user', asks(at)),
      ...rounds[dialect](at),
      plainItem(dialect, 'assistant', says(at)),
    ],
  },
  {
    name: 'reasoning',
    isPlain: false,
    items: (dialect, at) => [plainItem(dialect, 'user', asks(at)), ...thoughts[dialect](at)],
  },
  {
    name: 'a client’s wrapper',
    isPlain: false,
    items: plain({ asked: (at) => `<system-reminder>Be brief.</system-reminder>\n${asks(at)}` }),
  },
  {
    name: 'a secret',
    isPlain: false,
    items: plain({
      said: (at) => `${says(at)}\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYzz12345678AB`,
    }),
  },
  {
    name: 'private words',
    isPlain: false,
    items: plain({ asked: (at) => `${asks(at)} <private>It is Eve’s.</private>` }),
  },
  { name: 'a filler', isPlain: false, items: plain({ asked: () => 'ok, continue' }) },
  {
    name: 'half a character',
    isPlain: false,
    items: plain({ said: (at) => `${says(at)} \ud800` }),
  },
  {
    name: 'an instruction',
    isPlain: false,
    items: (dialect, at) => [
      plainItem(dialect, 'user', asks(at)),
      {
        ...(dialect === 'openai_responses' && { type: 'message' }),
        role: 'system',
        content: 'Go.',
      },
      plainItem(dialect, 'assistant', says(at)),
    ],
  },
  {
    name: 'a part that svc does not know',
    isPlain: false,
    items: (dialect, at) => [
      {
        role: 'user',
        content: [
          { type: 'text', text: asks(at) },
          { type: 'image', source: {} },
        ],
      },
      plainItem(dialect, 'assistant', says(at)),
    ],
  },
  {
    name: 'a field that svc does not know',
    isPlain: false,
    items: (dialect, at) => [
      plainItem(dialect, 'user', asks(at)),
      { ...plainItem(dialect, 'assistant', says(at)), audio: { id: 'a' } },
    ],
  },
];

const dialects = fc.constantFrom(...DIALECTS);
const chats = fc.record({
  dialect: dialects,
  scenes: fc.array(fc.constantFrom(...SCENES), { maxLength: 9 }),
  isOpen: fc.boolean(),
  indent: fc.constantFrom(undefined, 1),
});

function viewOf(dialect: Dialect, items: readonly PlainItem[], indent?: number): RequestView {
  const bytes = Buffer.from(JSON.stringify(bodyOf(dialect, items), null, indent));
  const view = viewRequest(bytes, dialect);
  if (view === undefined) throw new Error('The test body cannot be read.');
  return view;
}

function omissionsOf(view: RequestView): readonly Omission[] {
  return findOmissions(view, groupExchanges(view.items), (exchange) =>
    readExchangeTexts(view, exchange, TEXTS),
  );
}

test('[3.2-always-kept] [8-two-exchanges-kept] only plain exchanges older than the last two go, whole; all else is the same bytes', () => {
  fc.assert(
    fc.property(chats, ({ dialect, scenes, isOpen, indent }) => {
      const exchanges = scenes.map((scene, at) => ({ ...scene, list: scene.items(dialect, at) }));
      const open = isOpen ? [plainItem(dialect, 'user', 'And which one is the newest?')] : [];
      const items = [...exchanges.flatMap(({ list }) => list), ...open];
      const view = viewOf(dialect, items, indent);
      const omissions = omissionsOf(view);
      // The oracle knows which exchanges it wrote as plain ones.
      const keptFrom = exchanges.length - (isOpen ? 1 : 2);
      const kept = exchanges.filter(({ isPlain }, at) => !isPlain || at >= keptFrom);
      expect(omissions).toHaveLength(exchanges.length - kept.length);
      const expected = [...kept.flatMap(({ list }) => list), ...open];
      const forwarded = Buffer.concat(applyEdits(view.bytes, omit(view, omissions).edits));
      const whole = JSON.stringify(bodyOf(dialect, expected));
      const said = JSON.stringify(JSON.parse(forwarded.toString()));
      if (omissions.length === 0) {
        expect(forwarded.equals(view.bytes)).toBe(true);
        return;
      }
      const notes = runsOf(exchanges.map(({ isPlain }, at) => isPlain && at < keptFrom)).map(
        (count, at) => (at === 0 ? writeOmissionNote(count) : writeNextOmissionNote(count)),
      );
      const without = notes.reduce((rest, note) => {
        const written = JSON.stringify(note).slice(1, -1);
        const forms = [`\\n\\n${written}`, ...['text', 'input_text'].map(partOf(written))];
        return forms.reduce((text, form) => text.replace(form, ''), rest);
      }, said);
      expect(without).toBe(whole);
      // With its separators: what is left is written as it was, blanks included.
      const cut = Buffer.concat(
        applyEdits(
          view.bytes,
          omit(view, omissions).edits.filter(({ bytes }) => bytes.length === 0),
        ),
      );
      expect(cut.toString()).toBe(JSON.stringify(bodyOf(dialect, expected), null, indent));
    }),
    { numRuns: 150 },
  );
});

/** How many exchanges are gone in each gap. */
function runsOf(gone: readonly boolean[]): readonly number[] {
  const gaps = gone.map((isGone) => (isGone ? 'x' : '-')).join('');
  return [...gaps.matchAll(/x+/g)].map(([run]) => run.length);
}

test('what leaves further down changes nothing in front of it, so that the cached prefix stays', () => {
  fc.assert(
    fc.property(chats, fc.nat(9), ({ dialect, scenes }, choice) => {
      const items = scenes.flatMap((scene, at) => scene.items(dialect, at));
      const view = viewOf(dialect, items);
      const all = omissionsOf(view);
      const earlier = all.slice(0, choice % (all.length + 1));
      const next = all[earlier.length];
      if (next === undefined) return;
      const before = (edits: readonly Edit[]): readonly Edit[] =>
        edits.filter(({ start }) => start < next.span.start);
      expect(before(omit(view, all).edits)).toEqual(before(omit(view, earlier).edits));
    }),
  );
});

// Claude Code turns a list of one part into a string when it moves its cache mark (see item-edits.ts).
test.each(DIALECTS)(
  'in %s a note keeps its words when a list of one part becomes a string',
  (dialect) => {
    const type = dialect === 'openai_responses' ? 'input_text' : 'text';
    const written = (inForm: (text: string) => unknown): string => {
      const items = [0, 1, 2, 3].flatMap((at) => [
        { role: 'user', content: inForm(asks(at)) },
        plainItem(dialect, 'assistant', says(at)),
      ]);
      const view = viewOf(dialect, items);
      const edits = omit(view, omissionsOf(view)).edits;
      return Buffer.concat(applyEdits(view.bytes, edits)).toString();
    };
    const asString = written((text) => text);
    expect(asString).toContain(JSON.stringify(writeOmissionNote(2)).slice(1, -1));
    const asList = written((text) => [{ type, text }]);
    const lists = new RegExp(
      `"role":"user","content":\\[\\{"type":"${type}","text":("[^"]*")\\}\\]`,
      'g',
    );
    expect(asList.replaceAll(lists, '"role":"user","content":$1')).toBe(asString);
  },
);

function partOf(note: string): (type: string) => string {
  return (type) => `,{"type":"${type}","text":"${note}"}`;
}

test('law 2: what must be proven is every word of the exchange', () => {
  for (const dialect of DIALECTS) {
    const items = [0, 1, 2, 3].flatMap((at) => plain()(dialect, at));
    const [first] = omissionsOf(viewOf(dialect, items));
    const digests = [textDigest('user', asks(0)), textDigest('assistant', says(0))];
    expect(first?.texts.map(({ digest }) => digest)).toEqual(digests);
    expect(first?.texts.map(({ text }) => text)).toEqual([asks(0), says(0)]);
    if (first === undefined) continue;
    expect(isProven(first, new Set(digests))).toBe(true);
    for (const digest of digests) expect(isProven(first, new Set([digest]))).toBe(false);
  }
});

test('only what the newest prompt was told stands for exchanges, and a degraded recall never does', () => {
  const view = viewOf(
    'anthropic_messages',
    [0, 1, 2, 3].flatMap((at) => plain()('anthropic_messages', at)),
  );
  const omissions = omissionsOf(view);
  const placed = (at: number) =>
    view.items.slice(at, at + 1).map((item) => {
      return { item, block: 'block', form: 'text' as const, space: 'default', tokens: 1 };
    });
  expect(view.items.map((item) => isOmitted(item, omissions))).toEqual(
    view.items.map((_, at) => at < 4),
  );
  const stateOf = (at: number, state: 'recalled' | 'degraded_timeout' | 'empty' = 'recalled') =>
    recallObstacle(view, { placements: placed(at), state });
  expect(stateOf(6)).toBe(undefined);
  expect(stateOf(4)).toBe('recall_empty');
  expect(stateOf(0)).toBe('recall_empty');
  expect(stateOf(99, 'empty')).toBe('recall_empty');
  expect(stateOf(6, 'degraded_timeout')).toBe('recall_degraded');
});

/** A chat of `count` exchanges with answers of 400 tokens. */
function factsOf(count: number, other: Partial<RequestFacts> = {}): ShorteningFacts {
  const said = (at: number) => `${says(at)}\n${longOutput(`n${at}`, 400)}`;
  const view = viewOf(
    'anthropic_messages',
    Array.from({ length: count }, (_, at) => plain({ said })('anthropic_messages', at)).flat(),
  );
  return readFacts({
    view,
    batches: [],
    outputs: [],
    textsOf: (exchange) => readExchangeTexts(view, exchange, TEXTS),
    isStored: () => false,
    takesNew: true,
    isBound: false,
    isCacheCold: true,
    keepRounds: 4,
    tokens: view.tokens,
    inputBudget: 0,
    room: undefined,
    prices: cachePrices({ dialect: 'anthropic_messages', facts: undefined }),
    ...other,
  });
}

test('exchanges go by the rule of batches: on a cold cache from 1,024 tokens, on a warm one when it pays', () => {
  const wantedOf = (count: number, isCacheCold: boolean) =>
    removalOf(factsOf(count, { isCacheCold })).omissions.length;
  expect(wantedOf(4, true)).toBe(0);
  expect(wantedOf(6, true)).toBe(4);
  expect(wantedOf(6, false)).toBe(0);
  expect(wantedOf(40, false)).toBe(38);
  // What is proven may be too little.
  const facts = factsOf(6);
  const wanted = removalOf(facts);
  const digests = wanted.omissions.flatMap(({ texts }) => texts.map(({ digest }) => digest));
  expect(settle(facts, wanted, new Set(digests)).omissions).toHaveLength(4);
  const two = settle(facts, wanted, new Set(digests.slice(0, 5)));
  expect(two).toMatchObject({ omitted: [], omissions: [] });
});

test('a text that only comes back in parts is told from a short one', () => {
  const isShort = (tokens: number) => {
    const said = (at: number) => `${says(at)}\n${longOutput(`n${at}`, tokens)}`;
    const items = [0, 1, 2].flatMap((at) => plain({ said })('anthropic_messages', at));
    return omissionsOf(viewOf('anthropic_messages', items)).map(isShortText);
  };
  expect(isShort(1_000)).toEqual([true]);
  expect(isShort(4_000)).toEqual([false]);
});

test('where a tool was called no exchange leaves, and those that left before stay out', () => {
  const chat = [0, 1, 2, 3, 4, 5].flatMap((at) => plain()('anthropic_messages', at));
  const called = [...chat, ...rounds.anthropic_messages(6)];
  const factsIn = (items: readonly PlainItem[], batches: RequestFacts['batches'] = []) => {
    const view = viewOf('anthropic_messages', items);
    const textsOf = (exchange: Exchange) => readExchangeTexts(view, exchange, TEXTS);
    return readFacts({ ...factsOf(2), view, batches, textsOf });
  };
  expect(factsIn(chat).omittable).toHaveLength(4);
  expect(factsIn(called).omittable).toEqual([]);
  const marks = factsIn(chat).omittable.map(({ fingerprint }) => `~${fingerprint.slice(0, 12)}`);
  const gone = factsIn(called, [{ before: 0, marks: marks.slice(0, 2) }]);
  expect(removalOf(gone)).toMatchObject({ omissions: [], omitted: gone.omitted });
  expect(gone.omitted).toHaveLength(2);
});

test('near the window and within the budget no more exchanges go, and those that are out stay out', () => {
  const facts = factsOf(8);
  const gone = { omittable: facts.omittable.slice(2), omitted: facts.omittable.slice(0, 2) };
  const wantedOf = (other: Partial<RequestFacts>) => removalOf({ ...facts, ...gone, ...other });
  expect(wantedOf({})).toMatchObject({ omitted: gone.omitted, omissions: gone.omittable });
  expect(wantedOf({ room: 100 })).toMatchObject({ omitted: gone.omitted, omissions: [] });
  expect(wantedOf({ takesNew: false })).toMatchObject({ omitted: gone.omitted, omissions: [] });
  expect(wantedOf({ inputBudget: facts.tokens })).toMatchObject({
    omitted: gone.omitted,
    omissions: [],
    otherwise: 'within_budget',
  });
});
