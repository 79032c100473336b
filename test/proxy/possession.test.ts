import { expect, test } from 'vitest';
import { textDigest } from '../../src/core/memory/reference.ts';
import { textProof } from '../../src/core/memory-api/canonical.ts';
import type { Holding, HoldQuestion, Memory } from '../../src/ports/memory.ts';
import { type AskedText, PossessionCheck } from '../../src/proxy/possession.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { wrapped } from '../support/wrapped-memory.ts';
import { manualClock } from '../support/manual-clock.ts';

const TEXTS = ['one', 'two', 'three'].map((text): AskedText => {
  return { digest: textDigest('tool', text), role: 'tool', text };
});
const DIGESTS = TEXTS.map(({ digest }) => digest);

/** A memory whose files say how they stand, and what it was asked. */
class Watched {
  version: number | undefined = 1;
  readonly held = new Set(DIGESTS);
  readonly asked: (readonly string[])[] = [];
  isLying = false;
  onHold = (): void => undefined;

  hold({ digests, nonce }: HoldQuestion): Promise<readonly Holding[]> {
    this.asked.push(digests);
    this.onHold();
    const proofs = TEXTS.filter(({ digest }) => digests.includes(digest) && this.held.has(digest));
    return Promise.resolve(
      proofs.map(({ digest, text }) => {
        return { digest, proof: textProof(nonce, 'tool', this.isLying ? `${text}!` : text) ?? '' };
      }),
    );
  }
}

function open(hasVersion = true) {
  const watched = new Watched();
  const clock = manualClock();
  const memory: Memory = wrapped(new FakeMemory(), {
    hold: (question) => watched.hold(question),
    ...(hasVersion ? { holdVersion: () => watched.version } : {}),
  });
  const check = new PossessionCheck(memory, clock);
  const proven = async (texts = TEXTS, space = 'project') => {
    const said = await check.check({ texts, space, deadlineMs: 10_000 });
    return said.kind === 'proven' ? texts.map(({ digest }) => said.digests.has(digest)) : said.kind;
  };
  return { watched, clock, proven };
}

test('what was proven counts in the next request while nothing can have gone', async () => {
  const { watched, proven } = open();
  expect(await proven()).toEqual([true, true, true]);
  expect(await proven()).toEqual([true, true, true]);
  expect(watched.asked).toEqual([DIGESTS]);
});

test('the memory is asked only for what it has not proven', async () => {
  const { watched, proven } = open();
  await proven(TEXTS.slice(0, 2));
  expect(await proven()).toEqual([true, true, true]);
  expect(watched.asked).toEqual([DIGESTS.slice(0, 2), DIGESTS.slice(2)]);
});

test('law 2: with another version all is proven anew', async () => {
  const { watched, proven } = open();
  await proven();
  watched.version = 2;
  watched.held.delete(DIGESTS[0] ?? '');
  expect(await proven()).toEqual([false, true, true]);
  expect(watched.asked).toEqual([DIGESTS, DIGESTS]);
});

test('law 2: without a version all is proven anew, and an earlier version does not bring it back', async () => {
  const { watched, proven } = open();
  await proven();
  watched.version = undefined;
  watched.held.clear();
  expect(await proven()).toEqual([false, false, false]);
  watched.version = 1;
  expect(await proven()).toEqual([false, false, false]);
  expect(watched.asked).toHaveLength(3);
});

test('law 2: a proof belongs to the version from before the memory was asked', async () => {
  const { watched, proven } = open();
  watched.onHold = () => {
    watched.version = 2;
  };
  await proven();
  watched.held.clear();
  expect(await proven()).toEqual([false, false, false]);
});

test('law 2: requests at the same time do not lend each other proofs of an earlier version', async () => {
  const { watched, proven } = open();
  const first = proven();
  watched.version = 2;
  await proven(TEXTS.slice(0, 1));
  await first;
  watched.held.clear();
  expect(await proven(TEXTS.slice(1))).toEqual([false, false]);
});

test('law 2: a proof counts in its own space alone', async () => {
  const { watched, proven } = open();
  await proven();
  watched.held.clear();
  expect(await proven(TEXTS, 'other')).toEqual([false, false, false]);
});

test('law 2: after an hour a proof is asked for anew', async () => {
  const { watched, clock, proven } = open();
  await proven();
  clock.goOn(3_600_001);
  await proven();
  await proven();
  expect(watched.asked).toHaveLength(2);
});

test('law 2: one false proof ends the trust in all earlier ones', async () => {
  const { watched, clock, proven } = open();
  await proven(TEXTS.slice(0, 1));
  watched.isLying = true;
  expect(await proven()).toBe('unproven');
  clock.goOn(60_000);
  expect(await proven(TEXTS.slice(0, 1))).toBe('unproven');
});

test('law 2: a memory that has no version proves in every request', async () => {
  const { watched, proven } = open(false);
  await proven();
  await proven();
  expect(watched.asked).toEqual([DIGESTS, DIGESTS]);
});
