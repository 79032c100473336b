import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RequestView } from '../../src/core/conversation/view.ts';
import { IDENTITY_HEADERS } from '../../src/core/request/identity.ts';
import { statedFactsOf } from '../../src/core/request/stated-facts.ts';
import { viewRequest } from '../../src/core/request/request-view.ts';

/** The facts that a request states are remembered beside its shell: they must be those of this very request. */

const NAMES = [...IDENTITY_HEADERS, 'x-svc-memory-space', 'anthropic-beta', 'content-length'];
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

test('what is remembered of an earlier request is what reading this one gives', () => {
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

const ASKED = [{ role: 'user', content: 'hello' }];

test.each([...IDENTITY_HEADERS, 'x-svc-memory-space', 'anthropic-beta'])(
  'another %s has what is remembered read again',
  (header) => {
    const first = viewOf(ASKED);
    const again = viewOf(ASKED, first);
    for (const written of [header, header.toUpperCase()]) {
      const before = statedFactsOf([written, 'claude-cli/1'], first);
      expect(statedFactsOf([written, 'claude-cli/1'], again)).toBe(before);
      expect(statedFactsOf([written, 'codex_exec/context-1m'], again)).not.toBe(before);
    }
  },
);

test('a header that is not read may change', () => {
  const first = viewOf(ASKED);
  const before = statedFactsOf(['Content-Length', '1', 'X-Request-Id', 'a'], first);
  const view = viewOf([...ASKED, { role: 'assistant', content: 'hi' }], first);
  expect(statedFactsOf(['Content-Length', '2', 'X-Request-Id', 'b'], view)).toBe(before);
});
