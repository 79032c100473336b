import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Postings } from '../../src/adapters/store/postings.ts';
import type {
  Passage,
  PassageOfRecord,
  RecallSource,
  Space,
  TermCount,
} from '../../src/adapters/store/recall-source.ts';
import { PASSAGES_PER_SPACE } from '../../src/adapters/store/schema.ts';
import { done, runAtOnce, type Steps } from '../../src/adapters/store/steps.ts';

const SPACE = 3;

/** Passages in memory, and how often the lists of a term were read from them. */
class Passages {
  readonly #terms = new Map<number, readonly string[]>();
  #next = 1;
  #deletions = 0;
  reads = 0;

  add(terms: readonly string[]): void {
    this.#terms.set(this.#next, terms);
    this.#next += 1;
  }

  delete(nth: number): void {
    const places = [...this.#terms.keys()];
    this.#terms.delete(places[nth % Math.max(1, places.length)] ?? 0);
    this.#deletions += 1;
  }

  with(term: string): number[] {
    return [...this.#terms].flatMap(([place, terms]) => (terms.includes(term) ? [place] : []));
  }

  get space(): Space {
    return { id: SPACE, name: 'project', passages: this.#terms.size, terms: 0, next: this.#next };
  }

  get source(): RecallSource {
    const read = (term: string): number[] => {
      this.reads += 1;
      return this.with(term);
    };
    const source: Partial<RecallSource> = {
      generation: () => String(this.#deletions),
      countTerms: (_space, terms, most) =>
        done(
          terms.map((term): TermCount => {
            const places = read(term).slice(0, most);
            return { found: places.length, places: Uint32Array.from(places) };
          }),
        ),
      countTerm: (_space, term, most) => done(Math.min(most, read(term).length)),
      placesOf: (_space, terms, from) =>
        done(terms.map((term) => Uint32Array.from(read(term).filter((place) => place >= from)))),
      passages: (ids) => done(ids.flatMap((id) => this.#passage(id))),
      passagesOf: (_space, digests) => {
        this.reads += 1;
        return done(digests.flatMap((digest) => this.#saidAt(digest)));
      },
    };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Nothing else is read for a list.
    return source as RecallSource;
  }

  /** A record has one passage here, and its digest is its number as text. */
  #saidAt(digest: string): PassageOfRecord[] {
    const place = Number(digest);
    if (!this.#terms.has(place)) return [];
    const id = SPACE * PASSAGES_PER_SPACE + place;
    return [{ digest, record: id, passage: id }];
  }

  #passage(id: number): Passage[] {
    const terms = this.#terms.get(id - SPACE * PASSAGES_PER_SPACE);
    return terms === undefined ? [] : [{ id, record: id, position: 0, chars: 1, terms }];
  }
}

function* look(
  postings: Postings,
  passages: Passages,
  terms: readonly string[],
): Steps<number[][]> {
  const space = yield* postings.in(passages.space);
  yield* space.count(terms);
  const found = yield* space.places(terms, PASSAGES_PER_SPACE);
  for (const [at, term] of terms.entries()) {
    const count = found[at]?.length ?? 0;
    expect(Math.min(256, space.frequency(term))).toBe(Math.min(256, count));
  }
  return found.map((places) => [...places]);
}

const WORDS = ['walrus', 'oyster', 'carpenter', 'shoe', 'ship', 'wax'];
const word = fc.constantFrom(...WORDS);
const step = fc.oneof(
  fc.record({ add: fc.array(fc.array(word, { maxLength: 5 }), { maxLength: 8 }) }),
  fc.record({ many: fc.integer({ min: 250, max: 300 }), of: word }),
  fc.record({ delete: fc.nat() }),
  fc.record({ ask: fc.uniqueArray(word, { minLength: 1 }) }),
);

test('a list says what the passages hold, whatever came and went since it was read', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const passages = new Passages();
      const postings = new Postings(passages.source);
      for (const one of [...steps, { ask: WORDS }]) {
        if ('add' in one) for (const terms of one.add) passages.add(terms);
        if ('many' in one) for (let at = 0; at < one.many; at += 1) passages.add([one.of]);
        if ('delete' in one) passages.delete(one.delete);
        if (!('ask' in one)) continue;
        const found = runAtOnce(look(postings, passages, one.ask));
        expect(found).toEqual(one.ask.map((term) => passages.with(term)));
      }
    }),
    { numRuns: 200 },
  );
});

test('a list is read once, and again only after something was deleted', () => {
  const passages = new Passages();
  const postings = new Postings(passages.source);
  const ask = (): number => {
    runAtOnce(look(postings, passages, ['walrus']));
    return passages.reads;
  };
  passages.add(['walrus']);
  expect(ask()).toBe(1);
  passages.add(['walrus', 'oyster']);
  expect(ask()).toBe(1);
  passages.delete(0);
  expect(ask()).toBe(2);
});

test('the records of a request are looked up once, and those that were not there when one came', () => {
  const passages = new Passages();
  const postings = new Postings(passages.source);
  const ask = (): string[] => {
    function* steps(): Steps<readonly PassageOfRecord[]> {
      return yield* (yield* postings.in(passages.space)).passagesOf(['1', '2']);
    }
    return runAtOnce(steps()).map(({ digest }) => digest);
  };
  passages.add(['walrus']);
  expect(ask()).toEqual(['1']);
  expect(ask()).toEqual(['1']);
  expect(passages.reads).toBe(1);
  passages.add(['oyster']);
  expect(ask()).toEqual(['1', '2']);
  expect(passages.reads).toBe(2);
  passages.delete(0);
  expect(ask()).toEqual(['2']);
});
