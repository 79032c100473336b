import { expect, test } from 'vitest';
import type { CacheMiss } from '../../src/core/meter/cache-miss.ts';
import type { OwnChanges } from '../../src/core/meter/prefix.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { hasLongCache } from '../../src/core/shortening/pricing.ts';
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

/**
 * What clients do to the prompt of a running conversation, one habit a case: each culprit must be the habit.
 * The habits are those of Claude Code, Codex, opencode, Cline, aider and gateways in between, as they were in
 * November 2026. SVC_TEST_CULPRITS=N plays each habit at N places.
 */

const PLACES = Number(process.env['SVC_TEST_CULPRITS'] ?? 2);
/** At a few places each habit must be right. */
const WRONG_SHARE_MAX = PLACES <= 3 ? 0 : 0.02;

/** Undefined: no miss. */
type Truth = Partial<CacheMiss> | undefined;

interface Where {
  readonly dialect: Dialect;
  readonly seed: number;
  /** Indices of items that the request before had, the system message of Chat Completions not counted. */
  readonly prompt: number;
  readonly call: number;
  readonly result: number;
  readonly answer: number;
  /** The newest item of the request. */
  readonly newest: number;
}

interface Habit {
  readonly name: string;
  readonly only?: readonly Dialect[];
  /** Each of them is right. */
  readonly truth: readonly Truth[];
  /** Changes the bodies from a request on. `step`: requests since then. */
  client?(body: Body, where: Where, step: number): Body;
  /** Changes what svc sends: the item, and how svc names the change. */
  own?(where: Where): readonly [at: number, how: string];
  /** Minutes. */
  pauses?(dialect: Dialect): number;
  readonly forgets?: true;
  /** The next requests may miss too. */
  readonly repeats?: true;
}

const CLAUDE: readonly Dialect[] = ['anthropic_messages'];
const CODEX: readonly Dialect[] = ['openai_responses'];
const CHAT: readonly Dialect[] = ['openai_chat_completions'];

const SYSTEM = { by: 'client', place: 'system' } as const;
const TOOLS = { by: 'client', place: 'tools' } as const;
const MESSAGE = { by: 'client', place: 'message' } as const;
const THINKING = { by: 'client', place: 'thinking', change: 'removed' } as const;
const SETTINGS = { by: 'client', place: 'settings' } as const;

const DATED = 'Today is Tuesday, November 24, 2026.';

const HABITS: readonly Habit[] = [
  // The system prompt.
  {
    name: 'the written-out date of the system prompt changes at midnight',
    truth: [{ ...SYSTEM, change: 'date' }],
    client: inSystem((text) => text.replace(DATED, 'Today is Wednesday, November 25, 2026.')),
  },
  {
    name: 'the system prompt says the time to the second',
    truth: [{ ...SYSTEM, change: 'date' }],
    client: (body, where, step) =>
      inSystem((text) => text.replace('T10:15:03Z', `T10:15:${10 + step}Z`))(body, where),
    repeats: true,
  },
  {
    name: 'the state of git in the system prompt changes',
    truth: [{ ...SYSTEM, change: 'edited' }],
    client: inSystem((text) => text.replace(' M src/a.ts', ' M src/a.ts\n?? src/b.ts')),
  },
  {
    name: 'the newest commit in the system prompt changes',
    truth: [{ ...SYSTEM, change: 'edited' }],
    client: inSystem((text) => text.replace('7701b48 Mend', 'f5de810 Give\n7701b48 Mend')),
  },
  {
    name: 'the folder in the system prompt changes',
    truth: [{ ...SYSTEM, change: 'edited' }],
    client: inSystem((text) => text.replace('/home/u/shop', '/home/u/shop/server')),
  },
  {
    name: 'the system prompt counts what is left of the context',
    truth: [{ ...SYSTEM, change: 'number' }],
    client: (body, where, step) =>
      inSystem((text) => text.replace('Tokens used: 48213', `Tokens used: ${50_017 + step * 613}`))(
        body,
        where,
      ),
    repeats: true,
  },
  {
    name: 'a gateway writes another id in front of the system prompt each time',
    only: CLAUDE,
    truth: [SYSTEM],
    client: (body, _, step) => {
      const text = `Routed as ${(0xa3f1_77aa + step * 7919).toString(16)}.`;
      return { ...body, system: [{ type: 'text', text }, ...(body['system'] as Json[])] };
    },
    repeats: true,
  },
  {
    // Anthropic takes this line out of the prompt.
    name: 'Claude Code writes another line of billing in front of the system prompt each time',
    only: CLAUDE,
    truth: [undefined],
    client: (body, _, step) => {
      const text = `x-anthropic-billing-header: cc_version=2.1.329.${(0xa3f + step * 7).toString(16)};`;
      return { ...body, system: [{ type: 'text', text }, ...(body['system'] as Json[])] };
    },
  },
  {
    name: 'instructions of a server of tools are appended to the system prompt',
    truth: [SYSTEM],
    client: inSystem((text) => `${text}\n# MCP server instructions\n## github\nUse it for issues.`),
  },
  {
    name: 'a block is added behind the system prompt',
    only: CLAUDE,
    truth: [{ ...SYSTEM, change: 'added' }],
    client: (body) => ({
      ...body,
      system: [...(body['system'] as Json[]), { type: 'text', text: 'Answer in French.', ...MARK }],
    }),
  },
  {
    name: 'the first block of the system prompt leaves',
    only: CLAUDE,
    truth: [{ ...SYSTEM, change: 'removed' }],
    client: (body) => ({ ...body, system: (body['system'] as Json[]).slice(1) }),
  },
  {
    name: 'two blocks of the system prompt change places',
    only: CLAUDE,
    truth: [SYSTEM],
    client: (body) => ({ ...body, system: (body['system'] as Json[]).toReversed() }),
  },
  {
    name: 'the system prompt loses its last line break',
    truth: [{ ...SYSTEM, change: 'edited' }],
    client: inSystem((text) => text.trimEnd()),
  },
  {
    name: 'the system message becomes one of the developer',
    only: CHAT,
    truth: [SYSTEM, MESSAGE],
    client: (body) => {
      const [system, ...others] = body['messages'] as Json[];
      return { ...body, messages: [{ ...system, role: 'developer' }, ...others] };
    },
  },
  // The tools.
  {
    name: 'the list of agents in a description of a tool grows',
    truth: [{ ...TOOLS, change: 'edited', name: 'tool_3' }],
    client: inTools((tools, { dialect }) =>
      tools.map((tool, at) =>
        at === 3 ? toolOf(dialect, 'tool_3', 'Agents: explore, plan, review.') : tool,
      ),
    ),
  },
  {
    name: 'a parameter is added to a tool',
    truth: [{ ...TOOLS, change: 'edited', name: 'tool_5' }],
    client: inTools((tools) =>
      tools.map((tool, at) => (at === 5 ? withParameter(tool, 'timeout') : tool)),
    ),
  },
  {
    name: 'the tools of a late server are sorted in between',
    truth: [{ ...TOOLS, change: 'added', name: 'github', isServer: true }],
    client: inTools((tools, { dialect }) => [
      ...tools.slice(0, 4),
      ...serverTools(dialect, 'github'),
      ...tools.slice(4),
    ]),
  },
  {
    name: 'two servers of tools connect late, at once',
    truth: [{ ...TOOLS, change: 'added' }],
    client: inTools((tools, { dialect }) => [
      ...tools,
      ...serverTools(dialect, 'github'),
      ...serverTools(dialect, 'jira'),
    ]),
  },
  {
    name: 'a server of tools is gone',
    truth: [{ ...TOOLS, change: 'removed', name: 'linear', isServer: true }],
    client: inTools((tools) => tools.filter((tool) => !nameOf(tool).startsWith('mcp__linear__'))),
  },
  {
    name: 'a server lists its tools in another order',
    truth: [{ ...TOOLS, change: 'order' }],
    client: inTools((tools) => [...tools.slice(0, -2), ...tools.slice(-2).toReversed()]),
  },
  {
    name: 'one tool moves to the end',
    truth: [{ ...TOOLS, change: 'order' }],
    client: inTools(([first, ...others]) => [...others, first ?? {}]),
  },
  {
    name: 'a server that is back describes a tool in other words',
    truth: [{ ...TOOLS, change: 'edited' }],
    client: inTools((tools, { dialect }) => [
      ...tools.slice(0, -1),
      toolOf(dialect, nameOf(tools.at(-1) ?? {}), 'Finds an issue by its key.'),
    ]),
  },
  {
    name: 'a tool gets another name',
    truth: [TOOLS],
    client: inTools((tools, { dialect }) =>
      tools.map((tool, at) => (at === 2 ? toolOf(dialect, 'tool_two', 'As before.') : tool)),
    ),
  },
  {
    name: 'no tools are sent any more',
    truth: [{ ...TOOLS, change: 'removed' }],
    client: inTools(() => []),
  },
  {
    name: 'a tool is replaced by another one at the same place',
    truth: [TOOLS],
    client: inTools((tools, { dialect }) =>
      tools.map((tool, at) => (at === 0 ? toolOf(dialect, 'Write', 'Writes a file.') : tool)),
    ),
  },
  // Two at once: the first one in the prompt is the cause.
  {
    name: 'a server connects late at midnight',
    truth: [{ ...TOOLS, change: 'added', name: 'github', isServer: true }],
    client: (body, where) =>
      inSystem((text) => text.replace(DATED, 'Today is Wednesday, November 25, 2026.'))(
        inTools((tools, { dialect }) => [...tools, ...serverTools(dialect, 'github')])(body, where),
        where,
      ),
  },
  {
    name: 'the system prompt and an early message change',
    truth: [{ ...SYSTEM, change: 'edited' }],
    client: (body, where) =>
      inSystem((text) => `${text} Be brief.`)(
        inItem('prompt', (text) => `${text} (edited)`)(body, where),
        where,
      ),
  },
  {
    name: 'another model with other tools',
    truth: [{ by: 'client', place: 'model' }],
    client: (body, where) =>
      inTools((tools) => tools.slice(1))(
        { ...body, model: `${String(body['model'])}-fast` },
        where,
      ),
  },
  {
    name: 'two messages change at once',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: (body, where) =>
      inItem('prompt', (text) => text.slice(5))(
        inItem('answer', (text) => text.slice(5))(body, where),
        where,
      ),
  },
  // Models.
  {
    name: 'the model gets its dated name',
    truth: [{ by: 'client', place: 'model' }],
    client: (body) => ({ ...body, model: `${String(body['model'])}-20260901` }),
  },
  {
    name: 'one request goes to another model, and the next one back',
    truth: [{ by: 'client', place: 'model' }],
    client: (body, _, step) =>
      step === 0 ? { ...body, model: `${String(body['model'])}-mini` } : body,
    repeats: true,
  },
  // Messages.
  {
    name: 'the client clears an old output',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: inItem('result', () => '[Old tool result content cleared]'),
  },
  {
    name: 'the client cuts an old output',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: inItem('result', (text) => `${text.slice(0, 200)}\n[truncated]`),
  },
  {
    name: 'a reminder leaves an early prompt',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: atItem('prompt', (item) => {
      const parts = item['content'];
      return Array.isArray(parts) && parts.length > 1
        ? { ...item, content: parts.slice(1) }
        : undefined;
    }),
  },
  {
    name: 'a reminder is put behind an early prompt',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: atItem('prompt', (item, { dialect }) => {
      const parts = item['content'];
      const type = dialect === 'openai_responses' ? 'input_text' : 'text';
      const text = '<system-reminder>The todo list has changed.</system-reminder>';
      return Array.isArray(parts)
        ? { ...item, content: [...(parts as Json[]), { type, text }] }
        : { ...item, content: `${String(parts)}\n${text}` };
    }),
  },
  {
    name: 'the date in the first message changes at midnight',
    truth: [{ ...MESSAGE, change: 'date' }],
    client: inFirst((text) => text.replace('2026-11-24', '2026-11-25')),
  },
  {
    name: 'the rules of the project in the first message are written anew',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: inFirst((text) => text.replace('Use npm.', 'Use npm, and never yarn.')),
  },
  {
    name: 'the folder in the first message changes',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: inFirst((text) => text.replace('/home/u/shop', '/home/u/shop/web')),
  },
  {
    name: 'the time in an early prompt is written anew',
    // Only of the first items svc keeps digests that tell a date from other text.
    truth: [
      { ...MESSAGE, change: 'edited' },
      { ...MESSAGE, change: 'date' },
    ],
    client: inItem('prompt', (text) => text.replace('3:04 PM', '3:09 PM')),
  },
  {
    name: 'a file that an early prompt carries is read again',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: inItem('prompt', (text) => text.replace('const port = 80;', 'const port = 8080;')),
  },
  {
    name: 'an early answer loses its last space',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: inItem('answer', (text) => text.trimEnd()),
  },
  {
    name: 'an early message is written in another form of Unicode',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: inItem('prompt', (text) => text.normalize('NFD')),
  },
  {
    name: 'the arguments of an early call are written anew',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: atItem('call', (item) =>
      JSON.parse(JSON.stringify(item).replaceAll('ls -la', 'ls -l -a')),
    ),
  },
  {
    name: 'a message is put into the history',
    truth: [{ ...MESSAGE, change: 'added' }],
    client: inList((list, { prompt, dialect }) => [
      ...list.slice(0, prompt),
      saidIn(dialect, 'user', 'By the way: the port is 8080.'),
      saidIn(dialect, 'assistant', 'Noted.'),
      ...list.slice(prompt),
    ]),
  },
  {
    name: 'two answers change places',
    truth: [MESSAGE],
    client: inList((list, { prompt, answer }) => {
      const other = list.findIndex((_, at) => at > answer && kindsAt(list, at) === 'answer');
      if (other < 0 || prompt < 0) return list;
      return list.map((item, at) =>
        at === answer ? (list[other] ?? item) : at === other ? (list[answer] ?? item) : item,
      );
    }),
  },
  {
    name: 'the results of two calls change places',
    only: CLAUDE,
    truth: [MESSAGE],
    client: atItem('result', (item) => ({
      ...item,
      content: (item['content'] as Json[]).toReversed(),
    })),
  },
  {
    name: 'a picture in an early message is replaced',
    only: CLAUDE,
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: inList((list) =>
      list.map((item, at) => {
        const text = JSON.stringify(item).replace('iVBORw0KGgo=', 'R0lGODlhAQABAAAAACw=');
        return at === 0 ? (JSON.parse(text) as Json) : item;
      }),
    ),
  },
  {
    name: 'the client leaves out the oldest exchange and keeps the rest',
    truth: [{ ...MESSAGE, change: 'removed' }],
    client: inList((list, { dialect }) => {
      const second = list.findIndex((_, at) => at > 1 && kindsAt(list, at) === 'prompt');
      const head = dialect === 'openai_responses' ? list.slice(0, 1) : [];
      return [...head, ...list.slice(second)];
    }),
  },
  {
    name: 'a compaction that keeps the last two exchanges',
    truth: [undefined, MESSAGE],
    client: inList((list, { dialect, seed, newest }) => {
      const prompts = list.flatMap((_, at) =>
        at < newest && kindsAt(list, at) === 'prompt' ? [at] : [],
      );
      return [
        saidIn(dialect, 'user', `Summary: ${prose(seed, 300)}`),
        saidIn(dialect, 'assistant', 'I go on from there.'),
        ...list.slice(prompts.at(-2) ?? 0),
      ];
    }),
    repeats: true,
  },
  {
    name: 'the person takes the newest exchange back and asks something else',
    truth: [undefined],
    client: inList((list, { dialect, newest, prompt }) => {
      const last = list.findLastIndex(
        (_, at) => at < newest && at > prompt && kindsAt(list, at) === 'prompt',
      );
      return last < 0
        ? list
        : [
            ...list.slice(0, last),
            marked(dialect, saidIn(dialect, 'user', 'Something else.')),
            ...list.slice(newest + 1),
          ];
    }),
    repeats: true,
  },
  {
    name: 'all names of calls are given anew',
    truth: [{ ...MESSAGE, change: 'edited' }],
    client: (body) => JSON.parse(JSON.stringify(body).replaceAll('"call_', '"id_')) as Body,
  },
  // Thinking.
  {
    name: 'the client leaves reasoning out',
    only: CODEX,
    truth: [THINKING],
    client: inList((list) => list.filter(({ type }) => type !== 'reasoning')),
  },
  {
    name: 'the client leaves out the thinking of the first half',
    only: CLAUDE,
    truth: [THINKING],
    client: inList((list, { answer }) =>
      list.map((item, at) =>
        at <= answer && item['role'] === 'assistant'
          ? {
              ...item,
              content: (item['content'] as Json[]).filter(({ type }) => type !== 'thinking'),
            }
          : item,
      ),
    ),
  },
  // Settings that count, and those that do not.
  {
    name: 'thinking is switched off',
    only: CLAUDE,
    truth: [{ ...SETTINGS, name: 'thinking' }],
    client: (body) => ({ ...body, thinking: { type: 'disabled' } }),
  },
  {
    name: 'the form of the answer changes',
    only: CODEX,
    truth: [{ ...SETTINGS, name: 'text.format' }],
    client: (body) => ({ ...body, text: { format: { type: 'json_object' } } }),
  },
  {
    name: 'settings that no cache knows change',
    truth: [undefined],
    client: (body) => ({
      ...body,
      temperature: 0.2,
      metadata: { user_id: 'another' },
      ...(body['max_tokens'] === undefined
        ? { parallel_tool_calls: false }
        : { max_tokens: 9_000 }),
    }),
  },
  {
    name: 'a message becomes a string',
    only: CLAUDE,
    truth: [undefined],
    client: atItem('answer', (item) => {
      const [only, ...others] = item['content'] as Json[];
      return others.length === 0 ? { ...item, content: only?.['text'] } : undefined;
    }),
  },
  // Marks.
  {
    name: 'the mark moves from the system prompt to the tools',
    only: CLAUDE,
    truth: [undefined],
    client: (body) => ({
      ...body,
      system: (body['system'] as Json[]).map((part) => ({ ...part, cache_control: undefined })),
      tools: (body['tools'] as Json[]).map((tool, at, all) =>
        at === all.length - 1 ? { ...tool, ...MARK } : tool,
      ),
    }),
  },
  {
    name: 'the marks ask for an hour',
    only: CLAUDE,
    truth: [undefined],
    client: (body) =>
      JSON.parse(
        JSON.stringify(body).replaceAll('{"type":"ephemeral"}', '{"type":"ephemeral","ttl":"1h"}'),
      ) as Body,
  },
  {
    name: 'all marks are gone',
    only: CLAUDE,
    truth: [{ by: 'client', place: 'marks', change: 'removed' }],
    client: (body) =>
      JSON.parse(
        JSON.stringify(body).replaceAll(',"cache_control":{"type":"ephemeral"}', ''),
      ) as Body,
    repeats: true,
  },
  {
    name: 'an attachment in the newest message',
    only: CLAUDE,
    truth: [undefined],
    client: inList((list, { newest }) =>
      list.map((item, at) => {
        if (at !== newest) return item;
        const source = { type: 'text', media_type: 'text/plain', data: prose(5, 200) };
        return { ...item, content: [{ type: 'document', source }, ...(item['content'] as Json[])] };
      }),
    ),
  },
  // Time and the provider.
  {
    name: 'a pause just below the lifetime',
    truth: [undefined],
    pauses: (dialect) => (hasLongCache(dialect) ? 4 : 28),
  },
  {
    name: 'an early message changes during a long pause',
    truth: [{ by: 'time' }, MESSAGE],
    pauses: (dialect) => (hasLongCache(dialect) ? 9 : 45),
    client: inItem('prompt', (text) => `${text} (edited)`),
  },
  {
    name: 'a weekend',
    truth: [{ by: 'time' }],
    pauses: () => 60 * 60,
  },
  {
    name: 'the provider forgets while settings that do not count change',
    truth: [{ by: 'provider' }],
    forgets: true,
    client: (body) => ({ ...body, temperature: 0.2, metadata: { user_id: 'another' } }),
  },
  // svc, alone and together with the client.
  {
    name: 'svc leaves out an old output',
    truth: [{ by: 'svc', own: 'outputs' }],
    own: ({ result }) => [result, '\noutputs m_1 80'],
  },
  {
    // The tools stand in front of the block: they alone cost the whole prompt.
    name: 'svc changes a block while a server connects late',
    truth: [{ ...TOOLS, change: 'added', name: 'github', isServer: true }],
    own: ({ prompt }) => [prompt, '\nblock part x'],
    client: inTools((tools, { dialect }) => [...tools, ...serverTools(dialect, 'github')]),
  },
  {
    name: 'svc changes a block while the client changes a later message',
    truth: [{ by: 'svc', own: 'block' }],
    own: ({ prompt }) => [prompt, '\nblock part x'],
    client: inList((list, { prompt }) => {
      const later = list.findIndex((_, at) => at > prompt && kindsAt(list, at) === 'result');
      return list.map((item, at) => (at === later ? mapText(item, (text) => `${text}!`) : item));
    }),
  },
];

function nameOf(tool: Json): string {
  return String(tool['name'] ?? (tool['function'] as Json | undefined)?.['name']);
}

function serverTools(dialect: Dialect, server: string): Json[] {
  return ['find', 'write'].map((name) =>
    toolOf(dialect, `mcp__${server}__${name}`, `Works with ${server}.`),
  );
}

function withParameter(tool: Json, name: string): Json {
  return JSON.parse(
    JSON.stringify(tool).replace(
      '{"type":"object"}',
      `{"type":"object","properties":{"${name}":{"type":"number"}}}`,
    ),
  ) as Json;
}

type Change = (body: Body, where: Where) => Body;

function inTools(change: (tools: readonly Json[], where: Where) => readonly Json[]): Change {
  return (body, where) => withTools(body, (tools) => change(tools, where));
}

function inSystem(change: (text: string) => string): Change {
  return (body, { dialect }) => withSystem(body, dialect, change);
}

function inList(change: (list: readonly Json[], where: Where) => readonly Json[]): Change {
  return (body, where) => withList(body, where.dialect, (list) => change(list, where));
}

type Kind = 'prompt' | 'call' | 'result' | 'answer' | 'context' | 'reasoning';

/** `change` gives undefined where the item has no such thing. */
function atItem(
  kind: 'prompt' | 'call' | 'result' | 'answer',
  change: (item: Json, where: Where) => Json | undefined,
): Change {
  return inList((list, where) =>
    list.map((item, at) => (at === where[kind] ? (change(item, where) ?? item) : item)),
  );
}

function inItem(
  kind: 'prompt' | 'call' | 'result' | 'answer',
  change: (text: string) => string,
): Change {
  return atItem(kind, (item) => mapText(item, change));
}

function inFirst(change: (text: string) => string): Change {
  return inList((list) => list.map((item, at) => (at === 0 ? mapText(item, change) : item)));
}

/** Changes the last text of an item. */
function mapText(item: Json, change: (text: string) => string): Json {
  if (typeof item['output'] === 'string') return { ...item, output: change(item['output']) };
  const content = item['content'];
  if (typeof content === 'string') return { ...item, content: change(content) };
  const parts = content as Json[];
  return {
    ...item,
    content: parts.map((part, at) => {
      if (at < parts.length - 1) return part;
      if (part['type'] === 'tool_result') {
        return { ...part, content: change(String(part['content'])) };
      }
      return { ...part, text: change(String(part['text'])) };
    }),
  };
}

function saidIn(dialect: Dialect, role: 'user' | 'assistant', text: string): Json {
  if (dialect === 'openai_chat_completions') return { role, content: text };
  if (dialect === 'anthropic_messages') return { role, content: [{ type: 'text', text }] };
  const type = role === 'assistant' ? 'output_text' : 'input_text';
  return { type: 'message', role, content: [{ type, text }] };
}

/** Claude Code marks the newest message for the cache. */
function marked(dialect: Dialect, item: Json): Json {
  if (dialect !== 'anthropic_messages') return item;
  const parts = item['content'] as Json[];
  return { ...item, content: [...parts.slice(0, -1), { ...parts.at(-1), ...MARK }] };
}

function kindsAt(list: readonly Json[], at: number): Kind {
  const item = list[at] ?? {};
  const text = JSON.stringify(item);
  if (item['type'] === 'reasoning') return 'reasoning';
  if (/"tool_result"|"function_call_output"|"role":"tool"/.test(text)) return 'result';
  if (/"tool_use"|"function_call"|"tool_calls"/.test(text)) return 'call';
  if (item['role'] === 'assistant') return 'answer';
  return text.includes('<environment_context>') && at === 0 && item['type'] === 'message'
    ? 'context'
    : 'prompt';
}

const CONTEXT =
  '<system-reminder>\n# claudeMd\nUse npm. The code is in /home/u/shop.\n# currentDate\nToday is 2026-11-24.\n</system-reminder>';
const ENVIRONMENT =
  '<environment_context>\n<cwd>/home/u/shop</cwd>\nUse npm.\n<current_date>2026-11-24</current_date>\n</environment_context>';

function systemOf(seed: number): string {
  return [
    prose(seed, 2_500),
    `Working directory: /home/u/shop`,
    DATED,
    'Started at 2026-11-24T10:15:03Z.',
    'gitStatus:\n M src/a.ts',
    'Recent commits:\n7701b48 Mend the port',
    'Tokens used: 48213',
    '',
  ].join('\n');
}

function promptText(seed: number): string {
  return `${prose(seed, 60 + (seed % 150))} Café. Current time: 11/24/2026, 3:04 PM.\n<file path="a.ts">const port = 80;</file> Go on.`;
}

/** A session of an agent: each prompt leads to two calls, their results and an answer. */
function conversation(dialect: Dialect, rounds: number, seed: number): Body[] {
  const tools = [
    ...Array.from({ length: 7 }, (_, at) => toolOf(dialect, `tool_${at}`, prose(seed + at, 80))),
    ...serverTools(dialect, 'linear'),
  ];
  const shell = { tools, system: systemOf(seed) };
  const list: Json[] = [];
  const bodies: Body[] = [];
  if (dialect === 'openai_responses') list.push(saidIn(dialect, 'user', ENVIRONMENT));
  for (let round = 0; round < rounds; round += 1) {
    const text = promptText(seed * 31 + round);
    if (round > 0 || dialect === 'openai_responses') {
      const reminder = '<system-reminder>Files have changed.</system-reminder>';
      const said = saidIn(dialect, 'user', text);
      list.push(
        dialect === 'openai_chat_completions'
          ? {
              ...said,
              content: [
                { type: 'text', text: reminder },
                { type: 'text', text },
              ],
            }
          : {
              ...said,
              content: [
                { ...(said['content'] as Json[])[0], text: reminder },
                ...(said['content'] as Json[]),
              ],
            },
      );
    } else list.push(firstPrompt(dialect, text));
    bodies.push(bodyOf(dialect, shell, list));
    list.push(...callsAndResults(dialect, `${seed}_${round}`, seed * 37 + round));
    bodies.push(bodyOf(dialect, shell, list));
    const answer = saidIn(dialect, 'assistant', `${prose(seed * 41 + round, 40)} `);
    if (dialect === 'openai_responses') list.push(reasoning(`rs_${seed}_${round}_b`));
    list.push(answer);
  }
  return bodies;
}

function firstPrompt(dialect: Dialect, text: string): Json {
  const content = [
    { type: 'text', text },
    { type: 'text', text: CONTEXT },
  ];
  if (dialect !== 'anthropic_messages') return { role: 'user', content };
  const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' };
  return { role: 'user', content: [{ type: 'image', source }, ...content] };
}

function reasoning(id: string): Json {
  return { type: 'reasoning', id, summary: [], encrypted_content: `${id}${prose(3, 30)}` };
}

function callsAndResults(dialect: Dialect, id: string, seed: number): Json[] {
  const ids = [`call_${id}_a`, `call_${id}_b`];
  const outputs = [prose(seed, 80), prose(seed + 1, 260)];
  const input = { command: 'ls -la' };
  if (dialect === 'anthropic_messages') {
    const thinking = prose(seed + 2, 40);
    const signature = Buffer.from(thinking).toString('base64').slice(0, 120);
    return [
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking, signature },
          { type: 'text', text: 'I look.' },
          ...ids.map((one) => ({ type: 'tool_use', id: one, name: 'tool_0', input })),
        ],
      },
      {
        role: 'user',
        content: ids.map((one, at) => ({
          type: 'tool_result',
          tool_use_id: one,
          content: outputs[at],
        })),
      },
    ];
  }
  const args = JSON.stringify(input);
  if (dialect === 'openai_responses') {
    return [
      reasoning(`rs_${id}_a`),
      ...ids.map((call_id) => ({
        type: 'function_call',
        call_id,
        name: 'tool_0',
        arguments: args,
      })),
      ...ids.map((call_id, at) => ({ type: 'function_call_output', call_id, output: outputs[at] })),
    ];
  }
  return [
    {
      role: 'assistant',
      content: 'I look.',
      tool_calls: ids.map((one) => ({
        id: one,
        type: 'function',
        function: { name: 'tool_0', arguments: args },
      })),
    },
    ...ids.map((tool_call_id, at) => ({ role: 'tool', tool_call_id, content: outputs[at] })),
  ];
}

function bodyOf(
  dialect: Dialect,
  { tools, system }: { readonly tools: readonly Json[]; readonly system: string },
  list: readonly Json[],
): Body {
  if (dialect === 'openai_responses') {
    return { model: 'gpt-5.6', instructions: system, tools, input: [...list] };
  }
  if (dialect === 'openai_chat_completions') {
    return { model: 'gpt-5.6', tools, messages: [{ role: 'system', content: system }, ...list] };
  }
  const messages = list.map((item, at) => (at < list.length - 1 ? item : marked(dialect, item)));
  return {
    model: 'claude-opus-5',
    max_tokens: 100,
    system: [
      { type: 'text', text: 'You are an agent.' },
      { type: 'text', text: system, ...MARK },
    ],
    tools,
    messages,
  };
}

interface Case {
  readonly habit: Habit;
  readonly dialect: Dialect;
  readonly seed: number;
  readonly rounds: number;
  readonly at: number;
}

function casesOf(habit: Habit, nth: number): Case[] {
  return (habit.only ?? DIALECTS).flatMap((dialect) =>
    Array.from({ length: PLACES }, (_, place) => {
      const seed = 1 + nth * 97 + place * 1_009;
      const rounds = 5 + (seed % 7);
      // Behind the third prompt at the earliest: an early exchange must be there to be changed.
      const at = 6 + (seed % (rounds * 2 - 8));
      return { habit, dialect, seed, rounds, at };
    }),
  );
}

function whereOf({ dialect, at, seed }: Case, bodies: readonly Body[]): Where {
  const listIn = (index: number): readonly Json[] => {
    const list = bodies[index]?.[dialect === 'openai_responses' ? 'input' : 'messages'] as Json[];
    return dialect === 'openai_chat_completions' ? list.slice(1) : list;
  };
  const before = listIn(at - 1);
  const early = (kind: Kind): number => {
    const places = before.flatMap((_, index) =>
      index > 1 && kindsAt(before, index) === kind ? [index] : [],
    );
    return places[seed % Math.max(1, Math.ceil(places.length / 2))] ?? -1;
  };
  return {
    dialect,
    seed,
    prompt: early('prompt'),
    call: early('call'),
    result: early('result'),
    answer: early('answer'),
    newest: listIn(at).length - 1,
  };
}

/** 'right', 'cheap' where the provider read nearly everything in spite of the edit, or what was said instead. */
function play(one: Case): string {
  const { habit, dialect, rounds, seed, at } = one;
  const bodies = conversation(dialect, rounds, seed);
  const where = whereOf(one, bodies);
  const stage = new MissStage(dialect);
  let verdict = 'right';
  for (const [index, body] of bodies.entries()) {
    const step = index - at;
    if (step < -4 || step > 3) continue;
    if (step === 0) stage.pause(habit.pauses?.(dialect) ?? 0);
    if (step === 0 && habit.forgets === true) stage.forget();
    const client = step >= 0 ? (habit.client?.(body, where, step) ?? body) : body;
    const own = step >= 0 ? habit.own?.(where) : undefined;
    const sent =
      own === undefined
        ? client
        : inList((list) =>
            list.map((item, place) =>
              place === own[0] ? mapText(item, (text) => `${text} [svc]`) : item,
            ),
          )(client, where);
    const changes: OwnChanges = own === undefined ? new Map() : new Map([[own[0], own[1]]]);
    const { miss, usage } = stage.send(client, sent, changes);
    const label = `${habit.name} (${dialect}, request ${index + 1}, edit at ${at + 1})`;
    if (step < 0 && miss !== undefined) return `${label} too early: ${JSON.stringify(miss)}`;
    if (step > 0 && miss !== undefined && habit.repeats !== true) {
      return `${label} again: ${JSON.stringify(miss)}`;
    }
    if (step !== 0 || habit.truth.some((truth) => isTrue(truth, miss))) continue;
    const total = usage.input + usage.cacheRead + usage.cacheWrite;
    if (miss === undefined && usage.cacheRead >= 0.6 * total) verdict = 'cheap';
    else return `${label}: ${JSON.stringify(miss ?? usage)}`;
  }
  return verdict;
}

function isTrue(truth: Truth, miss: CacheMiss | undefined): boolean {
  if (truth === undefined || miss === undefined) return truth === miss;
  return Object.entries(truth).every(([name, value]) => miss[name as keyof CacheMiss] === value);
}

test('the culprit of a cache miss is what the client did, for each habit, and svc is named first', () => {
  const cases = HABITS.flatMap((habit, nth) => casesOf(habit, nth));
  const verdicts = cases.map(play);
  const wrong = verdicts.filter((verdict) => verdict !== 'right' && verdict !== 'cheap');
  const nameOfCase = ({ habit, dialect }: Case): string => `${habit.name} (${dialect})`;
  const judged = new Set(cases.filter((_, at) => verdicts[at] !== 'cheap').map(nameOfCase));
  expect(cases.map(nameOfCase).filter((name) => !judged.has(name))).toEqual([]);
  expect(wrong.filter((text) => /^svc .*"by":"client"/.test(text))).toEqual([]);
  expect(wrong.length, wrong.join('\n')).toBeLessThanOrEqual(WRONG_SHARE_MAX * verdicts.length);
}, 600_000);
