import { expect, onTestFinished, test } from 'vitest';
import {
  done,
  runAtOnce,
  runWaiting,
  type Steps,
  waitFor,
} from '../../src/adapters/store/steps.ts';

type Ask = (question: string) => Steps<string>;

function* askTwice(ask: Ask): Steps<string> {
  const first = yield* ask('one');
  const second = yield* ask(first);
  return `${first} ${second}`;
}

const later: Ask = (question) => waitFor(Promise.resolve(`${question}!`));
const now: Ask = (question) => done(`${question}!`);

test('the same steps give the same result at once and after waiting', async () => {
  expect(runAtOnce(askTwice(now))).toBe('one! one!!');
  expect(await runWaiting(askTwice(later))).toBe('one! one!!');
  expect(await runWaiting(askTwice(now))).toBe('one! one!!');
});

test('steps that wait cannot run at once', () => {
  expect(() => runAtOnce(askTwice(later))).toThrow('waits where none may');
});

test('a wait that fails fails the step that asked, which may go on', async () => {
  const lost: Ask = () => waitFor(Promise.reject(new Error('lost')));
  await expect(runWaiting(askTwice(lost))).rejects.toThrow('lost');
  function* careful(): Steps<string> {
    try {
      return yield* lost('one');
    } catch {
      return yield* later('again');
    }
  }
  expect(await runWaiting(careful())).toBe('again!');
});

test('a wait that nobody takes, because another one failed first, ends no process', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  waitFor(Promise.reject(new Error('lost')));
  await new Promise(setImmediate);
  expect(unhandled).toEqual([]);
});
