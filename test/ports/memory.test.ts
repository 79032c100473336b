import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { memorySuite } from './memory-suite.ts';

memorySuite('the embedded store', () => {
  const store = openEmbeddedStore({ folder: tempFolder(), report: () => undefined });
  return store.memory;
});

memorySuite('the fake', () => new FakeMemory());
