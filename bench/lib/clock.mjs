/** Milliseconds of CLOCK_MONOTONIC: the provider's and the driver's stamps can be subtracted. */
export function now() {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Resolves to undefined when the promise takes longer. */
export function within(ms, promise) {
  let timer;
  const deadline = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return Promise.race([promise, deadline]).finally(() => clearTimeout(timer));
}

/** True as soon as it holds, false when it never did in that time. */
export async function waitUntil(holds, ms) {
  const until = now() + ms;
  while (now() < until) {
    if (holds()) return true;
    await sleep(20);
  }
  return false;
}
