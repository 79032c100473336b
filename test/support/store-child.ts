import { openSync, writeSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { blockEntry } from './ledger-entries.ts';
import { recordOf } from './records.ts';

/**
 * A process to be killed: keeps records and ledger entries without end, and notes of each one, after
 * the calls returned, that it is safe. Arguments: folder, name of this run, file of the notes.
 */
const [, , folder = '', run = '', notes = ''] = process.argv;
const file = openSync(notes, 'a');
const store = openEmbeddedStore({ folder, report: (line) => writeSync(2, `${line}\n`) });

for (let number = 0; ; number += 1) {
  const name = `${run}-${number}`;
  const isKept = store.outbox.keep([recordOf(`Fact ${name} about the weather.`)]);
  // oxlint-disable-next-line no-await-in-loop
  await store.ledger.record([blockEntry(name, { block: name, at: number })]);
  if (isKept) writeSync(file, `${name}\n`);
  // Lets the worker take some, so that kills fall into every phase of a delivery.
  // oxlint-disable-next-line no-await-in-loop
  if (number % 4 === 0) await wait(1);
}
