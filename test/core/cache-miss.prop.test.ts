import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CacheMiss } from '../../src/core/meter/cache-miss.ts';
import type { OwnChanges } from '../../src/core/meter/prefix.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { hasLongCache } from '../../src/core/shortening/pricing.ts';
import { DIALECTS } from '../support/dialect-wire.ts';
import {
  type Body,
  type Json,
  MARK,
  MissStage,
  prose,
  toolOf,
  withList,
  withSystem,
  withTools,
} from '../support/miss-stage.ts';
import { recordedBodies } from '../support/recorded-bodies.ts';

/**
 * Conversations with one known edit each, against a provider that caches as the real ones do: the culprit
 * of the miss must be the edit. `npx vitest run test/core/cache-miss.prop.test.ts` with SVC_TEST_SEED=random
 * draws other ones, and SVC_TEST_CULPRITS=2000 more of them.
 */

const RIGHT_SHARE = 0.98;
const COUNT = Number(process.env['SVC_TEST_CULPRITS'] ?? 200);

/** Where an event takes place: an early message of the person, and the newest one at that time. */
interface Where {
  readonly dialect: Dialect;
  readonly place: number;
  readonly newest: number;
  readonly seed: number;
}

/** What happened in front of a request, and how its miss must read. */
interface Event {
  readonly name: string;
  /** Undefined where nothing that the cache had is sent again, so that there is no miss. */
  readonly truth: Partial<CacheMiss> | undefined;
  /** Changes the bodies of the client from this request on. */
  client?(body: Body, where: Where): Body;
  /** Changes what svc sends from this request on: one message. */
  readonly isSvc?: true;
  /** Minutes. */
  pauses?(dialect: Dialect): number;
  readonly forgets?: true;
  /** Another client sends a conversation of its own under the same name. */
  readonly isBeside?: true;
  /** The cache marks ask for an hour. */
  readonly isHour?: true;
  /** Only a provider that caches what is marked, with its rules for settings and images. */
  readonly isMarked?: true;
}

/** Behind the lifetime of the cache. */
function longPause(dialect: Dialect): number {
  return hasLongCache(dialect) ? 7 : 40;
}

const EVENTS: readonly Event[] = [
  { name: 'the provider forgets', truth: { by: 'provider' }, forgets: true },
  { name: 'a pause', truth: { by: 'time' }, pauses: longPause },
  {
    name: 'a pause of 70 minutes with an hour of cache',
    truth: { by: 'time' },
    pauses: () => 70,
    isHour: true,
    isMarked: true,
  },
  {
    name: 'a pause of 30 minutes with an hour of cache',
    truth: undefined,
    pauses: () => 30,
    isHour: true,
    isMarked: true,
  },
  {
    name: 'a tool is added',
    truth: { by: 'client', place: 'tools', change: 'added', name: 'fresh' },
    client: (body, { dialect }) =>
      withTools(body, (tools) => [...tools, toolOf(dialect, 'fresh', 'New.')]),
  },
  {
    name: 'an early message leaves',
    truth: { by: 'client', place: 'message', change: 'removed' },
    client: (body, { dialect, place }) =>
      withList(body, dialect, (list) => list.filter((_, at) => at !== place && at !== place + 1)),
  },
  {
    name: 'a compaction',
    truth: undefined,
    client: (body, { dialect, newest, seed }) =>
      withList(body, dialect, (list) => [
        said(dialect, 'user', `Summary of the session: ${prose(seed, 400)}`),
        ...list.slice(newest),
      ]),
  },
  { name: 'another client in the same session', truth: undefined, isBeside: true },
  {
    name: 'the cache mark is left in the first message',
    truth: { by: 'client', place: 'marks', change: 'removed' },
    client: (body, { dialect }) =>
      withList(body, dialect, (list) => list.map((item, at) => marked(dialect, item, at === 0))),
    isMarked: true,
  },
  {
    name: 'more results than the provider looks back',
    truth: { by: 'client', place: 'marks', change: 'added' },
    client: (body, { dialect, newest }) =>
      withList(body, dialect, (list) => [
        ...list.slice(0, newest),
        ...resultsOf(26),
        ...list.slice(newest),
      ]),
    isMarked: true,
  },
  {
    name: 'an image in the newest message',
    truth: { by: 'client', place: 'settings', name: 'images' },
    client: (body, { dialect, newest }) => withImage(body, dialect, newest),
    isMarked: true,
  },
  {
    name: 'an image in an early message',
    truth: { by: 'client', place: 'message', change: 'edited' },
    client: (body, { dialect, place }) => withImage(body, dialect, place),
    isMarked: true,
  },
  {
    name: 'the client leaves thinking out',
    truth: { by: 'client', place: 'thinking', change: 'removed' },
    client: (body, { dialect }) =>
      withList(body, dialect, (list) =>
        list.map((item) => ({
          ...item,
          content: (item['content'] as Json[]).filter(({ type }) => type !== 'thinking'),
        })),
      ),
    isMarked: true,
  },
  {
    name: 'another effort',
    truth: { by: 'client', place: 'settings', name: 'output_config' },
    client: (body) => ({ ...body, output_config: { effort: 'low' } }),
    isMarked: true,
  },
  {
    name: 'another choice of tools',
    truth: { by: 'client', place: 'settings', name: 'tool_choice' },
    client: (body) => ({ ...body, tool_choice: { type: 'any' } }),
    isMarked: true,
  },
  {
    name: 'a server of tools connects late',
    truth: { by: 'client', place: 'tools', change: 'added', name: 'github', isServer: true },
    client: (body, { dialect }) => withTools(body, (tools) => [...tools, ...serverTools(dialect)]),
  },
  {
    name: 'a tool leaves',
    truth: { by: 'client', place: 'tools', change: 'removed' },
    client: (body) => withTools(body, (tools) => tools.slice(0, -1)),
  },
  {
    name: 'a tool says something else',
    truth: { by: 'client', place: 'tools', change: 'edited' },
    client: (body) =>
      withTools(body, ([first, ...others]) => [{ ...first, strict: true, extra: 1 }, ...others]),
  },
  {
    name: 'the tools change places',
    truth: { by: 'client', place: 'tools', change: 'order' },
    client: (body) => withTools(body, (tools) => tools.toReversed()),
  },
  {
    name: 'midnight',
    truth: { by: 'client', place: 'system', change: 'date' },
    client: (body, { dialect }) =>
      withUndated(body, dialect, (text) => `${text} Today is 2026-11-25.`),
  },
  {
    name: 'another system prompt',
    truth: { by: 'client', place: 'system', change: 'edited' },
    client: (body, { dialect }) =>
      withUndated(body, dialect, (text) => `${text} Be brief. Today is 2026-11-24.`),
  },
  {
    name: 'another model',
    truth: { by: 'client', place: 'model' },
    client: (body) => ({ ...body, model: `${String(body['model'])}-mini` }),
  },
  {
    name: 'an early message is edited',
    truth: { by: 'client', place: 'message', change: 'edited' },
    client: (body, { dialect, place }) => withItem(body, dialect, place, ' (edited)'),
  },
  { name: 'svc changes a message', truth: { by: 'svc', own: 'block' }, isSvc: true },
  {
    name: 'svc changes a message after a pause',
    truth: { by: 'svc', own: 'block' },
    isSvc: true,
    pauses: longPause,
  },
];

function serverTools(dialect: Dialect): Json[] {
  return ['issues', 'pulls'].map((name) => toolOf(dialect, `mcp__github__${name}`, 'Lists them.'));
}

/** Without the date that the system prompt of a day has. */
function withUndated(body: Body, dialect: Dialect, change: (text: string) => string): Body {
  return withSystem(body, dialect, (text) => change(text.replace(' Today is 2026-11-24.', '')));
}

function listOf(body: Body, dialect: Dialect): readonly Json[] {
  return body[dialect === 'openai_responses' ? 'input' : 'messages'] as readonly Json[];
}

/** Where a message of the person may be changed: in front of the newest ones. */
function messageAt(body: Body, dialect: Dialect, seed: number): number {
  const places = listOf(body, dialect).flatMap(({ role }, at) => (role === 'user' ? [at] : []));
  return places[seed % Math.max(1, Math.floor(places.length / 2))] ?? 0;
}

function withItem(body: Body, dialect: Dialect, at: number, added: string): Body {
  return withList(body, dialect, (list) =>
    list.map((item, index) => {
      if (index !== at) return item;
      const { content } = item;
      if (typeof content === 'string') return { ...item, content: `${content}${added}` };
      const parts = content as readonly Json[];
      const last = parts.at(-1);
      return {
        ...item,
        content: [...parts.slice(0, -1), { ...last, text: `${String(last?.['text'])}${added}` }],
      };
    }),
  );
}

function withImage(body: Body, dialect: Dialect, place: number): Body {
  const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' };
  return withList(body, dialect, (list) =>
    list.map((item, at) => {
      if (at !== place) return item;
      return { ...item, content: [{ type: 'image', source }, ...(item['content'] as Json[])] };
    }),
  );
}

/** Two messages: as many calls of a tool, side by side, and their results. */
function resultsOf(count: number): Json[] {
  const ids = Array.from({ length: count }, (_, at) => `toolu_${at}`);
  return [
    {
      role: 'assistant',
      content: ids.map((id) => ({ type: 'tool_use', id, name: 'tool_0', input: {} })),
    },
    {
      role: 'user',
      content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'Done.' })),
    },
  ];
}

interface Case {
  readonly dialect: Dialect;
  readonly bodies: readonly Body[];
  readonly event: Event;
  /** The request at which it happens. */
  readonly at: number;
  readonly seed: number;
}

/** 'right', 'no-miss', or what was said in place of the truth. */
type Verdict = string;

/** Plays the conversation; the verdict about the request at which it happened. */
function play({ dialect, bodies, event, at, seed }: Case): Verdict {
  const stage = new MissStage(dialect);
  const place = messageAt(bodies[at - 1] ?? {}, dialect, seed);
  const newest =
    listOf(bodies[at] ?? {}, dialect).filter(({ role }) => role !== 'system').length - 1;
  const where = { dialect, place, newest, seed };
  for (const [index, body] of bodies.entries()) {
    const isOn = index >= at;
    if (index === at) stage.pause(event.pauses?.(dialect) ?? 0);
    if (index === at && event.forgets === true) stage.forget();
    const others = index === at && event.isBeside === true ? otherClient(dialect, seed) : [];
    const beside = others.map((other) => stage.send(other, other, new Map()).miss);
    const blamed = beside.find((miss) => miss !== undefined);
    if (blamed !== undefined) return `beside: ${JSON.stringify(blamed)}`;
    const client = isOn && event.client !== undefined ? event.client(body, where) : body;
    const isOwn = isOn && event.isSvc === true;
    const sent = isOwn ? withItem(client, dialect, place, ' [svc: earlier sessions]') : client;
    const own: OwnChanges = isOwn ? new Map([[place, '\nblock part x']]) : new Map();
    const { miss, usage } = stage.send(client, sent, own);
    if (index < at && miss !== undefined)
      return `${event.name} (${dialect}) too early: ${JSON.stringify(miss)}`;
    if (index > at && miss !== undefined)
      return `${event.name} (${dialect}) again: ${JSON.stringify(miss)}`;
    if (index !== at) continue;
    if (event.truth === undefined) {
      if (miss !== undefined) return `${event.name} (${dialect}): ${JSON.stringify(miss)}`;
      continue;
    }
    if (miss === undefined) {
      const total = usage.input + usage.cacheRead + usage.cacheWrite;
      if (usage.cacheRead < 0.6 * total)
        return `${event.name} (${dialect}) was missed: ${JSON.stringify(usage)}`;
      return 'no-miss';
    }
    for (const [name, value] of Object.entries(event.truth)) {
      if (miss[name as keyof CacheMiss] !== value) {
        return `${event.name} (${dialect}): ${JSON.stringify(miss)}`;
      }
    }
  }
  return 'right';
}

function otherClient(dialect: Dialect, seed: number): Body[] {
  return conversation({ dialect, rounds: 2, size: 500, seed: seed + 7 });
}

interface Shape {
  readonly dialect: Dialect;
  readonly rounds: number;
  readonly size: number;
  readonly seed: number;
  readonly isHour?: boolean;
}

const HOUR_MARK = { cache_control: { type: 'ephemeral', ttl: '1h' } };

function said(dialect: Dialect, role: string, text: string): Json {
  if (dialect === 'openai_responses') {
    const type = role === 'assistant' ? 'output_text' : 'input_text';
    return { type: 'message', role, content: [{ type, text }] };
  }
  return { role, content: [{ type: 'text', text }] };
}

/** A conversation as an agent sends it: each body has the one before it as its beginning. */
function conversation({ dialect, rounds, size, seed, isHour = false }: Shape): Body[] {
  const system = `${prose(seed, 3_000)} Today is 2026-11-24.`;
  const tools = Array.from({ length: 8 }, (_, at) =>
    toolOf(dialect, `tool_${at}`, prose(seed + at, 300)),
  );
  const bodies: Body[] = [];
  const list: Json[] = [];
  for (let round = 0; round < rounds; round += 1) {
    list.push(said(dialect, 'user', prose(seed * 31 + round, size)));
    bodies.push(bodyOf(dialect, { system, tools, list, mark: isHour ? HOUR_MARK : MARK }));
    list.push(thoughtful(dialect, said(dialect, 'assistant', prose(seed * 37 + round, size))));
  }
  return bodies;
}

/** An answer with the thinking in front of it that Claude signs. */
function thoughtful(dialect: Dialect, answer: Json): Json {
  if (dialect !== 'anthropic_messages') return answer;
  const content = answer['content'] as Json[];
  const text = String(content[0]?.['text']);
  const signature = Buffer.from(text).toString('base64').slice(0, 120);
  return { ...answer, content: [{ type: 'thinking', thinking: text, signature }, ...content] };
}

interface Parts {
  readonly mark: Json;
  readonly system: string;
  readonly tools: readonly Json[];
  readonly list: readonly Json[];
}

function bodyOf(dialect: Dialect, { system, tools, list, mark }: Parts): Body {
  if (dialect === 'openai_responses') {
    return { model: 'gpt-5.6', instructions: system, tools, input: [...list] };
  }
  if (dialect === 'openai_chat_completions') {
    return {
      model: 'gpt-5.6',
      tools,
      messages: [{ role: 'system', content: system }, ...list],
    };
  }
  const parts = [{ type: 'text', text: system, ...mark }];
  // The mark moves to the newest message, as Claude Code's does.
  const messages = list.map((item, at) => {
    if (at < list.length - 1) return item;
    return { ...item, content: (item['content'] as Json[]).map((part) => ({ ...part, ...mark })) };
  });
  return { model: 'claude-opus-5', max_tokens: 100, system: parts, tools, messages };
}

/** Those that need nothing of the shape of a made conversation. */
const RECORDED_EVENTS = [
  'the provider forgets',
  'a pause',
  'a tool is added',
  'a server of tools connects late',
  'a tool leaves',
  'a tool says something else',
  'the tools change places',
  'midnight',
  'another system prompt',
  'another model',
  'an early message is edited',
  'another choice of tools',
];

const RECORDED: readonly (readonly [Dialect, string])[] = [
  ['anthropic_messages', 'claude-code-2.1.329/long-26-steps'],
  ['openai_responses', 'codex-0.169.0/long-26-steps'],
];

/** A recorded session as it grew: the system prompt and the tools of its first body, the messages of its last one. */
function grown(dialect: Dialect, scenario: string): Body[] {
  const bodies = recordedBodies(scenario).map((body) => JSON.parse(body.toString()) as Body);
  const [first = {}] = bodies;
  // The stand-in knows no setting of a beta, and no reasoning that it has not made.
  const { context_management: _, ...shell } = first;
  const list = listOf(bodies.at(-1) ?? {}, dialect).filter(({ type }) => type !== 'reasoning');
  const ends = list.flatMap(({ role, type }, at) =>
    role === 'user' || type === 'function_call_output' || type === 'custom_tool_call_output'
      ? [at + 1]
      : [],
  );
  return ends.slice(dialect === 'anthropic_messages' ? 0 : 2).map((end) => {
    const items = list.slice(0, end).map((item, at) => marked(dialect, item, at === end - 1));
    const parts = (shell['system'] ?? []) as readonly Json[];
    const dated = {
      ...parts.at(-1),
      text: `${String(parts.at(-1)?.['text'])} Today is 2026-11-24.`,
    };
    const system = dialect === 'anthropic_messages' ? [...parts.slice(0, -1), dated] : undefined;
    return {
      ...shell,
      // The stand-in keeps entries of every model for 30 minutes, as OpenAI does from GPT-5.6 on.
      ...(dialect === 'openai_responses' ? { model: 'gpt-5.6' } : {}),
      ...(system === undefined ? { instructions: 'Be kind. Today is 2026-11-24.' } : { system }),
      [dialect === 'openai_responses' ? 'input' : 'messages']: items,
    };
  });
}

/** Claude Code marks its newest message for the cache, and no earlier one. */
function marked(dialect: Dialect, item: Json, isLast: boolean): Json {
  const { content } = item;
  if (dialect !== 'anthropic_messages' || !Array.isArray(content)) return item;
  const parts = (content as Json[]).map((part) => ({ ...part, cache_control: undefined }));
  const last = parts.at(-1);
  return isLast
    ? { ...item, content: [...parts.slice(0, -1), { ...last, ...MARK }] }
    : { ...item, content: parts };
}

interface Score {
  readonly judged: number;
  readonly right: number;
  readonly wrong: readonly string[];
}

function scoreOf(verdicts: readonly Verdict[]): Score {
  const judged = verdicts.filter((verdict) => verdict !== 'no-miss');
  const wrong = judged.filter((verdict) => verdict !== 'right');
  return { judged: judged.length, right: judged.length - wrong.length, wrong };
}

const DRAWN = fc.record({
  dialect: fc.constantFrom(...DIALECTS),
  rounds: fc.integer({ min: 4, max: 14 }),
  size: fc.integer({ min: 60, max: 900 }),
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  event: fc.constantFrom(...EVENTS),
  part: fc.double({ min: 0, max: 1, noNaN: true }),
});

/** Cases of fast-check as a plain list: the share of the right ones counts, not each. */
function drawn(count: number): Case[] {
  const { seed = 1 } = fc.readConfigureGlobal();
  return fc.sample(DRAWN, { numRuns: count, seed }).map(({ event, part, ...drawnShape }) => {
    const dialect = event.isMarked === true ? 'anthropic_messages' : drawnShape.dialect;
    const shape = { ...drawnShape, dialect, isHour: event.isHour === true };
    const bodies = conversation(shape);
    const at = 2 + Math.floor(part * (shape.rounds - 3));
    return { dialect, bodies, event, at, seed: shape.seed };
  });
}

describe('the culprit of a cache miss', () => {
  test('is the known edit in at least 98 % of fuzzed conversations, and never the client for svc', () => {
    const cases = drawn(COUNT);
    const verdicts = cases.map(play);
    const { judged, right, wrong } = scoreOf(verdicts);
    expect(judged).toBeGreaterThan(0.6 * COUNT);
    expect(right / judged, wrong.slice(0, 40).join('\n')).toBeGreaterThanOrEqual(RIGHT_SHARE);
    const ofSvc = verdicts.filter((_, at) => cases[at]?.event.isSvc === true);
    expect(ofSvc.filter((verdict) => verdict.includes('"by":"client"'))).toEqual([]);
  }, 600_000);

  test('is the known edit in recorded conversations', () => {
    const verdicts = RECORDED.flatMap(([dialect, scenario]) => {
      const bodies = grown(dialect, scenario);
      return EVENTS.filter((event) => RECORDED_EVENTS.includes(event.name)).flatMap((event) =>
        [3, 6, 12, 20].map((at) => play({ dialect, bodies, event, at, seed: at })),
      );
    });
    const { judged, right, wrong } = scoreOf(verdicts);
    expect(judged).toBeGreaterThan(20);
    expect(right / judged, wrong.join('\n')).toBeGreaterThanOrEqual(RIGHT_SHARE);
  }, 120_000);
});
