import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RequestView } from '../../src/core/conversation/view.ts';
import { statedFactsOf } from '../../src/proxy/read-request.ts';
import { viewRequest } from '../support/view-of.ts';

/** A request that continues another one shares items and shell with it, and states what it would state alone. */

const NAMES = [
  'user-agent',
  'originator',
  'x-claude-code-agent-id',
  'x-claude-code-request-class',
  'x-claude-code-session-id',
  'x-codex-turn-metadata',
  'x-openai-subagent',
  'x-svc-client',
  'thread-id',
  'session-id',
  'x-session-id',
  'x-svc-memory-space',
  'anthropic-beta',
  'content-length',
];
const VALUES = [
  '',
  'main',
  'subagent',
  'claude-cli/2.1',
  'codex_exec/1',
  'OpenAI/JS 7',
  'project/x',
  'context-1m-2025-08-07',
  '{"thread_source":"user","request_kind":"turn","workspaces":{"/w":{}}}',
  '{"request_kind":"compaction"}',
];

const name = fc.constantFrom(...NAMES).chain((it) => fc.constantFrom(it, it.toUpperCase()));
const headers = fc.oneof(
  fc.array(fc.tuple(name, fc.constantFrom(...VALUES)), { maxLength: 3 }),
  fc.constant([['originator', 'codex_exec']]),
);

const TEXTS = [
  'hello',
  'build the shop',
  'You are performing a CONTEXT CHECKPOINT COMPACTION.',
  '<environment_context>\n<cwd>/home/a</cwd>\n</environment_context>',
  '<environment_context>\n<cwd>/home/b</cwd>\n</environment_context>',
  '<environment_context>\n<cwd>/home/a</cwd>\nCurrent branch: next\n</environment_context>',
  'Working directory: /home/c',
  'You are a title generator',
];

const message = fc.oneof(
  fc.record({
    role: fc.constantFrom('user', 'assistant', 'system'),
    content: fc.constantFrom(...TEXTS),
  }),
  fc.record({ type: fc.constant('item_reference'), id: fc.constant('x') }),
);

const request = fc.record({
  headers,
  messages: fc.array(message, { minLength: 1, maxLength: 4 }),
  /** The dialect's list comes last, so that what precedes it stays one shell. */
  isKept: fc.boolean(),
});

function viewOf(messages: readonly unknown[], previous?: RequestView): RequestView {
  const body = { model: 'm', tools: [{ name: 'Bash' }], input: messages };
  const view = viewRequest(Buffer.from(JSON.stringify(body)), 'openai_responses', previous);
  if (view === undefined) throw new Error('The body was not read.');
  return view;
}

function factsOf(list: readonly string[], view: RequestView): unknown {
  try {
    return statedFactsOf(list, view);
  } catch (error) {
    return String(error);
  }
}

test('a request that continues another one states what it states alone', () => {
  fc.assert(
    fc.property(fc.array(request, { minLength: 2, maxLength: 6 }), (requests) => {
      let previous: RequestView | undefined;
      let list: readonly string[] = [];
      for (const { headers: pairs, messages, isKept } of requests) {
        // Half of the requests have the headers of the one before, and one that changed.
        list = isKept ? list : pairs.flat();
        const view = viewOf(messages, previous);
        expect(view.shell).toBe(previous?.shell ?? view.shell);
        expect(factsOf([...list], view)).toEqual(factsOf(list, viewOf(messages)));
        previous = view;
      }
    }),
    { numRuns: 1_000 },
  );
});
