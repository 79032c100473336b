/**
 * Returns the result of the work, or undefined after `ms` milliseconds; the work then continues. Rejects if the work
 * rejects. On a busy machine the timer may be late too; a result that has arrived by then is still returned.
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
 * Runs the work with a signal that aborts after `ms` milliseconds, or together with `signal`. AbortSignal.any() is
 * not used: Node forgets a timeout that only it refers to, which then never fires after a garbage collection.
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
