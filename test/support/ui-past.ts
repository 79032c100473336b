import { join } from 'node:path';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { recordOf } from './records.ts';
import { requestRow } from './request-row.ts';

/** Two weeks of made-up work before today, so that the views show what they are for. */

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const DAYS = 13;

/** A project with its client and model, its share of the work, and what svc cost there beside direct. */
const WORK = [
  { space: 'tidewater', client: 'claude-code', model: 'claude-sonnet-4-5', weight: 6, share: 0.74 },
  { space: 'paper-mill', client: 'codex', model: 'gpt-5.1-codex', weight: 3, share: 0.72 },
  { space: 'fieldnotes', client: 'claude-code', model: 'claude-haiku-4-5', weight: 2, share: 0.91 },
  { space: 'lanternfish', client: 'opencode', model: 'claude-haiku-4-5', weight: 1, share: 1.03 },
] as const;

const SAID: readonly (readonly [daysAgo: number, role: 'user' | 'assistant', text: string])[] = [
  [18, 'user', 'Tide checks go into the planner, not into the API: use the table of the harbour.'],
  [12, 'assistant', 'The roster refuses a slot when the depth is below draught plus 0.8 m.'],
  [9, 'user', 'The margin of the berth plan is 1.2 m now, not 0.8. The harbour office changed it.'],
  [6, 'user', 'Slack water is a range, so compare with its start.'],
  [5, 'assistant', 'The tide table is read once at start and kept for a day.'],
  [3, 'user', 'Put a check into the night job that the import is not older than two days.'],
];

export async function addPast(home: string): Promise<void> {
  const folder = join(home, '.local', 'share', 'svc');
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const noon = new Date().setHours(12, 0, 0, 0);
  for (let day = 1; day <= DAYS; day += 1) {
    for (const row of rowsOf(noon - day * DAY_MS)) store.requestLog.add(row);
  }
  store.requestLog.addQuota({
    at: Date.now(),
    login: 'harbour',
    reading: {
      provider: 'claude',
      windows: [
        { name: '5h', share: 0.42, resetAt: Date.now() + 2 * HOUR_MS },
        { name: '7d', share: 0.17, resetAt: Date.now() + 90 * HOUR_MS },
      ],
    },
    client: 'claude-code',
    space: 'tidewater',
    conversation: 'earlier',
    model: 'claude-sonnet-4-5',
  });
  const records = SAID.map(([daysAgo, role, text], nth) =>
    recordOf(text, {
      role,
      space: 'tidewater',
      conversation: `earlier-${daysAgo}`,
      client: nth % 3 === 2 ? 'codex' : 'claude-code',
      at: noon - daysAgo * DAY_MS,
    }),
  );
  await store.memory.capture(records, AbortSignal.timeout(30_000));
  await store.close();
}

const MISS = {
  by: 'client',
  place: 'tools',
  change: 'added',
  name: 'harbour',
  isServer: true,
  tokens: 41_000,
  price: 47_000,
} as const;

function rowsOf(noon: number): readonly RequestRow[] {
  const weekday = new Date(noon).getDay();
  // Weekends are quiet, and what little there is then costs a little more.
  const isQuiet = weekday === 0 || weekday === 6;
  const work = isQuiet ? WORK.slice(3) : WORK;
  return work.flatMap(({ space, client, model, weight, share }) =>
    Array.from({ length: isQuiet ? 1 : weight }, (_, nth) => {
      const direct = 40_000 + 9_000 * ((weekday * 3 + nth * 7) % 5);
      return requestRow({
        id: `req_${(noon / 1000 + nth).toString(16)}${space.replaceAll(/[^a-z]/g, '')}`,
        at: noon + nth * HOUR_MS,
        client,
        model,
        space,
        conversation: `${space}-${noon}`,
        continuityState: 'elided_tool_output',
        originalInputTokens: 92_000,
        forwardedInputTokens: 61_000,
        elidedItems: 14,
        elidedTokens: 31_000,
        recall: { exchange: nth, refs: [], isUsed: nth % 2 === 0 },
        ...(nth % 3 === 0 && { readings: 1 }),
        ...(nth % 4 === 1 && { miss: MISS }),
        price: { paid: direct * share, direct },
      });
    }),
  );
}
