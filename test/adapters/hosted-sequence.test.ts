import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { COMMIT_SEQUENCE_MAX } from '../../src/core/memory-api/limits.ts';
import { openHostedScene, patience } from '../support/hosted.ts';
import { outputRecordOf, questionOf } from '../support/records.ts';

/** A service that counts its commits wrong, once or for good. */

const OUTPUT = outputRecordOf('A build log of some length.');

async function sceneWithOutput() {
  const scene = await openHostedScene();
  await scene.hosted.memory.capture([OUTPUT], patience());
  const hold = ({ memory } = scene.hosted) =>
    memory.hold({ space: 'project', digests: [OUTPUT.digest], nonce: randomBytes(32) }, patience());
  expect(await hold()).toHaveLength(1);
  /** One recall that is answered with this count. */
  const recallWith = async (commit_seq: number): Promise<unknown> => {
    scene.service.alter = (_, answer) => ({ ...answer, commit_seq });
    const asked = scene.hosted.memory.recall(questionOf('anything'), patience());
    const result = await asked.catch((error: unknown) => error);
    scene.service.alter = (_, answer) => answer;
    return result;
  };
  return { ...scene, hold, recallWith };
}

test.each([COMMIT_SEQUENCE_MAX + 1, Number.MAX_SAFE_INTEGER, 1e300, -1, 1.5])(
  'T12: a count that no service reaches (%d) is no answer, and later ones count on',
  async (count) => {
    const { hold, recallWith, lines } = await sceneWithOutput();
    expect(await recallWith(count)).toMatchObject({ name: 'MemoryError', reason: 'invalid' });
    expect(await hold()).toHaveLength(1);
    expect(lines).toEqual([]);
  },
);

test('T12: a service that goes behind what it told is believed no more, and svc says so once', async () => {
  const { hold, recallWith, lines, service } = await sceneWithOutput();
  expect(await recallWith(5_000_000)).toEqual({ passages: [] });
  expect(await hold()).toEqual([]);
  expect(await hold()).toEqual([]);
  expect(lines).toEqual([
    expect.stringMatching(/lost commits of the space project, or its commit sequence/),
  ]);
  // A deletion there begins anew.
  service.operations.moveOn('project', { counter: 1, sequence: 0 });
  expect(await hold()).toEqual([]);
  expect(lines).toHaveLength(1);
});
