/**
 * Separates a tool's output from the reminders that a client appended to it.
 * Claude Code appends messages that the user types while the agent works, the context of hooks, and notes that
 * change from request to request. They are not tool output, so svc neither stores them as a part of it nor replaces
 * them.
 */

export const REMINDER = '<system-reminder>';
export const REMINDER_END = '</system-reminder>';
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
 * Returns how many characters of an output came from its tool. The client's are whole reminders at the very end, and
 * everything from the first typed frame on. Any other reminder further up is from a file that the tool read, so it
 * counts as output.
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
 * Returns the index of the reminder whose closing tag ends `text`; -1 if there is none. Such a reminder may quote an
 * opening tag. So it begins at the first line after the previous reminder that begins with an opening tag, or else at
 * the last opening tag.
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
export function withoutFrameEnd(text: string): string {
  const last = text.lastIndexOf('\n\n');
  const isClients = last !== -1 && FRAME_END.test(text.slice(last + 2));
  return (isClients ? text.slice(0, last) : text).trim();
}
