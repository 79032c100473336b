import { expect, test } from 'vitest';
import { captureHuman } from '../../src/core/memory/captures.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { viewOf } from '../support/view-of.ts';

/**
 * Shapes that the recordings do not hold, written after what clients document: what of a user's
 * message becomes a memory. The recorded ones are in human-text.test.ts.
 */

const TYPED = 'The staging database of the walrus shop listens on port 6431.';
const REMINDER =
  '<system-reminder>\nThe date is 2026-11-20. Todo list: port the parser.\n</system-reminder>';
const HOOK =
  '<system-reminder>\nUserPromptSubmit hook success: branch main, 3 files changed\n</system-reminder>';
const SUMMARY =
  'This session is being continued from a previous conversation that ran out of context. ' +
  'The user asked to port the parser, and the assistant changed src/parse.ts.';

function kept(dialect: Dialect, content: unknown): string | undefined {
  const item = { role: 'user', content };
  const body = dialect === 'openai_responses' ? { input: [item] } : { messages: [item] };
  const text = viewOf(dialect, { model: 'm', ...body }).items.at(0)?.humanText ?? '';
  return captureHuman(text)?.text;
}

const text = (value: string) => ({ type: 'text', text: value });
const input = (value: string) => ({ type: 'input_text', text: value });

test.each<[string, Dialect, unknown]>([
  ['a hook before the prompt', 'anthropic_messages', [text(HOOK), text(TYPED)]],
  ['a hook behind the prompt', 'anthropic_messages', [text(TYPED), text(HOOK)]],
  ['several reminders', 'anthropic_messages', [text(REMINDER), text(HOOK), text(TYPED)]],
  ['a summary before the prompt', 'anthropic_messages', [text(SUMMARY), text(TYPED)]],
  ['a reminder, in a chat', 'openai_chat_completions', [text(REMINDER), text(TYPED)]],
  ['a plain string', 'openai_chat_completions', TYPED],
  ['a private part', 'openai_chat_completions', `${TYPED} <private>My salary is 1.</private>`],
  ['a private part that never closes', 'anthropic_messages', `${TYPED} <private>My salary`],
  [
    'a recalled block',
    'anthropic_messages',
    `${TYPED}\n\n<svc-memory note="x">\n- old\n</svc-memory>`,
  ],
  [
    'a file named with @, in opencode',
    'anthropic_messages',
    [
      text(TYPED),
      text('Called the Read tool with the following input: {"filePath":"/w/a.ts"}'),
      text('<path>/w/a.ts</path>\n<type>file</type>\n<content>\n1: let a;\n</content>'),
    ],
  ],
  [
    'an agent named with @, in opencode',
    'openai_responses',
    [
      input(TYPED),
      input(
        'Use the above message and context to generate a prompt and call the task tool with subagent: docs',
      ),
    ],
  ],
  [
    'files named with @, in pi',
    'openai_chat_completions',
    `<file name="/w/a.html">\n<p>\n</file>\n</p>\n</file>\n<file name="/w/b.png"></file>\n${TYPED}`,
  ],
  ['piped text', 'openai_responses', [input(`${TYPED}\n\n<stdin>\na log line\n</stdin>`)]],
])('of a message with %s what was typed is kept, and nothing else', (_, dialect, content) => {
  expect(kept(dialect, content)).toBe(TYPED);
});

test.each<[string, Dialect, unknown]>([
  ['a hook alone', 'anthropic_messages', [text(HOOK)]],
  ['a summary alone', 'anthropic_messages', SUMMARY],
  [
    'an order to summarise',
    'anthropic_messages',
    'CRITICAL: Respond with TEXT ONLY. Do NOT call tools.',
  ],
  [
    'instructions of a project',
    'openai_responses',
    [input('# AGENTS.md instructions for /w\n\nUse tabs.')],
  ],
  [
    'an environment',
    'openai_responses',
    [input('<environment_context>\n<cwd>/w</cwd>\n</environment_context>')],
  ],
  [
    'a tag of its own',
    'openai_responses',
    [input('<hook_output>\nlint: 3 problems\n</hook_output>')],
  ],
  [
    'a shell command',
    'openai_responses',
    [input('<user_shell_command>\nls\n</user_shell_command>')],
  ],
  [
    'a plan that was accepted',
    'anthropic_messages',
    'Implement the following plan:\n\n# Plan: port the parser\n\n## Context\n\nThe old one is slow.',
  ],
  [
    'what a hook said',
    'anthropic_messages',
    [text('Operation stopped by hook: another session is active in this worktree.')],
  ],
  [
    "a command of the person's own, in pi",
    'openai_chat_completions',
    'Ran `git log -1`\n```\ncommit 1f2e3d by Marta: port the parser\n```',
  ],
  ['one that printed nothing', 'openai_chat_completions', 'Ran `make clean`\n(no output)'],
  ['one in opencode', 'openai_responses', [input('The following tool was executed by the user')]],
  [
    'a summary, in pi',
    'openai_responses',
    [
      input(
        'The conversation history before this point was compacted into the following summary:\n\n<summary>\nPorted.\n</summary>',
      ),
    ],
  ],
  [
    'a continuation, in opencode',
    'openai_chat_completions',
    'Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed.',
  ],
  ['a private text', 'openai_chat_completions', '<private>My salary is 1.</private>'],
  ['a recalled block', 'openai_chat_completions', '<svc-memory note="x">\n- old\n</svc-memory>'],
])('of a message that is %s nothing is kept', (_, dialect, content) => {
  expect(kept(dialect, content)).toBeUndefined();
});

test.each([
  'Ran `make` twice, and the second time it worked: keep that in mind.',
  'Implement the following plan: first the parser, then the printer.',
  'What did we do so far about the walrus shop?',
  '<file name="a"> is how our format begins its records.',
])('what only begins like it is kept: %s', (typed) => {
  expect(kept('openai_chat_completions', typed)).toBe(typed);
});

test('a pasted log is kept with its secrets masked, the question first', () => {
  const key = `AKIA${'Q7'.repeat(8)}`;
  const log = Array.from({ length: 40 }, (_, at) => `12:00:${at} worker ${at} ready`).join('\n');
  const masked = kept('anthropic_messages', `Why does it stop?\n\n${log}\naws_key=${key}\n`);
  expect(masked).toMatch(/^Why does it stop\?/);
  expect(masked).not.toContain(key);
});
