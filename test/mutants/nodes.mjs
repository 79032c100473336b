/** What keeps several nodes of a service honest; see list.mjs. */

const CONFIRMED = 'src/service/confirmed.ts';
const CONFIRMED_TEST = 'test/service/confirmed.test.ts';

export const NODES = [
  {
    name: 'a change drops nothing that is remembered',
    file: CONFIRMED,
    from: 'if (this.#options.concerns(fact, name, value)) this.#known.delete(name);',
    to: 'if (this.#options.concerns(fact, name, value)) break;',
    test: CONFIRMED_TEST,
  },
  {
    name: 'a caller is good for ever while the changes cannot be read',
    file: CONFIRMED,
    from: 'if (isFollowed && clock.monotonic() - changes.readAt <= GOOD_MS) return known.value;',
    to: 'if (isFollowed) return known.value;',
    test: CONFIRMED_TEST,
  },
  {
    name: 'a caller from before the first read of changes is believed',
    file: CONFIRMED,
    from: 'const isFollowed = known !== undefined && changes.readAt >= known.at;',
    to: 'const isFollowed = known !== undefined;',
    test: CONFIRMED_TEST,
  },
  {
    name: 'an answer that was under way while its fact changed is kept',
    file: CONFIRMED,
    from: 'else if (before === this.#changes) this.#known.set',
    to: 'else this.#known.set',
    test: CONFIRMED_TEST,
  },
  {
    name: 'a change is not in the list of changes',
    file: 'src/adapters/service-store/control.ts',
    from: 'if (fact !== undefined) this.changes.add(fact);',
    to: 'if (fact === null) this.changes.add(fact);',
    test: 'test/ports/service-store.test.ts',
  },
  {
    name: 'a gap in the list of changes is passed over',
    file: 'src/adapters/service-store/changes.ts',
    from: 'changes: last - after === changes.length ? changes : undefined',
    to: 'changes',
    test: 'test/ports/service-store.test.ts',
  },
];
