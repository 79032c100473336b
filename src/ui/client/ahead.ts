import { isAsking } from './api.ts';

/** Work for the time in which the page rests: the view in sight was drawn, and no answer is awaited. */

const LOOK_MS = 30;

/** Runs each after the one before it. A call that fails is made again when its view is opened. */
export async function runAtRest(works: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const work of works) {
    // oxlint-disable-next-line no-await-in-loop -- One after the other is the aim.
    await rest();
    // oxlint-disable-next-line no-await-in-loop -- As above.
    await work();
  }
}

async function rest(): Promise<void> {
  do {
    // oxlint-disable-next-line no-await-in-loop -- It looks again and again.
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    // oxlint-disable-next-line no-await-in-loop -- As above.
    await idle();
  } while (isAsking());
}

/** Safari has no such callback. */
function idle(): Promise<unknown> {
  return new Promise((resolve) => {
    if ('requestIdleCallback' in globalThis) requestIdleCallback(resolve);
    else setTimeout(resolve);
  });
}
