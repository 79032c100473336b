/** Loaded before the program: its clock is wrong by the milliseconds that a file holds, which may change at any time. */
import { readFileSync } from 'node:fs';

const file = process.env['SVC_TEST_CLOCK'] ?? '';
const RealDate = globalThis.Date;

function offset() {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return 0;
  }
}

globalThis.Date = class Date extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [RealDate.now() + offset()] : args));
  }

  static now() {
    return RealDate.now() + offset();
  }
};
