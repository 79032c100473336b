import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { strictSettings } from '../support/strict-provider/settings.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { StrictProvider } from '../support/strict-provider/strict-provider.ts';
import { runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import { openStage, type Stage } from './support/stage.ts';
import { svcCommand } from './support/svc-command.ts';

/** Some days of real clients, on a clock that the test moves: what svc counts is what the provider counted. */

const claude = await installedClient('claude');
const codex = await installedClient('codex');
const missing = claude.missing ?? codex.missing;

const DAY_MS = 86_400_000;
const CLOCK = pathToFileURL(join(import.meta.dirname, '..', 'support', 'moved-clock.mjs')).href;
const PLAN = '[[plan=bash:seq 900|bash:seq 10 900|bash:seq 20 900]]';

interface Moved {
  readonly stage: Stage;
  /** Moves the clock of svc, of its commands and of the provider. */
  readonly moveTo: (ms: number) => void;
}

async function openMoved(): Promise<Moved> {
  const file = join(tempFolder(), 'clock');
  let moved = 0;
  const moveTo = (ms: number): void => {
    moved = ms;
    writeFileSync(file, String(ms));
  };
  moveTo(-6 * DAY_MS);
  const env = { NODE_OPTIONS: `--import ${CLOCK}`, SVC_TEST_CLOCK: file };
  const stage = await openStage({}, { env });
  stage.provider.options = {
    strict: new StrictProvider(strictSettings({ now: () => Date.now() + moved })),
  };
  return { stage, moveTo };
}

async function json<T>(stage: Stage, args: readonly string[]): Promise<T> {
  const { stdout, stderr } = await svcCommand(stage, claude, [...args, '--json']).ended;
  expect(stdout, stderr).not.toBe('');
  return JSON.parse(stdout) as T;
}

const COUNTS = ['input', 'cacheRead', 'cacheWrite'] as const;
type Usage = Readonly<Record<(typeof COUNTS)[number], number>>;

function sumOf(all: readonly (Usage | undefined)[]): Usage {
  const sum = (name: (typeof COUNTS)[number]): number =>
    all.reduce((total, usage) => total + (usage?.[name] ?? 0), 0);
  return { input: sum('input'), cacheRead: sum('cacheRead'), cacheWrite: sum('cacheWrite') };
}

function chargedBy({ provider }: Stage): readonly (Usage | undefined)[] {
  return provider.records.flatMap(({ judgement, path }) =>
    judgement?.kind === 'accepted' && !path.includes('count_tokens') ? [judgement.usage] : [],
  );
}

interface Stats {
  readonly total: { readonly requests: number; readonly usage: Usage };
  readonly byDay: readonly { readonly requests: number; readonly usage: Usage }[];
}

describe.skipIf(missing !== undefined)('a week of real clients', () => {
  test(
    'is counted as the provider counted it, day by day, and a clock that jumps loses and doubles nothing',
    { timeout: 600_000 },
    async () => {
      const { stage, moveTo } = await openMoved();
      const ofDays: Usage[] = [];
      for (let day = 6; day >= 0; day -= 1) {
        const before = chargedBy(stage).length;
        moveTo(-day * DAY_MS);
        const prompt = `Work on part ${day} of the planner. ${PLAN} [[final=Part ${day} is done.]]`;
        // oxlint-disable no-await-in-loop -- One day comes after the other.
        expect(await runClaude(claude, stage, { prompt })).toMatchObject({ status: 0 });
        expect(await runCodex(codex, stage, { prompt, model: 'gpt-5.6' })).toMatchObject({
          status: 0,
        });
        // oxlint-enable no-await-in-loop
        ofDays.unshift(sumOf(chargedBy(stage).slice(before)));
      }
      const week = await json<Stats>(stage, ['stats', '--days', '7']);
      expect(week.total.usage).toMatchObject(sumOf(chargedBy(stage)));
      expect(week.byDay).toMatchObject(ofDays.map((usage) => ({ usage })));
      const rows = await json<readonly RequestRow[]>(stage, ['requests', '--limit', '1000']);
      expect(sumOf(rows.map(({ usage }) => usage))).toEqual(sumOf(chargedBy(stage)));

      // A day ahead the cache has expired; a clock that goes back says nothing about the cache.
      for (const ms of [DAY_MS, 0, -DAY_MS, -3_600_000]) {
        moveTo(ms);
        const prompt = `Where are we at ${ms}? [[final=Here.]]`;
        // oxlint-disable-next-line no-await-in-loop -- The clock moves in between.
        const end = await runClaude(claude, stage, { prompt, args: ['--continue'] });
        expect(end).toMatchObject({ status: 0 });
      }
      const all = await json<Stats>(stage, ['stats', '--days', '30']);
      expect(all.total.usage).toMatchObject(sumOf(chargedBy(stage)));
      const { stdout } = await svcCommand(stage, claude, ['cache']).ended;
      expect(stdout).toMatch(/^1 cache miss in the last 7 days/);
      expect(stdout).toContain('The lifetime of the cache ran out: once');
    },
  );
});
