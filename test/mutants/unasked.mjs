/** Checks that let a request do without a question: earlier proofs and absent entries. */

const STANDING = 'test/proxy/possession.test.ts';
const RELAY = 'src/proxy/relay.ts';
const RELAYED = 'test/proxy/relay.test.ts';
const PROOF_STATE = 'src/adapters/store/embedded-store.ts';
const PROOFS = 'test/adapters/proof-state.test.ts';

export const UNASKED = [
  {
    name: 'a deletion by another process leaves earlier proofs valid',
    file: PROOF_STATE,
    from: ' ${row.id} ${row.count}`',
    to: ' ${row.id}`',
    test: PROOFS,
  },
  {
    name: 'a log in place of the open one leaves earlier proofs standing',
    file: PROOF_STATE,
    from: " ${log === undefined ? '' : identityIn(log)} ${row.id}",
    to: ' ${row.id}',
    test: PROOFS,
  },
  {
    name: 'a write to the file itself leaves earlier proofs standing',
    file: PROOF_STATE,
    from: '${identityIn(stat)} ${stat.ctimeNs} ',
    to: '${identityIn(stat)} ',
    test: PROOFS,
  },
  {
    name: 'a time that two writes may share is taken for one write',
    file: PROOF_STATE,
    from: '+ TIME_STEP_MS >= Date.now()',
    to: '>= Date.now()',
    test: PROOFS,
    only: 'written a moment ago',
  },
  {
    name: 'a question is kept with the blocks that only an earlier request did not carry',
    file: 'src/proxy/capture-keeper.ts',
    from: 'known?.humanText === humanText && known.blocks === blocks',
    to: 'known?.humanText === humanText',
    test: 'test/proxy/capture-keeper.test.ts',
  },
  {
    name: 'what was written in the moment in which the client goes is not read',
    file: RELAY,
    from: 'const mayEnd = this.#ask((watcher) => watcher.data(chunk), false);',
    to: 'const mayEnd = false; setImmediate(() => this.#ask((watcher) => watcher.data(chunk), false));',
    test: RELAYED,
  },
  {
    name: 'a proof counts although the memory has another version',
    file: 'src/proxy/possession.ts',
    from: 'version === undefined || version !== this.#version || isOld',
    to: 'isOld',
    test: STANDING,
  },
  {
    name: 'a proof counts for ever',
    file: 'src/proxy/possession.ts',
    from: ' || isOld) {',
    to: ') {',
    test: STANDING,
  },
  {
    name: 'a proof counts for the version that came while the memory was asked',
    file: 'src/proxy/possession.ts',
    from: 'version !== undefined && version === this.#version',
    to: 'this.#version !== undefined',
    test: STANDING,
  },
  {
    name: 'proofs of a space count in another one',
    file: 'src/proxy/possession.ts',
    from: 'this.#proven.get(space) ?? NO_DIGESTS',
    to: 'this.#proven.values().next().value ?? NO_DIGESTS',
    test: STANDING,
  },
  {
    name: 'a refused shortened request is forgotten',
    file: 'src/proxy/shortener.ts',
    from: 'isAtFault ? refusalEntries(refusals, at) : []',
    to: '[]',
    test: 'test/proxy/shortening.test.ts',
    only: 'a refused shortened request',
  },
];
