import { expect, test } from 'vitest';
import { tempFolder } from '../../../test/support/cli.ts';
import { callService } from '../support/memory-service.ts';
import { initService, makeServiceKey, runService } from '../support/service-process.ts';
import { allTexts, KILL_SPACE, killWhileCapturing } from '../support/service-kills.ts';

// Bounded here; SVC_TEST_KILLS=200 asks for more.
const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? '4');

test(
  'R27: after kills at any moment every acknowledged record is there, once',
  { timeout: 60_000 + KILLS * 6000 },
  async () => {
    const home = tempFolder();
    await initService(home);
    const key = await makeServiceKey(home);
    const safe: string[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      // oxlint-disable-next-line no-await-in-loop
      const service = await runService(home, '--quiet');
      // Kills that all come before the first answer would prove nothing.
      const run = { name: `run${kill}`, afterMs: 1 + Math.random() * 400, waits: kill === 0 };
      // oxlint-disable-next-line no-await-in-loop
      safe.push(...(await killWhileCapturing(service, key, run)));
    }
    const service = await runService(home, '--quiet');
    const texts = await allTexts(service.url, key);
    expect(new Set(texts).size).toBe(texts.length);
    const stored = new Set(texts);
    expect(safe.filter((text) => !stored.has(text))).toEqual([]);
    const { json } = await callService(service.url, `/v1/svc/whoami?space=${KILL_SPACE}`, { key });
    expect(json.space_state.commit_seq).toBe(texts.length);
    if (KILLS > 4)
      process.stderr.write(`${KILLS} kills, ${safe.length} acknowledged, ${texts.length} stored\n`);
  },
);
