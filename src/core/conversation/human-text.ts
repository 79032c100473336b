import type { ClientOrder } from './view.ts';

/**
 * Separates a user's typed text from the text that the client put around it.
 * If typed text is missed, svc loses a memory. If other text counts as typed, svc stores the words of a file or a model
 * as the user's own. That is worse, so a doubtful block counts as not typed.
 * The texts may be hostile (a file that the client pasted in): every rule reads a text a bounded number of times, and
 * no regular expression may take more than linear time.
 */

export interface UserText {
  /** The typed text; several blocks are joined by a newline. '' if nothing was typed. */
  readonly humanText: string;
  /** True if the user stopped the assistant before typing this message. */
  readonly isInterruption: boolean;
  /** True if the message contains a summary of the history before it. */
  readonly isSummary?: true;
  readonly clientOrder?: ClientOrder;
}

const NOTHING_SAID: UserText = { humanText: '', isInterruption: false };

/** Whole texts of blocks that no user typed. */
const INJECTED_WHOLE: ReadonlySet<string> = new Set([
  'Tool loaded.', // Claude Code: follows the result of ToolSearch.
  'The following tool was executed by the user', // opencode: a shell command that the user ran.
  'What did we do so far?', // opencode: precedes the summary of a compaction.
  '</image>', // Codex: follows the part that holds a picture.
]);

/** Cline and Roo write this sentence at the end of their own texts. */
const AUTOMATED = '(This is an automated message, so do not respond to it conversationally.)';

/**
 * Characters of a text in which SUMMARY_ORDER is searched for. In Claude Code's recorded requests the sentence is
 * within the first 900, but does not always begin the text.
 */
const ORDER_CHARS_MAX = 900;
const SUMMARY_ORDER = 'Your task is to create a detailed summary of the conversation so far';

/**
 * Reads a user message. `texts`: its text blocks in order. `isReply`: true if the message also has a tool result. In
 * such a message a text counts as typed only if its beginning or an interruption before it shows that; see Meaning.
 */
export function readUserText(texts: readonly string[], isReply: boolean): UserText {
  if (texts.length === 0) return NOTHING_SAID;
  const state: Reading = { typed: [], isOpen: !isReply, isInterruption: false, next: undefined };
  let isSummary = false;
  for (const text of texts) {
    const meaning = meaningOf(text);
    if (meaning === 'summary') {
      // Text typed before the summary belongs to the history that the summary replaces.
      isSummary = true;
      state.typed = [];
    }
    readBlock(state, text, meaning);
  }
  const clientOrder = orderIn(texts.at(-1) ?? '');
  return {
    humanText: state.typed.join('\n'),
    isInterruption: state.isInterruption,
    ...(isSummary && { isSummary }),
    ...(clientOrder !== undefined && { clientOrder }),
  };
}

interface Reading {
  typed: string[];
  /** True if a text counts as typed although it matches no row of WRAPPERS. */
  isOpen: boolean;
  isInterruption: boolean;
  /** How the next block must be read, if this block determines it. */
  next: 'skipped' | 'reply' | undefined;
}

function readBlock(state: Reading, text: string, meaning: Meaning | undefined): void {
  const { next } = state;
  state.next = undefined;
  if (next === 'skipped') return;
  if (next === 'reply') {
    addTyped(state, typedElement(text));
    return;
  }
  if (meaning === 'interruption') {
    state.isOpen = true;
    state.isInterruption ||= state.typed.length === 0;
  }
  if (meaning === 'result' || meaning === 'reply') {
    // If one block is a tool's result, the texts after it in the message are mostly tools' texts too.
    state.isOpen = false;
    if (text.trimEnd().endsWith('Result:')) state.next = meaning === 'reply' ? 'reply' : 'skipped';
  }
  if (meaning === 'command' || meaning === 'announcement') state.next = 'skipped';
  addTyped(state, typedIn(text, meaning, state.isOpen));
}

function addTyped(state: Reading, text: string): void {
  if (text !== '') state.typed.push(text);
}

/**
 * Says whether a block has the form of a text that the client writes, perhaps around typed text. Only such a block may
 * state the environment.
 */
export function isWrapper(text: string): boolean {
  return meaningOf(text) !== undefined || isOneElement(text);
}

function meaningOf(text: string): Meaning | undefined {
  const start = text.trimStart();
  return WRAPPERS.find(([starts]) =>
    typeof starts === 'string' ? start.startsWith(starts) : starts.test(start),
  )?.[1];
}

function typedIn(text: string, meaning: Meaning | undefined, isOpen: boolean): string {
  if (meaning === undefined) {
    const framed = text.trimStart().startsWith(REMINDER) ? typedInOutput(text.trimStart()) : '';
    return framed === '' && isOpen ? unwrap(text) : framed;
  }
  if (meaning === 'queued') return withoutFrameEnd(after(text, ':\n'));
  if (meaning === 'reply') return typedElement(text);
  if (meaning === 'command') return between(text, '<command-args>', '</command-args>').trim();
  if (meaning === 'request' && isOpen) return after(text, '## My request for Codex:').trim();
  return '';
}

function orderIn(text: string): ClientOrder | undefined {
  const meaning = meaningOf(text);
  if (meaning === 'compaction' || meaning === 'side') return meaning;
  return text.slice(0, ORDER_CHARS_MAX).includes(SUMMARY_ORDER) ? 'compaction' : undefined;
}

/** Returns the text between two marks; '' if one of them is missing. */
function between(text: string, before: string, end: string): string {
  const rest = after(text, before);
  const length = rest.indexOf(end);
  return length === -1 ? '' : rest.slice(0, length);
}

/** Returns the text after a mark; '' if the mark is missing. */
function after(text: string, mark: string): string {
  const start = text.indexOf(mark);
  return start === -1 ? '' : text.slice(start + mark.length);
}

/** Returns the text of a block without the parts that clients add to typed text. */
function unwrap(text: string): string {
  if (INJECTED_WHOLE.has(text.trim()) || isShellRun(text) || text.includes(AUTOMATED)) return '';
  const stated = typedElement(withoutStdin(text));
  if (stated !== '') return stated;
  if (isOneElement(text)) return '';
  const own = withoutStdin(withoutFiles(withoutReminders(text)));
  return withoutPictures(withoutElements(own)).trim();
}

/** Elements in which clients put typed text: Cline, Roo, Cursor, and Copilot in an editor. */
const TYPED_ELEMENTS = [
  'task',
  'user_message',
  'feedback',
  'answer',
  'user_query',
  'userRequest',
] as const;

/**
 * Returns the content of the element with typed text. The element opens the block, or ends it after the client's own
 * elements. Returns '' for any other block.
 */
function typedElement(text: string): string {
  const start = text.trim();
  if (!start.startsWith('<') && !/^(?:\[|The user has provided feedback)/.test(start)) return '';
  for (const name of TYPED_ELEMENTS) {
    const open = `<${name}>`;
    const at = start.startsWith(open) ? 0 : opensAtEnd(start, name);
    if (at !== -1) return between(start.slice(at), open, `</${name}>`).trim();
  }
  return '';
}

/** Returns the index of the element `name` if it ends the text or only `environment_details` follows; otherwise -1. */
function opensAtEnd(text: string, name: string): number {
  const body = withoutTrailing(text, 'environment_details').trimEnd();
  return body.endsWith(`</${name}>`) ? body.lastIndexOf(`<${name}>`) : -1;
}

/** Bound on the elements before typed text, and on those after it. No recorded request has more than four. */
const ELEMENTS_MAX = 16;
const LEADING = /^<([a-z][A-Za-z0-9_-]{0,63})[\s>]/;
const TRAILING = /<\/([a-z][A-Za-z0-9_-]{0,63})>$/;

/**
 * Removes the client's elements around typed text: dates, open files, todo lists. In front of the text, an element of
 * HTML counts as typed. Behind the text, an element counts as the client's only if its name has an underscore or a
 * hyphen, because users write other elements themselves.
 */
function withoutElements(text: string): string {
  let rest = text.trim();
  for (let count = 0; count < ELEMENTS_MAX; count += 1) {
    const name = LEADING.exec(rest)?.[1];
    const end = name === undefined || HTML_NAMES.has(name) ? -1 : rest.lastIndexOf(`</${name}>`);
    if (name === undefined || end === -1) break;
    rest = rest.slice(end + `</${name}>`.length).trimStart();
  }
  for (let count = 0; count < ELEMENTS_MAX; count += 1) {
    const name = TRAILING.exec(rest.slice(-ELEMENT_END_CHARS))?.[1];
    const shorter = name !== undefined && /[_-]/.test(name) ? withoutTrailing(rest, name) : rest;
    if (shorter === rest) break;
    rest = shorter.trimEnd();
  }
  return rest;
}

/** Characters of the longest closing tag that TRAILING matches. */
const ELEMENT_END_CHARS = 67;

/**
 * Returns the text up to the first line that opens the element `name`; the whole text if the element's closing tag does
 * not end it.
 */
function withoutTrailing(text: string, name: string): string {
  const rest = text.trimEnd();
  if (!rest.endsWith(`</${name}>`)) return text;
  const start = rest.search(new RegExp(`(?:^|\\n)[ \\t]*<${name}[\\s>]`));
  return start === -1 ? text : rest.slice(0, start);
}

/** Removes the file names of pictures that Claude Code and Codex add, because svc must not store such paths. */
function withoutPictures(text: string): string {
  if (!text.includes('[Image: ') && !text.includes('<image ')) return text;
  return text
    .replaceAll(/\[Image: (?:source|original)\b[^\n\]]{0,4096}\]/g, '')
    .replaceAll(/<image\s[^\n<>]{0,4096}>(?:\s*<\/image>)?/g, '');
}

/**
 * Says whether a block begins and ends like one XML element. HTML elements do not count: users paste pages and ask
 * about them, and no client wraps text in one.
 */
function isOneElement(text: string): boolean {
  const trimmed = text.trim();
  const name = LEADING.exec(trimmed)?.[1];
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

/** Removes the reminders that Claude Code and Qwen Code put before, after or between typed text. */
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

// Removes the text up to a closing tag that is left over. If a reminder quotes a file with such a tag, the text up to
// the reminder's own closing tag came from that file.
function withoutLeftover(text: string): string {
  const end = text.lastIndexOf(REMINDER_END);
  return end === -1 ? text : text.slice(end + REMINDER_END.length);
}

/** Says whether a block has a shell command that the user ran in the client pi (with `!`), and its output. */
function isShellRun(text: string): boolean {
  const end = text.startsWith('Ran `') ? text.indexOf('`\n') : -1;
  const printed = end === -1 ? '' : text.slice(end + 2);
  return printed.startsWith('```\n') || printed.startsWith('(no output)');
}

/** Removes files that a user of the client pi named with @: they precede the typed text in the same block. */
function withoutFiles(text: string): string {
  if (!text.trimStart().startsWith('<file name="')) return text;
  const end = text.lastIndexOf(FILE_END);
  return end === -1 ? text : text.slice(end + FILE_END.length);
}

const FILE_END = '</file>\n';

/** Removes the piped input of Codex, which follows the typed text. */
function withoutStdin(text: string): string {
  const start = text.indexOf('\n\n<stdin>\n');
  return start !== -1 && text.trimEnd().endsWith('</stdin>') ? text.slice(0, start) : text;
}

/**
 * The meaning of a block.
 * - `injected`: it is not typed.
 * - `interruption`: it is not typed, but the texts after it in the message are, even beside a tool result.
 * - `queued`: it has what the user typed while the assistant worked.
 * - `command`: only its arguments are typed, and the next block is the prompt of the command.
 * - `announcement`: it announces the next block, and neither is typed.
 * - `request`: typed text follows a heading in it.
 * - `summary`: it replaces a history, whose typed texts it may repeat.
 * - `result`: it has the output of a tool, or announces that the next block is the output.
 * - `reply`: like `result`, but it has the user's answer: the text in an element of TYPED_ELEMENTS is typed.
 * - `compaction`, `side`: the orders of the client; see ClientOrder.
 */
type Meaning =
  | 'injected'
  | 'interruption'
  | 'queued'
  | 'command'
  | 'announcement'
  | 'request'
  | 'summary'
  | 'result'
  | 'reply'
  | 'compaction'
  | 'side';

/** The beginning of a block, and its meaning. A pattern is matched at the start and takes at most linear time. */
type Wrapper = readonly [starts: string | RegExp, meaning: Meaning];

/**
 * Texts that clients send with the role of the user. Each is from the client's program or from recorded sessions. The
 * list avoids sentences that users may type too, except aider's, such as `I updated the files.` The first matching row
 * decides.
 */
const WRAPPERS: readonly Wrapper[] = [
  // --- Claude Code
  // Typed during a tool loop: a block beside the tool results.
  ['The user sent a new message while you were working:\n', 'queued'],
  // Typed during a tool loop, in older versions.
  ['The user sent the following message:\n', 'queued'],
  // The file name or the size of a picture that the user pasted.
  [/^\[Image: [^\n\]]*\]\s*$/, 'injected'],
  // The report of /context.
  [/^(?:## )?Context Usage[ \t]*\n/, 'injected'],
  // Esc was pressed. The text that the user typed next is in the same message.
  ['[Request interrupted by user', 'interruption'],
  // A custom slash command: its arguments, then its template as a block of its own.
  ['<command-message>', 'command'],
  // A command that ran inside the client (/compact, /clear); the model was not asked.
  ['<command-name>', 'injected'],
  // Caveat and output of such a command.
  ['<local-command-', 'injected'],
  // The ! prefix: a shell command of the user, and its output.
  ['<bash-', 'injected'],
  // A background task ended.
  ['<task-notification>', 'injected'],
  // The summary that replaces the history after a compaction: the model wrote it.
  ['This session is being continued from a previous conversation', 'summary'],
  // The stream ended without its last event.
  ['Your response above was cut off mid-stream.', 'injected'],
  // The answer hit max_tokens.
  ['Output token limit hit. Resume directly', 'injected'],
  // The order to summarise the history.
  ['CRITICAL: Respond with TEXT ONLY.', 'compaction'],
  // The same order in older versions.
  ['Your task is to create a detailed summary of the conversation so far', 'compaction'],
  // Asks the model what the user might type next.
  ['[SUGGESTION MODE:', 'side'],
  // Precedes the output of local commands.
  ['Caveat: The messages below were generated by the user', 'injected'],
  // The user's own hook did not let the assistant stop.
  ['Stop hook feedback:', 'injected'],
  // The output of the user's own hook that refused the prompt.
  ['Operation stopped by hook:', 'injected'],
  // An accepted plan in a new context: the model wrote it.
  ['Implement the following plan:\n\n# ', 'injected'],
  // The text of a skill that was loaded.
  ['Base directory for this skill:', 'injected'],
  // --- Codex
  // The project's instruction file.
  ['# AGENTS.md instructions', 'injected'],
  // Esc was pressed; the partial answer is not in the history.
  ['<turn_aborted>', 'interruption'],
  // The summary that follows the typed texts after a compaction.
  ['Another language model started to solve this problem', 'summary'],
  // Older versions: the typed texts and the summary in one text.
  ['You were originally given instructions from a user over one or more turns.', 'summary'],
  // Precedes the part with a picture, and names its file.
  [/^<image(?:\s[^\n<>]*)?>\s*$/, 'injected'],
  // Replaces a picture that the model cannot read.
  [/^<?image content omitted because [^\n<>]{1,200}>?\s*$/, 'injected'],
  // The order to summarise the history.
  ['You are performing a CONTEXT CHECKPOINT COMPACTION.', 'compaction'],
  // Elements with the state of the session. They may have attributes.
  [
    /^<(?:environment_context|user_instructions|user_shell_command|subagent_notification|skill|user_action|rollout_budget)[> ]/,
    'injected',
  ],
  // The editor extension lists open files before the typed text.
  ['# Context from my IDE setup:', 'request'],
  // --- opencode
  // A file that the user named with @. Its text is the next block.
  ['Called the Read tool with the following input:', 'announcement'],
  // Follows a compaction.
  ['Continue if you have next steps, or stop and ask for clarification', 'injected'],
  // Follows a command that ran in a sub-agent.
  ['Summarize the task tool output above and continue with your task.', 'injected'],
  // Follows a prompt that names an agent with @.
  ['Use the above message and context to generate a prompt and call the task tool', 'injected'],
  // --- pi
  // The summary that replaces the history after a compaction.
  [
    'The conversation history before this point was compacted into the following summary:',
    'summary',
  ],
  // A summary of another branch of the session.
  ['The following is a summary of a branch that this conversation came back from:', 'injected'],
  // --- Qwen Code
  // The environment, as the first message.
  ['This is the Qwen Code. We are setting up the context for our chat.', 'injected'],
  // A task for a sub-agent of the client itself, such as the one that extracts memories.
  [/^You are now acting as (?:the|an?) [^\n.]{0,80}\b(?:sub-?)?agent\b/, 'side'],
  // Asks the model who speaks next.
  ['Analyze *only* the content and structure of your immediately preceding response', 'side'],
  // The order to summarise the history.
  ['First, reason in your scratchpad. Then, generate the <state_snapshot>.', 'compaction'],
  // --- Cline and Roo
  // The answer of the user to the assistant, in older versions and in Roo.
  [/^\[(?:attempt_completion|ask_followup_question|plan_mode_respond)\b[^\n]*\] Result:/, 'reply'],
  // The client continues a task. An element in this text holds what the user adds.
  ['[TASK RESUMPTION]', 'reply'],
  // A tool's output, in older versions and in Roo: a file, a page, a command.
  [/^\[[a-z][a-z_]{1,40}(?: for '[^\n]*'| completed)?\] Result:/, 'result'],
  // Tells the model that it called no tool, or called one in a wrong way.
  ['[ERROR] ', 'injected'],
  // --- aider
  // The files that the user added to the chat, with their text.
  [/^I have \*[^\n*]{1,60}\*/, 'injected'],
  // Texts of files, summaries, outputs and examples.
  ...[
    'Here are summaries of some files present in my git repository.',
    'Here are some READ ONLY files, provided for your reference.',
    'Here are *read-only* images',
    'Here are the current contents of these files',
    'I am working with you on code in a git repository.',
    'I am not sharing any files that you can edit yet.',
    'I switched to a new code base.',
    'I updated the files.',
    'I spoke to you previously about a number of things.',
    'I ran this command:\n',
    'I committed the changes with git hash',
    'Fix any errors below, if possible.',
    '# *SEARCH/REPLACE block* Rules:',
    '# Fix any errors below',
    'The LLM did not conform to the edit format.',
    'Change get_factorial() to use math.factorial',
    'Refactor hello() into its own file.',
  ].map((starts): Wrapper => [starts, 'injected']),
];

/**
 * Separates a tool's output from the reminders that a client appended to it.
 * Claude Code appends messages that the user types while the agent works, the context of hooks, and notes that
 * change from request to request. They are not tool output, so svc neither stores them as a part of it nor replaces
 * them.
 */

export const REMINDER = '<system-reminder>';
const REMINDER_END = '</system-reminder>';
const LINE_REMINDER = `\n${REMINDER}`;

/**
 * Beginnings of a typed frame: a reminder with a user's message. The user may type any tag, so nothing after such a
 * beginning counts as tool output, even if the reminder seems to end.
 */
const TYPED_FRAMES: readonly string[] = [
  `${REMINDER}\nThe user sent the following message:`,
  `${REMINDER}\nThe user sent a new message while you were working:`,
];

/**
 * Returns how many characters of an output came from its tool. Whole reminders at the very end, and everything from the
 * first typed frame on, count as the client's. Any other reminder is from a file that the tool read, so it counts as
 * output.
 */
export function toolTextLength(text: string): number {
  const typed = typedFrameStart(text);
  let rest = typed === -1 ? text : text.slice(0, typed);
  let isOwn = typed === -1;
  for (;;) {
    const trimmed = rest.trimEnd();
    const start = trimmed.endsWith(REMINDER_END) ? lastReminderStart(trimmed) : -1;
    if (start === -1) return isOwn ? rest.length : trimmed.length;
    rest = trimmed.slice(0, start);
    isOwn = false;
  }
}

/** Returns where the first typed frame begins, at the start of a line; -1 without one. */
function typedFrameStart(text: string): number {
  const starts = TYPED_FRAMES.map((frame) => {
    return text.startsWith(frame) ? 0 : text.indexOf(`\n${frame}`) + 1 || -1;
  }).filter((start) => start !== -1);
  return starts.length === 0 ? -1 : Math.min(...starts);
}

/**
 * Returns the index of the reminder whose closing tag ends `text`; -1 if there is none. A reminder may quote opening
 * tags, so the last one may be a quotation. Therefore it begins at the first opening tag that stands at the start of a
 * line behind the previous closing tag; if there is none, at the last opening tag.
 */
function lastReminderStart(text: string): number {
  const nearest = text.lastIndexOf(REMINDER);
  if (nearest === -1) return -1;
  const closed = text.lastIndexOf(REMINDER_END, nearest);
  const from = closed === -1 ? 0 : closed + REMINDER_END.length;
  if (from === 0 && text.startsWith(REMINDER)) return 0;
  const first = text.indexOf(LINE_REMINDER, from);
  return first === -1 || first > nearest ? nearest : first + 1;
}

/** Bound on the typed frames that are read: more than a user sends while one tool runs. */
const FRAMES_MAX = 16;

/**
 * Returns the messages of the typed frames at the very end of an output; '' if there is none. If anything but whole
 * reminders follows a typed frame, the frame is from a file that the tool read and does not count.
 */
export function typedInOutput(text: string): string {
  const trimmed = text.trimEnd();
  if (!trimmed.endsWith(REMINDER_END)) return '';
  for (const start of frameStarts(trimmed)) {
    const reminders = wholeReminders(trimmed.slice(start));
    if (reminders !== undefined) {
      return reminders
        .map(typedInReminder)
        .filter((typed) => typed !== '')
        .join('\n');
    }
  }
  return '';
}

/** Returns the indexes at which the last FRAMES_MAX typed frames begin, in ascending order. */
function frameStarts(text: string): readonly number[] {
  const starts = TYPED_FRAMES.flatMap((frame) => {
    const found: number[] = text.startsWith(frame) ? [0] : [];
    let at = text.lastIndexOf(`\n${frame}`);
    while (at !== -1 && found.length < FRAMES_MAX) {
      found.push(at + 1);
      at = at === 0 ? -1 : text.lastIndexOf(`\n${frame}`, at - 1);
    }
    return found;
  });
  return starts.toSorted((a, b) => a - b).slice(-FRAMES_MAX);
}

/** Returns the contents of the reminders of which the text consists; undefined if it has anything else. */
function wholeReminders(text: string): readonly string[] | undefined {
  const inside: string[] = [];
  let rest = text;
  while (rest !== '') {
    const end = rest.indexOf(REMINDER_END);
    if (!rest.startsWith(REMINDER) || end === -1) return undefined;
    inside.push(rest.slice(REMINDER.length, end));
    rest = rest.slice(end + REMINDER_END.length).trimStart();
  }
  return inside;
}

const FRAME_HEADS = TYPED_FRAMES.map((frame) => frame.slice(REMINDER.length));

function typedInReminder(inside: string): string {
  const head = FRAME_HEADS.find((start) => inside.startsWith(start));
  return head === undefined ? '' : withoutFrameEnd(inside.slice(head.length));
}

/** Matches the client's last paragraph in a typed frame, which instructs the model. */
const FRAME_END =
  /^(?:This is how Claude Code surfaces|(?:IMPORTANT|NOTE|Note|Please|After|Address|Do not|You (?:must|should))\b[^]*\b(?:message|user|request)\b)/;

/** Returns the text of a typed frame without the client's last paragraph. */
function withoutFrameEnd(text: string): string {
  const last = text.lastIndexOf('\n\n');
  const isClients = last !== -1 && FRAME_END.test(text.slice(last + 2));
  return (isClients ? text.slice(0, last) : text).trim();
}
