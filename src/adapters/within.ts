/**
 * The result of the work, or undefined when it takes longer than so many milliseconds; the work then
 * continues. Rejects as the work does. On a busy machine the timer may be late as well: an answer that the
 * system has by then is seen first.
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
