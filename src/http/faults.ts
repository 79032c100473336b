/**
 * Returns what may be logged of an unexpected error: its class, its code and where it was thrown, which may be inside
 * Node. The message is left out, because messages of JSON.parse, URL and others quote their input.
 */
export function describeFault(thrown: unknown): Readonly<Record<string, string>> {
  if (!(thrown instanceof Error)) return { error: typeof thrown };
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : '';
  const place = placeOf(thrown);
  return {
    error: thrown.name,
    ...(/^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? { code } : {}),
    ...(place === undefined ? {} : { at: place }),
  };
}

/** Returns the file name, line and column of the innermost stack frame. */
function placeOf({ stack = '', message }: Error): string | undefined {
  // Skip the message, which may contain lines that look like frames.
  const head = stack.indexOf(message);
  const frames = head === -1 ? '' : stack.slice(head + message.length);
  return /\n {4}at [^\n]*?([\w.-]+:\d+:\d+)\)?(?:\n|$)/.exec(frames)?.[1];
}
