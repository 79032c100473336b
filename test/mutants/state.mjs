/** Rules of ledger and state, each switched off by one change, and the test file that must then fail. */

const IDENTITY = 'test/proxy/conversation-identity.test.ts';
const LEDGER = 'test/adapters/ledger.test.ts';
const INJECTIONS = 'src/core/recall/injections.ts';

/** As in list.mjs. */
export const STATE = [
  {
    name: 'a fork overwrites the shared block',
    file: 'src/adapters/journals/ledger.ts',
    from: 'return isOnce === true &&',
    to: 'return isOnce !== undefined && false &&',
    test: LEDGER,
    only: 'written once',
  },
  {
    name: 'another process overwrites the shared block',
    file: 'src/adapters/store/tables.ts',
    from: 'isOnce === true\n',
    to: 'isOnce !== undefined && key === ""\n',
    test: LEDGER,
    only: 'written once',
  },
  {
    name: 'a block is found by its name before its answer, named or not',
    file: INJECTIONS,
    from: 'facts.isStated ? (used ?? answeredSo) : (answeredSo ?? used)',
    to: 'used ?? answeredSo',
    test: IDENTITY,
    only: 'an hour later',
  },
  {
    name: 'the block in front of an answer is not pinned',
    file: INJECTIONS,
    from: '[{ ...answered, ...fact }]',
    to: '[]',
    test: IDENTITY,
    only: 'resumed|each fork|an hour later',
  },
  {
    name: 'a fork asks anew for a prompt that was answered for its parent',
    file: INJECTIONS,
    from: 'if (!isOpening) return used ?? found.get(shared);',
    to: 'if (!isOpening && facts.isStated) return used;',
    test: IDENTITY,
    only: 'deep prompt',
  },
  {
    name: 'a refusal never ends',
    file: 'src/core/ledger/refusals.ts',
    from: 'now - entry.at < REFUSAL_MS',
    to: 'entry.at <= now',
    test: IDENTITY,
    only: 'for an hour',
  },
  {
    name: 'a refusal belongs to all that begin alike',
    file: 'src/core/ledger/refusals.ts',
    from: 'if (place.isStated) return',
    to: 'if (place.conversation) return',
    test: IDENTITY,
    only: 'does not inherit',
  },
  {
    name: 'a late ledger drops the blocks that it knows',
    file: 'src/adapters/journals/ledger.ts',
    from: "return new FoundEntries(entries, 'late');",
    to: "return new FoundEntries([], 'late');",
    test: LEDGER,
    only: 'law 4',
  },
  {
    name: 'recall drops the blocks that a late ledger knows',
    file: 'src/proxy/recall.ts',
    from: 'const recalled = { placements, state: stateOfMiss(found.missing) };',
    to: 'const recalled = { placements: NOTHING, state: stateOfMiss(found.missing) };',
    test: IDENTITY,
    only: 'late',
  },
  {
    name: 'a new block is placed beside blocks that are not known',
    file: 'src/proxy/recall.ts',
    from: 'if (found.missing !== undefined && !(isWhole && prompt === undefined)) {',
    to: 'if (found.missing !== undefined && isWhole && prompt === undefined) {',
    test: IDENTITY,
    only: 'late',
  },
  {
    name: 'references to stored items take the blocks away',
    file: 'src/proxy/recall.ts',
    from: 'const isElsewhere = reading.hasProviderHistory ||',
    to: 'const isElsewhere = reading.hasProviderState ||',
    test: IDENTITY,
    only: 'references',
  },
  {
    name: 'the form of a prompt counts',
    file: 'src/core/conversation/fingerprint.ts',
    from: 'this.#forms.hasTypedMessages ? readMessage(this.#bytes, start) : undefined',
    to: 'undefined as Message | undefined',
    test: IDENTITY,
    only: 'changes its form',
  },
  {
    name: 'what throws in recall fails the request',
    file: 'src/proxy/handle.ts',
    from: '    } catch {\n',
    to: '    } catch (error) {\n      throw error;\n',
    test: IDENTITY,
    only: 'throws',
  },
];
