import { expect, onTestFinished, test } from 'vitest';
import { FoundEntries } from '../../src/core/ledger/entries.ts';
import type { Ledger } from '../../src/ports/ledger.ts';
import { openProxyStage, type ProxyStage } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

/** Outputs that are left out stay out while the ledger is late, as it is during an import. */

interface Lateness {
  /** Undefined: in time. Otherwise whether it has what it knows by heart. */
  knows: boolean | undefined;
}

function lateLedger(ledger: Ledger, late: Lateness): Ledger {
  return {
    generation: () => ledger.generation(),
    record: (entries) => ledger.record(entries),
    commit: (entries) => ledger.commit(entries),
    isShared: false,
    find: async (addresses, withinMs) => {
      const found = await ledger.find(addresses, withinMs);
      if (late.knows === undefined) return found;
      const known = addresses.flatMap((address) => found.get(address) ?? []);
      return new FoundEntries(late.knows ? known : [], 'late');
    },
  };
}

async function openStage(folder: string, late: Lateness): Promise<ProxyStage> {
  const stage = await openProxyStage({
    folder,
    wrapLedger: (ledger) => lateLedger(ledger, late),
  });
  onTestFinished(() => stage.stop());
  return stage;
}

const rounds = (count: number): Round[] =>
  Array.from({ length: count }, (_, at) => ({
    id: `call_${at}`,
    tool: 'Bash',
    args: { command: `step ${at}` },
    output: longOutput(`r${at}`, 900),
  }));

async function send(stage: ProxyStage, count: number): Promise<string[]> {
  const body = sessionBody('anthropic_messages', rounds(count));
  expect((await stage.send('anthropic_messages', body)).status).toBe(200);
  const stubs = stage.forwarded().match(/\[svc left out this [^\]]+\]/g) ?? [];
  await stage.settled();
  return stubs;
}

async function playTo(stage: ProxyStage, last: number): Promise<string[]> {
  let stubs: string[] = [];
  // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
  for (let count = 0; count <= last; count += 1) stubs = await send(stage, count);
  return stubs;
}

test('while the ledger is late, a conversation that this process knows stays as it was', async () => {
  const late: Lateness = { knows: undefined };
  const stage = await openStage(tempFolder(), late);
  await playTo(stage, 20);
  const before = await send(stage, 20);
  expect(before.length).toBeGreaterThan(2);
  late.knows = false;
  expect(await send(stage, 20)).toEqual(before);
  expect((await send(stage, 21)).slice(0, before.length)).toEqual(before);
  // From now on the ledger is asked for all of its batches again, and names none of them.
  stage.setClockAhead(61_000);
  expect((await send(stage, 21)).slice(0, before.length)).toEqual(before);
});

test('after a restart, batches that a late ledger knows stay out, and no new one is made', async () => {
  const late: Lateness = { knows: undefined };
  const folder = tempFolder();
  const first = await openStage(folder, late);
  await playTo(first, 20);
  const before = await send(first, 20);
  expect(before.length).toBeGreaterThan(2);
  await first.stop();
  const again = await openStage(folder, late);
  // Long before the batch, and in time: from here on this process knows that the cache gets cold.
  expect(await send(again, 3)).toEqual([]);
  late.knows = true;
  again.setClockAhead(301_000);
  expect(await send(again, 24)).toEqual(before);
  late.knows = undefined;
  again.setClockAhead(602_000);
  expect((await send(again, 24)).length).toBeGreaterThan(before.length);
});

test('after a restart, a late ledger that knows nothing leaves all in, and says so', async () => {
  const late: Lateness = { knows: undefined };
  const folder = tempFolder();
  const first = await openStage(folder, late);
  await playTo(first, 20);
  await first.stop();
  const again = await openStage(folder, late);
  late.knows = false;
  expect(await send(again, 20)).toEqual([]);
  expect(again.rows.at(-1)?.continuityState).toBe('bypassed_recall_degraded');
});
