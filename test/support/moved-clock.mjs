// Moves the clock of a program by the milliseconds that the file SVC_TEST_CLOCK holds, also while it runs:
// NODE_OPTIONS='--import .../moved-clock.mjs'. Timers and the monotonic clock stay as they are.
import { readFileSync } from 'node:fs';

const file = process.env.SVC_TEST_CLOCK;
const RealDate = Date;
const now = () => RealDate.now() + Number(readFileSync(file, 'utf8'));

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, self) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, self),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
