/**
 * Tells what a tool said from the reminders that a client glued to the end of its output.
 *
 * Claude Code puts there what the person types while the agent works, the context of hooks, and notes
 * that change from request to request. None of it is the tool's: it is neither stored nor replaced.
 */

const REMINDER = '<system-reminder>';
const REMINDER_END = '</system-reminder>';
const LINE_REMINDER = `\n${REMINDER}`;

/**
 * What opens a reminder in which a person speaks. What they typed may hold any tag, so everything from
 * here on is theirs, wherever the tags seem to close.
 */
const TYPED_FRAMES: readonly string[] = [
  `${REMINDER}\nThe user sent the following message:`,
  `${REMINDER}\nThe user sent a new message while you were working:`,
];

/**
 * How many characters of an output its tool said. Only whole reminders at the very end are the
 * client's: one further up stands in a file that the tool read, and is kept with it.
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

/** Where the first reminder of a person's words begins, at the start of a line; -1 without one. */
function typedFrameStart(text: string): number {
  const starts = TYPED_FRAMES.map((frame) => {
    return text.startsWith(frame) ? 0 : text.indexOf(`\n${frame}`) + 1 || -1;
  }).filter((start) => start !== -1);
  return starts.length === 0 ? -1 : Math.min(...starts);
}

/**
 * Where the reminder begins that closes at the end of `text`; -1 without one. A reminder may quote an
 * opening tag, so it begins at the first line with one since the reminder before it was closed.
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
