import { expect, test } from 'vitest';
import { captureHuman } from '../../src/core/captures.ts';
import type { Dialect } from '../../src/core/dialect.ts';
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
  ['a private text', 'openai_chat_completions', '<private>My salary is 1.</private>'],
  ['a recalled block', 'openai_chat_completions', '<svc-memory note="x">\n- old\n</svc-memory>'],
])('of a message that is %s nothing is kept', (_, dialect, content) => {
  expect(kept(dialect, content)).toBeUndefined();
});

test('a pasted log is kept with its secrets masked, the question first', () => {
  const key = `AKIA${'Q7'.repeat(8)}`;
  const log = Array.from({ length: 40 }, (_, at) => `12:00:${at} worker ${at} ready`).join('\n');
  const masked = kept('anthropic_messages', `Why does it stop?\n\n${log}\naws_key=${key}\n`);
  expect(masked).toMatch(/^Why does it stop\?/);
  expect(masked).not.toContain(key);
});
