/** The files beside memories: what is read, what is kept, and where it may go. */

const CODE = 'src/adapters/projects/code-files.ts';
const CODE_TEST = 'test/adapters/code-files.test.ts';

export const PROVENANCE = [
  {
    name: 'a file outside the project is compared',
    file: CODE,
    from: "part !== '' && part !== '..' && part !== '.git'",
    to: 'part !== undefined',
    test: CODE_TEST,
    only: 'R43',
  },
  {
    name: 'a file is read through a linked folder',
    file: CODE,
    from: 'if (isFolder !== true) return',
    to: 'if (isFolder === undefined) return',
    test: CODE_TEST,
    only: 'R43',
  },
  {
    name: 'a path with a secret is kept',
    file: CODE,
    from: 'return maskSecrets(name).masked === 0;',
    to: 'return true;',
    test: CODE_TEST,
    only: 'R26',
  },
  {
    name: 'what is forgotten leaves its files behind',
    file: 'src/adapters/store/schema.ts',
    from: 'record INTEGER PRIMARY KEY REFERENCES records(id) ON DELETE CASCADE,\n  root',
    to: 'record INTEGER PRIMARY KEY,\n  root',
    test: 'test/adapters/store-provenance.test.ts',
    only: 'R26',
  },
  {
    name: 'a forgotten exchange stays in a block with a mark',
    file: 'src/core/recall/own-blocks.ts',
    from: '(?:global|files changed since)',
    to: '(?:global)',
    test: 'test/core/agent-block.test.ts',
    only: 'R26',
  },
  {
    name: 'a memory service tells where an exchange was',
    file: 'src/core/memory-api/agent-recall.ts',
    from: 'return { ref, records, space, client, observed_at: isoTime(at), quotes: [...quotes] };',
    to: 'return Object.assign({ ref, records, space, client, observed_at: isoTime(at), quotes: [...quotes] }, arguments[0], { at: undefined });',
    test: 'test/core/memory-api/agent-recall.test.ts',
    only: 'R26',
  },
];
