import { openSync, writeSync } from 'node:fs';
import { openState } from '../../src/adapters/state/state.ts';
import { Fault, workOn, workWith } from './state-work.ts';

/**
 * A process that kills itself in front of the given statement, and notes line by line what was acknowledged.
 * Arguments: folder, file of the notes, number of the statement.
 */
const [, , folder = '', notes = '', at = ''] = process.argv;
const file = openSync(notes, 'a');
const note = (how: string, name: string): void => void writeSync(file, `${how} ${name}\n`);
const fault = new Fault(Number(at), 0, {
  times: 1,
  act: () => process.kill(process.pid, 'SIGKILL'),
});
const state = openState({ folder, driver: fault.driver, report: () => undefined });
const outbox = await workWith(
  state,
  {
    capture: async (records) => {
      for (const { text } of records) note('delivered', text);
      return records.map(() => 'stored' as const);
    },
  },
  note,
);
await workOn(state, note);
await outbox.flush(30_000);
outbox.close();
await state.close();
