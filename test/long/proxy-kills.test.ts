import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { KilledProxy } from '../support/killed-proxy.ts';

/**
 * Law 7, R27: SIGKILL at random moments of the built program while four clients talk through it. What was
 * acknowledged is kept: placed blocks byte for byte, bound thinking, captures, rows of the request log.
 * A fifth of the kills is in a first start. SVC_TEST_KILLS=200 asks for the long run, and SVC_TEST_KILL_SEED for
 * other moments.
 */
const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? '40');
const FIRST_STARTS = Math.ceil(KILLS / 5);
const SEED = Number(process.env['SVC_TEST_KILL_SEED'] ?? '20261124');
/** Three of four processes die within so long after their first answer, the others in their start. */
const TALK_MS = 700;
const MS_PER_KILL = 20_000;

test(
  `R27: ${KILLS - FIRST_STARTS} kills of a proxy under load lose nothing that was acknowledged`,
  async () => {
    const killed = await KilledProxy.open();
    await killed.learn();
    const startMs = await timeOfStart(killed);
    for (let kill = 0; kill < KILLS - FIRST_STARTS; kill += 1) {
      /* oxlint-disable no-await-in-loop -- One process after the other. */
      const moment = fractionOf(kill);
      await (kill % 4 === 0
        ? killed.live(moment * startMs, 'start')
        : killed.live(moment * TALK_MS, 'answers'));
      // Either the next proxy finds what the killed one left, or another program does.
      if (kill % 2 === 0) await killed.expectKept();
      /* oxlint-enable no-await-in-loop */
    }
    await killed.start();
    await killed.step();
    await killed.proxy.stop('SIGTERM');
    await killed.expectKept();
    await killed.expectAllStored();
    const blocks = killed.talks.reduce((sum, talk) => sum + talk.blocks, 0);
    const kills = KILLS - FIRST_STARTS;
    process.stdout.write(
      `MEASURED ${kills} kills: ${killed.answers} answers, ${blocks} blocks sent\n`,
    );
    expect(Math.min(killed.answers, blocks)).toBeGreaterThan(kills / 2);
  },
  60_000 + KILLS * MS_PER_KILL,
);

test(
  `a start that is killed at any of ${FIRST_STARTS} moments leaves a folder that every later start can use`,
  async () => {
    const startMs = await timeOfStart(await KilledProxy.open());
    for (let kill = 0; kill < FIRST_STARTS; kill += 1) {
      /* oxlint-disable no-await-in-loop -- One process after the other. */
      const killed = await KilledProxy.open();
      const afterMs = fractionOf(KILLS + kill) * startMs * 1.5;
      await killed.live(afterMs);
      const left = `after ${Math.round(afterMs)} of ${Math.round(startMs)} ms`;
      await killed.start();
      await killed.step();
      await killed.expectKept();
      await killed.proxy.stop('SIGTERM');
      killed.expectNothingDamaged();
      const { home, folder } = killed.proxy;
      const env = { SVC_DATA_HOME: folder };
      const { stdout } = await runCli(['doctor', '--offline'], { home, env });
      expect([left, stdout]).toEqual([left, expect.not.stringMatching(/problem +Store/)]);
      expect(readdirSync(folder).filter((name) => name.startsWith('proxy-'))).toEqual([]);
      /* oxlint-enable no-await-in-loop */
    }
  },
  60_000 + FIRST_STARTS * MS_PER_KILL,
);

/** From the first moment of a process to its first answers. */
async function timeOfStart(killed: KilledProxy): Promise<number> {
  const began = performance.now();
  await killed.start();
  await killed.step();
  const ms = performance.now() - began;
  await killed.proxy.stop('SIGKILL');
  return ms;
}

/** From 0 to 1, the same for the same number. */
function fractionOf(number: number): number {
  return (Math.imul(SEED + number, 2_654_435_761) >>> 0) / 2 ** 32;
}
