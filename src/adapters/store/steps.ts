/**
 * Computations in steps, some of which may have to wait for a database. So the same search code serves an SQLite file,
 * which answers at once, and a database server, which answers later.
 */

/** The steps of a computation. Inside other steps `yield*` runs them and returns their result. */
export interface Steps<T> {
  [Symbol.iterator](): Iterator<Promise<unknown>, T, unknown>;
}

/** Returns steps that have a result without waiting. */
export function done<T>(value: T): Steps<T> {
  return { [Symbol.iterator]: () => ({ next: () => ({ done: true, value }) }) };
}

/** Returns a step that waits for a promise. */
export function waitFor<T>(promise: Promise<T>): Steps<T> {
  // Whoever runs the step gets a rejection. Ignore it here: the step may never run, if another one fails first.
  promise.catch(() => undefined);
  return stepOf(promise);
}

function* stepOf<T>(promise: Promise<T>): Steps<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- resume() passes what the promise resolved to.
  return (yield promise) as T;
}

/** Runs independent steps, and returns their results in order. Those that have to wait do so at the same time. */
export function* together<const All extends readonly Steps<unknown>[]>(
  all: All,
): Steps<{ -readonly [Place in keyof All]: All[Place] extends Steps<infer T> ? T : never }> {
  const results: unknown[] = [];
  const waiting: Promise<void>[] = [];
  for (const [place, steps] of all.entries()) {
    const iterator = steps[Symbol.iterator]();
    const first = iterator.next();
    if (first.done === true) results[place] = first.value;
    else {
      const rest = resume(iterator, first).then((value) => void (results[place] = value));
      // The `yield` below throws a rejection, unless another of these steps throws first.
      rest.catch(() => undefined);
      waiting.push(rest);
    }
  }
  if (waiting.length > 0) yield Promise.all(waiting);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Each result is at the index of its steps.
  return results as {
    -readonly [Place in keyof All]: All[Place] extends Steps<infer T> ? T : never;
  };
}

/** Runs a computation in which no step may wait, and returns its result. Throws TypeError if a step waits. */
export function runAtOnce<T>(steps: Steps<T>): T {
  const result = steps[Symbol.iterator]().next();
  if (result.done !== true) throw new TypeError('A step waits where none may.');
  return result.value;
}

/** Runs a computation to its end and returns its result. Awaits each promise that a step waits for. */
export async function runWaiting<T>(steps: Steps<T>): Promise<T> {
  const iterator = steps[Symbol.iterator]();
  return resume(iterator, iterator.next());
}

async function resume<T>(
  iterator: Iterator<Promise<unknown>, T, unknown>,
  from: IteratorResult<Promise<unknown>, T>,
): Promise<T> {
  let result = from;
  while (result.done !== true) {
    let answer: unknown;
    try {
      // oxlint-disable-next-line no-await-in-loop -- The steps depend on each other.
      answer = await result.value;
    } catch (error) {
      if (iterator.throw === undefined) throw error;
      result = iterator.throw(error);
      continue;
    }
    result = iterator.next(answer);
  }
  return result.value;
}
