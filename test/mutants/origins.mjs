/** Safety checks of capture and space: whose words a text is, and which memory a request may see. */

const UNKNOWN_ORIGIN = 'test/core/unknown-origin.test.ts';

export const ORIGINS = [
  {
    name: 'a frame inside a hook’s reminder counts as typed',
    file: 'src/core/conversation/end-reminders.ts',
    from: 'if (!rest.startsWith(REMINDER) || end === -1) return undefined;',
    to: 'if (!rest.startsWith(REMINDER) || end === -1) break;',
    test: UNKNOWN_ORIGIN,
  },
  {
    name: 'what stands beside a tool’s result counts as typed',
    file: 'src/core/conversation/human-text.ts',
    from: 'state.isOpen = false;',
    to: '',
    test: UNKNOWN_ORIGIN,
  },
  {
    name: 'what a client repeats before a summary is said again',
    file: 'src/core/conversation/exchanges.ts',
    from: 'if (item.isSummary === true && !draft.isAnswered)',
    to: 'if (item.isSummary === true && draft.isAnswered)',
    test: UNKNOWN_ORIGIN,
  },
  {
    name: 'a user message in any client’s form names the project',
    file: 'src/core/request/identity.ts',
    from: 'so?.userFolder?.statedBy === client ? so.userFolder.folder : undefined',
    to: 'so?.userFolder?.folder',
    test: 'test/core/identity.test.ts',
  },
  {
    name: 'a user message names the project before the system prompt',
    file: 'src/core/request/identity.ts',
    from: 'system.workingFolder ?? so?.systemFolder ?? inUser',
    to: 'inUser ?? system.workingFolder ?? so?.systemFolder',
    test: 'test/core/identity.test.ts',
  },
  {
    name: 'what comes after an answer names the project',
    file: 'src/core/conversation/so-far.ts',
    from: 'return number > 0 || isAnswered ? undefined',
    to: 'return number > 99 ? undefined',
    test: 'test/core/identity.test.ts',
  },
  {
    name: 'a client without a folder shares the space of strangers',
    file: 'src/proxy/recall-placer.ts',
    from: 'reading.hasProviderState || isUnplaced(reading.place.space)',
    to: 'reading.hasProviderState',
    test: 'test/proxy/memory-states.test.ts',
    only: 'always states its folder',
  },
  {
    name: 'an unverified text becomes a standing instruction',
    file: 'src/adapters/store/standing.ts',
    from: 'AND r.source IS NULL',
    to: '',
    test: 'test/adapters/store-source.test.ts',
  },
  {
    name: 'what an unknown client sends is the person’s word',
    file: 'src/proxy/capture-keeper.ts',
    from: 'identity.isKnown && !exchange.isUnverified',
    to: '!exchange.isUnverified',
    test: 'test/proxy/record-source.test.ts',
  },
  {
    name: 'a history that is found later renews a date',
    file: 'src/adapters/store/records.ts',
    from: 'if (isTimed === true) {',
    to: 'if (at > 0) {',
    test: 'test/adapters/store-source.test.ts',
  },
  {
    name: 'a correction is an echo',
    file: 'src/core/memory/echoes.ts',
    from: 'if (!isNews && isEcho(terms, heard)) {',
    to: 'if (isEcho(terms, heard)) {',
    test: 'test/core/echoes.test.ts',
  },
  {
    name: 'any fence takes the rest of a text with it',
    file: 'src/core/recall/own-blocks.ts',
    from: 'if (markOf(block, key) !== mark) continue;',
    to: '',
    test: 'test/core/own-blocks.test.ts',
  },
  {
    name: 'a model reads any space by reference',
    file: 'src/cli/memory/mcp-tools.ts',
    from: 'if (first === undefined || allowed.includes(first.space)) return first;',
    to: 'return first;',
    test: 'test/cli/mcp.test.ts',
    only: 'R42',
  },
];
