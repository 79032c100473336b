/**
 * Returns the result of the work, or undefined after `ms` milliseconds; the work continues nevertheless. Rejects if the
 * work rejects first. If the event loop was busy and both are due, the result is returned.
 */
export async function within<Result>(
  ms: number,
  work: Promise<Result>,
): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => setImmediate(resolve, undefined), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Runs the work with a signal that aborts after `ms` milliseconds, or together with `signal`. It does not use
 * AbortSignal.any(): Node may collect a timeout signal to which only the combined signal refers, so it never fires.
 */
export async function withDeadline<Result>(
  ms: number,
  signal: AbortSignal,
  work: (deadline: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const deadline = new AbortController();
  const stop = (): void => deadline.abort();
  const timer = setTimeout(stop, ms);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await work(deadline.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
