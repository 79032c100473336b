import type { PurgeReceipt, PurgeScope } from '../../../src/core/memory-api/contract.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { proofOf, recordBytes } from '../../../src/core/memory-api/canonical.ts';
import { controlSuite } from './control-suite.ts';
import { leaseSuite } from './lease-suite.ts';
import { receiptSuite } from './receipt-suite.ts';
import { isolationLaw } from './tenant-isolation.ts';
import type {
  CaptureOutcome,
  NewObject,
  ServiceStore,
  TenantStore,
} from '../../src/ports/service-store.ts';
import { addTenant } from '../support/service-control.ts';
import { itemsOf, newPurgeId, objectOf, questionTo, SPACE } from '../support/service-objects.ts';

/** Records that a purge erases at once. */
const PART = 256;

/** What every database behind the memory service owes it. */
/** A store on a database of its own. */
export type OpenStore = () => ServiceStore | Promise<ServiceStore>;

export function serviceStoreSuite(name: string, open: OpenStore): void {
  describe(name, () => {
    let whole: ServiceStore;
    let store: TenantStore;
    // Far above what anything here takes: only a hang reaches it.
    const patience = (): AbortSignal => AbortSignal.timeout(30_000);
    const keep = (objects: readonly NewObject[], more: object = {}): Promise<CaptureOutcome> =>
      store.capture(
        { space: SPACE, ifGeneration: undefined, objects, now: 5, ...more },
        patience(),
      );
    const purge = async (scope: PurgeScope, isDryRun = false): Promise<PurgeReceipt> => {
      const order = { space: SPACE, scope, isDryRun, requestedBy: 'k', now: 6 };
      const begun = await store.beginPurge({ ...order, purgeId: newPurgeId() });
      while (!(await store.continuePurge(begun.purge_id, 7)));
      return begun;
    };
    const generationNow = async (): Promise<string> =>
      (await store.spaceState(SPACE, patience())).generation;
    const texts = async (more = {}): Promise<readonly string[]> =>
      (await store.listItems(itemsOf(more), patience())).map(({ text }) => text);

    beforeEach(async () => {
      whole = await open();
      store = whole.of('default');
    });
    afterEach(() => whole.close());

    controlSuite(open);
    receiptSuite(open);
    leaseSuite(open);

    test('a space that was never written has a generation, no commits and no records', async () => {
      const state = await store.spaceState(SPACE, patience());
      expect(state).toMatchObject({ space: SPACE, commit_seq: 0, records: 0 });
      expect(state.generation).toMatch(/^g[0-9A-Za-z]{1,24}\.0$/);
    });

    test('a plan limits the records of a tenant, in all of its spaces together', async () => {
      await addTenant(whole, 'small', { records: 3 });
      const small = whole.of('small');
      const put = (space: string, ...words: readonly string[]) =>
        small.capture(
          { space, ifGeneration: undefined, objects: words.map((word) => objectOf(word)), now: 5 },
          patience(),
        );
      expect((await put('one', 'a', 'b')).results).toEqual(['durable', 'durable']);
      const over = await put('two', 'c', 'c', 'd');
      expect(over.results).toEqual(['durable', 'duplicate', 'plan']);
      expect(over.state).toMatchObject({ commit_seq: 1, records: 1 });
      expect((await put('one', 'a', 'e')).results).toEqual(['duplicate', 'plan']);
      // Another tenant has room of its own, and a purge makes room.
      expect((await keep([objectOf('e')])).results).toEqual(['durable']);
      const order = { space: 'one', isDryRun: false, requestedBy: 'k', now: 6 };
      const { purge_id: purgeId } = await small.beginPurge({
        ...order,
        scope: { all: true },
        purgeId: newPurgeId(),
      });
      while (!(await small.continuePurge(purgeId, 7)));
      expect((await put('two', 'f', 'g', 'h')).results).toEqual(['durable', 'durable', 'plan']);
    });

    test('a batch counts its new records, and one for another generation writes nothing', async () => {
      const first = await keep([objectOf('one'), objectOf('two'), objectOf('one')]);
      expect(first.results).toEqual(['durable', 'durable', 'duplicate']);
      expect(first.state).toMatchObject({ commit_seq: 2, records: 2 });
      const { generation } = first.state;
      const same = await keep([objectOf('three')], { ifGeneration: generation });
      expect(same).toMatchObject({ results: ['durable'], state: { commit_seq: 3 } });
      const stale = await keep([objectOf('four')], { ifGeneration: 'gother.7' });
      expect(stale).toEqual({ results: undefined, state: same.state });
      expect(await store.spaceState('elsewhere', patience())).toMatchObject({ records: 0 });
    });

    test('two records of one reference are told apart: the second is refused', async () => {
      const [one, other] = [objectOf('one'), objectOf('two')];
      expect((await keep([one, { ...other, ref: one.ref }])).results).toEqual([
        'durable',
        'ref_collision',
      ]);
    });

    test('proofs are made from the bytes, for this space and this generation alone', async () => {
      const [held, masked] = [objectOf('held'), objectOf('masked', { redactions: 1 })];
      const { state } = await keep([held, masked]);
      const candidates = [held.digest, masked.digest, objectOf('never').digest];
      const nonce = new Uint8Array(32).fill(7);
      const { coverage } = await store.recall(questionTo({ candidates, nonce }), patience());
      expect(coverage).toEqual([
        {
          digest: held.digest,
          state: 'durable',
          bytes: held.bytes.length,
          pop: proofOf(nonce, held.bytes),
          ref: held.ref,
        },
        { digest: masked.digest, state: 'not_checked' },
        { digest: candidates[2], state: 'unknown' },
      ]);
      const stale = questionTo({ candidates, nonce, ifGeneration: `${state.generation}9` });
      const answer = await store.recall(stale, patience());
      expect(answer.coverage.map((one) => one.state)).toEqual(Array(3).fill('stale_generation'));
      const elsewhere = questionTo({ candidates, nonce, space: 'elsewhere' });
      const none = await store.recall(elsewhere, patience());
      expect(none.coverage.map((one) => one.state)).toEqual(Array(3).fill('unknown'));
    });

    test('what is asked after its deadline is left out, and says so', async () => {
      const held = objectOf('The tea is green.');
      await keep([held]);
      const late = questionTo({
        candidates: [held.digest],
        humanText: 'which tea?',
        deadlineAt: 0,
      });
      expect(await store.recall(late, patience())).toMatchObject({
        isPartial: true,
        items: [],
        coverage: [{ state: 'not_checked' }],
      });
    });

    test('recall says whose words it found, where from, and leaves out what the prompt holds', async () => {
      const said = objectOf('The deploy code word is marmalade.', {
        session: 's_9',
        branch: 'main',
      });
      await keep([said, objectOf('Lunch is at noon.', { session: 's_8' })]);
      const asked = questionTo({ humanText: 'what is the deploy code word?' });
      const { items } = await store.recall(asked, patience());
      expect(items).toMatchObject([
        {
          kind: 'exchange',
          verbatim: true,
          created_at: new Date(5).toISOString(),
          provenance: [
            {
              role: 'user',
              digest: said.digest,
              space: SPACE,
              session_id: 's_9',
              branch: 'main',
            },
          ],
        },
      ]);
      expect(items[0]?.score).toBeGreaterThan(0);
      expect(items[0]?.score).toBeLessThanOrEqual(1);
      const without = questionTo({ ...asked, excludeDigests: [said.digest] });
      expect((await store.recall(without, patience())).items).toEqual([]);
      const notes = questionTo({ ...asked, kinds: ['note'] });
      expect((await store.recall(notes, patience())).items).toEqual([]);
    });

    test('a record is found by each of its names, within the spaces that are given', async () => {
      const [said, output] = [
        objectOf('said'),
        objectOf('printed', { role: 'tool', toolName: 'Bash' }),
      ];
      await keep([said, output]);
      await keep([said], { space: 'other/one' });
      const ask = (ref: string, spaces: object) =>
        store.retrieve(
          { refs: [ref], bytesMax: 1e6, spaces: { globs: undefined, ...spaces } },
          patience(),
        );
      const { objects } = await ask(output.ref, {});
      expect(objects).toMatchObject([{ tool_name: 'Bash', bytes: output.bytes.length }]);
      const [kept] = objects;
      expect(kept && recordBytes(kept.record)).toEqual(Buffer.from(output.bytes));
      expect((await ask(said.digest, {})).objects).toHaveLength(2);
      expect((await ask(said.digest, { globs: ['other/*'] })).objects).toHaveLength(1);
      expect((await ask(said.ref, { globs: [] })).missing).toEqual([
        { ref: said.ref, reason: 'unknown' },
      ]);
      const tight = {
        spaces: { space: SPACE },
        refs: [said.ref, output.ref],
        bytesMax: said.bytes.length,
      };
      expect(await store.retrieve(tight, patience())).toMatchObject({
        objects: [{ ref: said.ref }],
        missing: [{ ref: output.ref, reason: 'over_max_bytes' }],
      });
    });

    test('lists are newest first, by words best first, and narrowed by every filter', async () => {
      await keep([
        objectOf('The parser reads tokens.', { observedAt: 1 }),
        objectOf('The parser writes nodes.', { observedAt: 2, role: 'assistant', session: 's_2' }),
        objectOf('Nodes only.', { observedAt: 3 }),
        objectOf('parser output', { role: 'tool' }),
      ]);
      expect(await texts()).toEqual([
        'Nodes only.',
        'The parser writes nodes.',
        'The parser reads tokens.',
      ]);
      expect(await texts({ words: 'parsers nodes' })).toEqual(['The parser writes nodes.']);
      expect(await texts({ words: 'the' })).toEqual([]);
      expect(await texts({ role: 'assistant' })).toHaveLength(1);
      expect(await texts({ session: 's_2' })).toHaveLength(1);
      expect(await texts({ since: 2, until: 2 })).toHaveLength(1);
      expect(await texts({ limit: 1, offset: 2 })).toEqual(['The parser reads tokens.']);
      expect(await texts({ spaces: { globs: ['other/*'] } })).toEqual([]);
      const sources = await store.listSources(itemsOf(), patience());
      expect(sources.map(({ session_id: session, records }) => [session, records])).toEqual([
        ['s_1', 3],
        ['s_2', 1],
      ]);
      expect(await texts({ sourceId: sources[1]?.source_id })).toEqual([
        'The parser writes nodes.',
      ]);
    });

    test('a purge is on record with what it took, moves the generation, and keeps it out', async () => {
      const [gone, left] = [objectOf('gone'), objectOf('left')];
      const { state } = await keep([gone, left]);
      expect(await purge({ digests: [gone.digest] }, true)).toMatchObject({
        state: 'dry_run',
        counts: { records: 1 },
      });
      expect((await store.spaceState(SPACE, patience())).generation).toBe(state.generation);
      const { purge_id: purgeId, generation_after: generationAfter } = await purge({
        digests: [gone.digest],
      });
      expect(generationAfter).not.toBe(state.generation);
      expect(await store.findPurge(purgeId, patience())).toMatchObject({
        state: 'erased',
        counts: { records: 1, items: 1, bytes: gone.bytes.length },
        generation_before: state.generation,
        erased_at: new Date(7).toISOString(),
      });
      expect(await store.listPurges(itemsOf(), patience())).toHaveLength(1);
      expect((await keep([gone, left])).results).toEqual(['purged', 'duplicate']);
      expect(await store.findPurge(purgeId, patience())).toMatchObject({
        generation_after: await generationNow(),
      });
      // The sequence never goes back, whatever is taken away.
      expect(await store.spaceState(SPACE, patience())).toMatchObject({
        commit_seq: 2,
        records: 1,
      });
      expect(await texts()).toEqual(['left']);
    });

    test('a purge of a session whose name has a NUL takes no other session', async () => {
      const odd = objectOf('odd', { session: 'a\0b', observedAt: 1 });
      await keep([odd, objectOf('left', { session: 'a', observedAt: 2 })]);
      await keep([objectOf('nameless', { session: '', observedAt: 3 })]);
      expect(await texts({ session: 'a' })).toEqual(['left']);
      expect(await purge({ session_id: '\0' })).toMatchObject({ counts: { records: 0 } });
      expect(await purge({ session_id: 'a\0b' })).toMatchObject({ counts: { records: 1 } });
      expect(await texts()).toEqual(['nameless', 'left']);
    });

    test('a space moves on when a purge begins, and once more with its last record', async () => {
      const { state } = await keep(
        Array.from({ length: PART + 1 }, (_, at) => objectOf(`object ${at}`)),
      );
      const scope = { all: true } as const;
      const order = { space: SPACE, scope, isDryRun: false, requestedBy: 'k' };
      const purgeId = newPurgeId();
      await store.beginPurge({ ...order, now: 6, purgeId });
      const seen = [state.generation, await generationNow()];
      expect(await store.continuePurge(purgeId, 7)).toBe(false);
      expect(await generationNow()).toBe(seen[1]);
      // Recalled in between, so it may quote the record that is left.
      const block = `${SPACE}\nm_aaaaaaaaaaaaaaaa ${SPACE}\n<svc-memory note="x">\n- object 256\n</svc-memory>`;
      await store.recordLedger([{ key: 'e:1', block, form: 'text', at: 8 }]);
      while (!(await store.continuePurge(purgeId, 9)));
      expect(new Set([...seen, await generationNow()]).size).toBe(3);
      expect((await store.findLedger(['e:1']))[0]?.block).toBe('');
    });

    test('nothing is found in a space from the begin of a purge until its last record is erased', async () => {
      const left = objectOf('The deploy needs port 8443.', { session: 'stays' });
      const first = objectOf('The deploy waits for port 8443.', { session: 'goes' });
      const rest = Array.from({ length: PART }, (_, at) => objectOf(`${at}`, { session: 'goes' }));
      await keep([left, first, ...rest]);
      const names = [first.digest, left.digest];
      const found = async () => ({
        texts: (await texts()).length,
        words: (await texts({ words: 'port' })).length,
        sources: (await store.listSources(itemsOf(), patience())).length,
        objects: await store.retrieve(
          { spaces: { space: SPACE }, refs: names, bytesMax: 1e6 },
          patience(),
        ),
        recalled: await store.recall(
          questionTo({ humanText: 'Which port needs the deploy?', candidates: names }),
          patience(),
        ),
      });
      const scope = { session_id: 'goes' };
      const order = { space: SPACE, scope, isDryRun: false, requestedBy: 'k', now: 6 };
      const purgeId = newPurgeId();
      expect((await found()).recalled.items.length).toBeGreaterThan(0);
      await store.beginPurge({ ...order, purgeId });
      for (let at = 0; at < 2; at += 1) {
        // oxlint-disable-next-line no-await-in-loop -- Each part erases some records.
        expect(await found()).toMatchObject({
          texts: 0,
          words: 0,
          sources: 0,
          objects: { objects: [] },
          recalled: {
            items: [],
            coverage: [{ state: 'not_checked' }, { state: 'not_checked' }],
            isPartial: true,
          },
        });
        // oxlint-disable-next-line no-await-in-loop
        expect(await store.continuePurge(purgeId, 7)).toBe(false);
      }
      expect(await store.findPurge(purgeId, patience())).toMatchObject({ state: 'tombstoned' });
      expect(await found()).toMatchObject({
        texts: 1,
        words: 1,
        sources: 1,
        objects: {
          objects: [{ digest: left.digest }],
          missing: [{ ref: first.digest, reason: 'purged' }],
        },
        recalled: { coverage: [{ state: 'purged' }, { state: 'durable' }], isPartial: false },
      });
    });

    test('an item leads to its record, in its own space', async () => {
      const said = objectOf('said');
      await keep([said]);
      const [item] = await store.listItems(itemsOf(), patience());
      const itemId = item?.item_id ?? '';
      expect(await store.findItem({ space: SPACE, itemId }, patience())).toBe(said.digest);
      expect(await store.findItem({ space: 'other', itemId }, patience())).toBe(undefined);
      expect(await store.findItem({ space: SPACE, itemId: 'it_x' }, patience())).toBe(undefined);
    });

    test('an answer is kept for its key and forgotten after a day', async () => {
      const asked = { keyId: 'a', idempotencyKey: 'batch-1' };
      const answer = { requestHash: 'h', body: '{}', at: Date.now() };
      await store.keepAnswer(asked, answer);
      expect(await store.findAnswer(asked, patience())).toEqual(answer);
      expect(await store.findAnswer({ ...asked, keyId: 'b' }, patience())).toBe(undefined);
      await store.keepAnswer(asked, { ...answer, at: Date.now() - 25 * 3600 * 1000 });
      expect(await store.findAnswer(asked, patience())).toBe(undefined);
    });

    ledgerTests(() => ({ whole, store, purge }));
    isolationLaw(open);

    test('a signal that has fired is a MemoryError, and so is a closed store', async () => {
      const asked = store.spaceState(SPACE, AbortSignal.abort());
      await expect(asked).rejects.toMatchObject({ name: 'MemoryError', reason: 'timeout' });
      await whole.close();
      await expect(store.spaceState(SPACE, patience())).rejects.toMatchObject({
        reason: 'unavailable',
      });
    });
  });
}

interface LedgerStage {
  readonly whole: ServiceStore;
  readonly store: TenantStore;
  readonly purge: (scope: PurgeScope) => Promise<PurgeReceipt>;
}

function ledgerTests(stage: () => LedgerStage): void {
  const row = (key: string, block: string, more: object = {}) =>
    ({ key, block, form: 'text', at: 3, ...more }) as const;
  const quotingOf = (space: string): string =>
    `${space}\nm_aaaaaaaaaaaaaaaa ${space}\n<svc-memory note="x">\n- The code word is marmalade.\n</svc-memory>`;
  const QUOTING = quotingOf(SPACE);

  test('a row of the ledger is found by its tenant alone', async () => {
    const { whole, store } = stage();
    const other = whole.of('other');
    await store.recordLedger([row('l:1', 'mine')]);
    await other.recordLedger([row('l:1', 'theirs'), row('l:2', 'theirs')]);
    expect(await store.findLedger(['l:1', 'l:2'])).toEqual([row('l:1', 'mine')]);
    expect(await other.findLedger(['l:1'])).toEqual([row('l:1', 'theirs')]);
  });

  test('a later row of the ledger wins, but for one that is written once', async () => {
    const { store } = stage();
    await store.recordLedger([row('e:1', 'first'), row('l:1', 'first', { isOnce: true })]);
    await store.recordLedger([
      row('e:1', 'later', { at: 4 }),
      row('l:1', 'later', { isOnce: true }),
    ]);
    const found = await store.findLedger(['e:1', 'l:1']);
    expect(found.map(({ block }) => block)).toEqual(['later', 'first']);
  });

  test('a purge empties the blocks of its tenant that quote its space, also those that arrive late', async () => {
    const { whole, store, purge } = stage();
    const other = whole.of('other');
    const elsewhere = quotingOf('elsewhere');
    await store.recordLedger([
      row('e:1', QUOTING),
      row('x:1', '3 !2 m_abc'),
      row('e:4', elsewhere),
    ]);
    await other.recordLedger([row('e:1', QUOTING)]);
    await purge({ all: true });
    await store.recordLedger([row('e:2', QUOTING, { at: 5 }), row('e:3', QUOTING, { at: 7 })]);
    const found = await store.findLedger(['e:1', 'e:2', 'e:3', 'e:4', 'x:1']);
    expect(found.map(({ key, block }) => [key, block])).toEqual([
      ['e:1', ''],
      ['e:2', ''],
      ['e:3', QUOTING],
      ['e:4', elsewhere],
      ['x:1', '3 !2 m_abc'],
    ]);
    expect(await other.findLedger(['e:1'])).toEqual([row('e:1', QUOTING)]);
  });

  test('law 7: a purge of one space takes no block of another, also where it is recorded again later', async () => {
    const { store, purge } = stage();
    const elsewhere = quotingOf('elsewhere');
    await store.recordLedger([row('e:1', elsewhere)]);
    await purge({ all: true });
    // A conversation that goes on under another name repeats the block, as old as it is.
    await store.recordLedger([row('e:2', elsewhere)]);
    const found = await store.findLedger(['e:1', 'e:2']);
    expect(found.map(({ block }) => block)).toEqual([elsewhere, elsewhere]);
  });
}
