import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';

/** A process to be killed: forgets all memories of a space. Arguments: folder, space. */
const [, , folder = '', space = ''] = process.argv;
const store = openEmbeddedStore({ folder, report: () => undefined });
await store.memory.forget({ space }, new AbortController().signal, () => process.stdout.write('.'));
await store.close();
