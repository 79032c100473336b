/** Checks that let a request do without a question: earlier proofs, absent entries, known batches. */

const STANDING = 'test/proxy/standing-proofs.test.ts';
const LOOKUP = 'src/proxy/batch-lookup.ts';
const LOOKUPS = 'test/proxy/batch-lookup.test.ts';
const RELAY = 'src/proxy/relay.ts';
const RELAYED = 'test/proxy/relay.test.ts';
const COUNTS = 'test/proxy/provider-counts.test.ts';
const LISTED = 'test/proxy/read-items.prop.test.ts';
const PROOF_STATE = 'src/adapters/store/proof-state.ts';
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
    from: ' ${identityOf(log)} ${row.id}',
    to: ' ${row.id}',
    test: PROOFS,
  },
  {
    name: 'a write to the file itself leaves earlier proofs standing',
    file: PROOF_STATE,
    from: '${identityOf(stat)} ${stat.ctimeNs} ',
    to: '${identityOf(stat)} ',
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
    name: 'a count that was forgotten is taken for known',
    file: 'src/proxy/provider-counts.ts',
    from: 'counted?.generation !== this.#dependencies.ledger.generation()',
    to: 'counted === undefined',
    test: COUNTS,
  },
  {
    name: 'a count is known for ever, and a restart finds none',
    file: 'src/proxy/provider-counts.ts',
    from: 'isNearAnchor(view, counted.fingerprint) ? counted.measure : undefined',
    to: 'counted.measure',
    test: COUNTS,
  },
  {
    name: 'what was written in the moment in which the client goes is not read',
    file: RELAY,
    from: '  #settle(end: RelayEnd): void {\n    this.#watchNow();\n',
    to: '  #settle(end: RelayEnd): void {\n',
    test: RELAYED,
  },
  {
    name: 'the last facts are written before the answer was read to its end',
    file: RELAY,
    from: '  #passLast(): boolean {\n    this.#watchNow();\n',
    to: '  #passLast(): boolean {\n',
    test: RELAYED,
  },
  {
    name: 'a proof counts although the memory has another version',
    file: 'src/proxy/standing-proofs.ts',
    from: 'version === undefined || version !== this.#version || isOld',
    to: 'isOld',
    test: STANDING,
  },
  {
    name: 'a proof counts for ever',
    file: 'src/proxy/standing-proofs.ts',
    from: ' || isOld) this.clear();',
    to: ') this.clear();',
    test: STANDING,
  },
  {
    name: 'a proof counts for the version that came while the memory was asked',
    file: 'src/proxy/standing-proofs.ts',
    from: '    if (version === undefined || version !== this.#version) return;\n',
    to: '    if (this.#version === undefined) return;\n',
    test: STANDING,
  },
  {
    name: 'proofs of a space count in another one',
    file: 'src/proxy/standing-proofs.ts',
    from: 'digests: this.#bySpace.get(space) ?? NO_DIGESTS }',
    to: 'digests: this.#bySpace.values().next().value ?? NO_DIGESTS }',
    test: STANDING,
  },
  {
    name: 'an entry that a service writes itself is not looked for',
    file: 'src/adapters/service-store/ledger-table.ts',
    from: '    this.keys.add(key);\n',
    to: '',
    test: 'test/adapters/service-standing.test.ts',
  },
  {
    name: 'a purge of a service leaves its proofs as they were',
    file: 'src/adapters/service-store/store.ts',
    from: 'generation: () => database.generation(),',
    to: "generation: () => 'one',",
    test: 'test/adapters/service-standing.test.ts',
    only: 'a purge gives another version',
  },
  {
    name: 'a batch that a fork recorded is not looked for',
    file: LOOKUP,
    from: 'before === undefined || before.recorded !== this.#recorded',
    to: 'before === undefined',
    test: LOOKUPS,
  },
  {
    name: 'a batch that was recorded while the ledger was asked is not looked for',
    file: LOOKUP,
    from: '...this.#lookedUp(lookup), recorded, batches',
    to: '...this.#lookedUp(lookup), recorded: this.#recorded, batches',
    test: LOOKUPS,
  },
  {
    name: 'batches from before something was forgotten are known for ever',
    file: LOOKUP,
    from: '    if (before.generation !== this.#ledger.generation()) return 0;\n',
    to: '',
    test: LOOKUPS,
  },
  {
    name: 'a batch that another process recorded is never looked for',
    file: LOOKUP,
    from: '    if (before.until < this.#clock.monotonic()) return 0;\n',
    to: '',
    test: LOOKUPS,
  },
  {
    name: 'batches of what the person has taken back count',
    file: LOOKUP,
    from: 'view.items[at]?.fingerprint === fingerprint,',
    to: 'at + fingerprint.length >= 0,',
    test: LOOKUPS,
  },
  {
    name: 'a batch of an item that was rewritten counts',
    file: LOOKUP,
    from: 'knownPlaces.filter((at) => at < first).length;',
    to: 'knownPlaces.length;',
    test: LOOKUPS,
  },
  {
    name: 'outputs of the newest items are listed for good',
    file: 'src/core/shortening/output-list.ts',
    from: 'copy.#outputs = [...this.#outputs];',
    to: 'copy.#outputs = this.#outputs;',
    test: LISTED,
  },
  {
    name: 'what the newest items read again is counted for good',
    file: 'src/core/shortening/output-list.ts',
    from: 'copy.#counts = this.#counts.copy();',
    to: 'copy.#counts = this.#counts;',
    test: LISTED,
  },
  {
    name: 'a refusal of the own process is not looked for',
    file: 'src/proxy/refusal-watch.ts',
    from: '      unrefused.recorded === this.#recorded &&\n',
    to: '',
    test: 'test/proxy/shortening.test.ts',
    only: 'a refused shortened request',
  },
  {
    name: 'a refusal that another process saw is never looked for',
    file: 'src/proxy/refusal-watch.ts',
    from: '      unrefused.until > this.#clock.monotonic() &&\n',
    to: '',
    test: 'test/proxy/unrefused.test.ts',
  },
  {
    name: 'a mark of the own process is not looked for',
    file: LOOKUP,
    from: '      unmarked.recorded === this.#recorded &&\n',
    to: '',
    test: LOOKUPS,
  },
  {
    name: 'a mark that another process recorded is never looked for',
    file: LOOKUP,
    from: 'unmarked.until > this.#clock.monotonic()',
    to: 'unmarked.until > -Infinity',
    test: LOOKUPS,
  },
];
