/**
 * Runs work in steps, some of which may have to wait. So the same search code serves two kinds of database: a file
 * answers at once, a database server later.
 */

/** The steps of a computation; `yield*` returns its result inside other steps. */
export interface Steps<T> {
  [Symbol.iterator](): Iterator<Promise<unknown>, T, unknown>;
}

export function done<T>(value: T): Steps<T> {
  return { [Symbol.iterator]: () => ({ next: () => ({ done: true, value }) }) };
}

export function waitFor<T>(promise: Promise<T>): Steps<T> {
  // The caller of the step gets a rejection. If no one calls it, because another step failed, the rejection is
  // ignored.
  promise.catch(() => undefined);
  return stepOf(promise);
}

function* stepOf<T>(promise: Promise<T>): Steps<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `runWaiting` gives back what the promise resolved to.
  return (yield promise) as T;
}

/** Runs independent steps. Those that wait for an answer wait at the same time. */
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
      // A rejection is thrown below, unless one of the next steps throws first.
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

/** Runs steps none of which waits. */
export function runAtOnce<T>(steps: Steps<T>): T {
  const result = steps[Symbol.iterator]().next();
  if (result.done !== true) throw new TypeError('A step waits where none may.');
  return result.value;
}

/** Runs steps one after the other, and awaits those that wait. */
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
