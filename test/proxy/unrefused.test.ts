import { expect, onTestFinished, test } from 'vitest';
import { FoundEntries, type LedgerEntry } from '../../src/core/ledger/entries.ts';
import type { Ledger } from '../../src/ports/ledger.ts';
import { openProxyStage } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

/** A ledger into which another process writes that the provider refused a conversation. */
class SharedLedger {
  isRefused = false;
  isShared = false;

  wrap(ledger: Ledger): Ledger {
    return {
      generation: () => ledger.generation(),
      record: (entries) => ledger.record(entries),
      commit: (entries) => ledger.commit(entries),
      isShared: this.isShared,
      find: async (addresses, withinMs) => {
        const found = await ledger.find(addresses, withinMs);
        const refusals = addresses.flatMap((address): LedgerEntry[] => {
          const isOne = address.kind === 'refusal' || address.kind === 'refusal-at';
          return isOne && address.change === 'shortening' ? [{ ...address, at: Date.now() }] : [];
        });
        const known = addresses.flatMap((address) => found.get(address) ?? []);
        return new FoundEntries(this.isRefused ? [...known, ...refusals] : known, found.missing);
      },
    };
  }
}

const rounds = (count: number): Round[] =>
  Array.from({ length: count }, (_, at) => ({
    id: `call_${at}`,
    tool: 'Bash',
    args: { command: `step ${at}` },
    output: longOutput(`r${at}`, 900),
  }));

/** After four requests, none of them refused. */
async function openStage({ isShared = false } = {}) {
  const shared = new SharedLedger();
  shared.isShared = isShared;
  const stage = await openProxyStage({
    folder: tempFolder(),
    wrapLedger: (ledger) => shared.wrap(ledger),
  });
  onTestFinished(() => stage.stop());
  const state = async (count: number): Promise<string | undefined> => {
    await stage.send('anthropic_messages', sessionBody('anthropic_messages', rounds(count)));
    await stage.settled();
    return stage.rows.at(-1)?.continuityState;
  };
  // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
  for (let count = 18; count < 22; count += 1) await state(count);
  return { shared, state };
}

test.each([false, true])(
  'a refusal that another process has seen counts at once (several nodes: %s)',
  async (isShared) => {
    const { shared, state } = await openStage({ isShared });
    expect(await state(22)).toBe('elided_tool_output');
    shared.isRefused = true;
    expect(await state(23)).toBe('bypassed_provider_refused');
  },
);
