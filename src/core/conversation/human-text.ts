import type { ClientOrder } from './view.ts';
import { type Meaning, WRAPPERS } from './wrappers.ts';

/**
 * Tells what a person typed from what the client put around it.
 *
 * Getting this wrong in one direction loses a memory; in the other it stores a file's or a model's
 * words as the person's own, for good. So a doubtful block counts as not typed.
 *
 * Texts here may be hostile (a file that the client pasted in): every rule reads a text a constant
 * number of times, and no regular expression may backtrack over it.
 */

/** What the texts of one user message say. */
export interface UserText {
  /** What the person typed, several blocks joined by a newline; '' when nobody typed anything. */
  readonly humanText: string;
  /** The person stopped the assistant before typing what is in this message. */
  readonly isInterruption: boolean;
  readonly clientOrder?: ClientOrder;
}

/** Blocks that say only this, whole. */
const INJECTED_WHOLE: ReadonlySet<string> = new Set([
  'Tool loaded.', // Claude Code: follows the result of ToolSearch.
  'The following tool was executed by the user', // opencode: a shell command of the person's own.
  'What did we do so far?', // opencode: stands before the summary of a compaction.
  '<image>', // Codex: stands before and after the part that holds a picture.
  '</image>',
]);

/** The order is not always the first sentence: measured below 900 characters in Claude Code. */
const ORDER_CHARS_MAX = 900;
const SUMMARY_ORDER = 'Your task is to create a detailed summary of the conversation so far';

/**
 * `texts`: the message's text blocks in order. `isReply`: the message also holds a tool result;
 * what stands beside one is the client's, unless a frame says otherwise.
 */
export function readUserText(texts: readonly string[], isReply: boolean): UserText {
  const typed: string[] = [];
  let isOpen = !isReply;
  let isInterruption = false;
  let skipsNext = false;
  for (const text of texts) {
    if (skipsNext) {
      skipsNext = false;
      continue;
    }
    const meaning = meaningOf(text);
    if (meaning === 'interruption') {
      isOpen = true;
      isInterruption ||= typed.length === 0;
    }
    skipsNext = meaning === 'command' || meaning === 'announcement';
    const own = typedIn(text, meaning, isOpen);
    if (own !== '') typed.push(own);
  }
  const clientOrder = orderIn(texts.at(-1) ?? '');
  const humanText = typed.join('\n');
  return { humanText, isInterruption, ...(clientOrder !== undefined && { clientOrder }) };
}

/** True for a block that is a client's wrapper as a whole: its text may state the environment. */
export function isWrapper(text: string): boolean {
  return meaningOf(text) !== undefined || isOneElement(text);
}

function meaningOf(text: string): Meaning | undefined {
  const start = text.trimStart();
  return WRAPPERS.find((wrapper) => start.startsWith(wrapper.starts))?.meaning;
}

function typedIn(text: string, meaning: Meaning | undefined, isOpen: boolean): string {
  if (meaning === undefined) return isOpen ? unwrap(text) : '';
  if (meaning === 'queued') {
    return between(text, 'while you were working:\n', '\n\nThis is how Claude Code surfaces');
  }
  if (meaning === 'command') return between(text, '<command-args>', '</command-args>').trim();
  if (meaning === 'request' && isOpen) return after(text, '## My request for Codex:').trim();
  return '';
}

function orderIn(text: string): ClientOrder | undefined {
  const meaning = meaningOf(text);
  if (meaning === 'compaction' || meaning === 'side') return meaning;
  return text.slice(0, ORDER_CHARS_MAX).includes(SUMMARY_ORDER) ? 'compaction' : undefined;
}

/** '' when one of the two marks is missing. */
function between(text: string, before: string, end: string): string {
  const rest = after(text, before);
  const length = rest.indexOf(end);
  return length === -1 ? '' : rest.slice(0, length);
}

/** '' when the mark is missing. */
function after(text: string, mark: string): string {
  const start = text.indexOf(mark);
  return start === -1 ? '' : text.slice(start + mark.length);
}

/** What is left of a block without the parts that clients glue to typed text. */
function unwrap(text: string): string {
  if (INJECTED_WHOLE.has(text.trim()) || isOneElement(text) || isShellRun(text)) return '';
  return withoutStdin(withoutFiles(withoutDate(withoutReminders(text)))).trim();
}

/**
 * A block that is one XML element from end to end, or begins and ends like one. Names of HTML
 * elements do not count: people paste pages and ask about them, and no client wraps text in one.
 */
function isOneElement(text: string): boolean {
  const trimmed = text.trim();
  const name = /^<([a-z][a-z0-9_-]{0,63})[\s>]/.exec(trimmed)?.[1];
  if (name === undefined || HTML_NAMES.has(name)) return false;
  return trimmed.endsWith(`</${name}>`);
}

const HTML_NAMES: ReadonlySet<string> = new Set(
  (
    'a abbr article aside audio b blockquote body br button canvas caption code dd del div dl dt em fieldset ' +
    'figure footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input label li link main nav ol ' +
    'option p pre script section select small span strong style sub sup svg table tbody td template textarea ' +
    'tfoot th thead tr u ul video'
  ).split(' '),
);

const REMINDER = '<system-reminder>';
const REMINDER_END = '</system-reminder>';

/** Claude Code and Qwen Code: reminders stand before, after or between typed text. */
export function withoutReminders(text: string): string {
  let start = text.indexOf(REMINDER);
  if (start === -1) return text;
  const kept: string[] = [];
  let from = 0;
  while (start !== -1) {
    const end = text.indexOf(REMINDER_END, start);
    if (end === -1) break;
    kept.push(text.slice(from, start));
    from = end + REMINDER_END.length;
    start = text.indexOf(REMINDER, from);
  }
  kept.push(text.slice(from));
  const rest = kept.map((piece) => piece.trim()).filter((piece) => piece !== '');
  return withoutLeftover(rest.join('\n'));
}

// A reminder may quote a file that holds the closing tag. What stands before a tag that closes
// nothing came out of such a file.
function withoutLeftover(text: string): string {
  const end = text.lastIndexOf(REMINDER_END);
  return end === -1 ? text : text.slice(end + REMINDER_END.length);
}

/** Copilot CLI: the date stands before what was typed, in the same block. */
function withoutDate(text: string): string {
  const start = text.trimStart();
  if (!start.startsWith('<current_datetime>')) return text;
  const end = start.indexOf('</current_datetime>');
  return end === -1 ? text : start.slice(end + '</current_datetime>'.length);
}

/** pi: the ! prefix, with what the command printed. */
function isShellRun(text: string): boolean {
  const end = text.startsWith('Ran `') ? text.indexOf('`\n') : -1;
  const printed = end === -1 ? '' : text.slice(end + 2);
  return printed.startsWith('```\n') || printed.startsWith('(no output)');
}

/** pi: files that the person named with @ stand before what was typed, in the same block. */
function withoutFiles(text: string): string {
  if (!text.trimStart().startsWith('<file name="')) return text;
  const end = text.lastIndexOf(FILE_END);
  return end === -1 ? text : text.slice(end + FILE_END.length);
}

const FILE_END = '</file>\n';

/** Codex: what was piped in stands after what was typed. */
function withoutStdin(text: string): string {
  const start = text.indexOf('\n\n<stdin>\n');
  return start !== -1 && text.trimEnd().endsWith('</stdin>') ? text.slice(0, start) : text;
}
