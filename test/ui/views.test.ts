import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  axeViolations,
  launchBrowser,
  missingChromium,
  openUi,
  type PageLook,
} from '../support/browser.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { runCli, runHere } from '../support/cli.ts';
import { longOutput, type Round } from '../support/tool-session.ts';
import { addPast } from '../support/ui-past.ts';
import { type PageStage, startPageStage } from '../support/ui-stage.ts';

/**
 * Every view in both themes, at 360, 768 and 1600 px and at 200 % zoom: axe-core finds nothing, nothing scrolls
 * sideways, and no policy is broken. `npm run ui:shots` keeps the pictures. axe-core judges each view in three looks
 * that have both themes, the narrow screen and the zoom between them; SVC_TEST_LOOKS=all lets it judge all seven.
 */

const missing = missingChromium();
const SHOTS = process.env['SVC_UI_SHOTS'];
const QUESTION = 'Where do the tide checks of the harbour planner go?';
const FACTS = [
  'Tide checks go into the planner, not into the API: use the table of the harbour, never the forecast.',
  'The margin of the berth plan is 1.2 m now, not 0.8. The harbour office changed it.',
  'Always run npm run check:plan before you say that a change of the plan is done.',
  'The tide table is read once at start and kept for a day.',
];

const VIEWS: readonly (readonly [name: string, hash: string, ready: string])[] = [
  ['now', '#/now', '.talk'],
  ['request', '#/request?id=ID', '.diff'],
  ['memory', `#/memory?space=tidewater&ref=REF&q=${encodeURIComponent(QUESTION)}`, '.record dl'],
  ['memory-list', '#/memory?space=tidewater', '.hit'],
  ['savings', '#/savings?days=14', '.chart'],
  ['requests', '#/requests?client=claude-code', 'tbody tr'],
  ['conversation', '#/now', '.talk'],
  ['health', '#/health', '.checks li'],
];

const LOOKS: readonly (readonly [name: string, look: PageLook])[] = [
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['768-light', { colorScheme: 'light', viewport: { width: 768, height: 1000 } }],
  ['360-dark', { colorScheme: 'dark', viewport: { width: 360, height: 780 } }],
  ['zoomed', { colorScheme: 'light', viewport: { width: 640, height: 450 } }],
  ['360-light', { colorScheme: 'light', viewport: { width: 360, height: 780 } }],
  ['wide-dark', { colorScheme: 'dark', viewport: { width: 1600, height: 1000 } }],
];

const JUDGES_ALL = process.env['SVC_TEST_LOOKS'] === 'all';
const JUDGED: readonly string[] = ['light', '360-dark', 'zoomed'];

function rounds(count: number): readonly Round[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `call_${at}`,
    tool: 'Bash',
    args: { command: `npm test part ${at}` },
    output: longOutput(`part${at}`, 1500),
  }));
}

/** A proxy through which a day of work went, with a changed request and a memory of it. */
async function dayOfWork(): Promise<Readonly<{ stage: PageStage; id: string; ref: string }>> {
  const stage = await startPageStage({ proxy: { inputBudget: 1000, elisionKeepRounds: 2 } });
  await addPast(stage.home);
  for (const text of FACTS) {
    await runHere(['memory', 'add', text, '--space', 'tidewater'], { home: stage.home });
  }
  const other = 'The folding step drops the last sheet: count them first.';
  await stage.say({ session: 'mill', prompt: other, space: 'paper-mill' });
  const { session } = await stage.sayRecalled(QUESTION);
  let headers = await stage.say({ session, prompt: QUESTION, rounds: rounds(8) });
  await expect
    .poll(async () => {
      headers = await stage.say({ session, prompt: QUESTION, rounds: rounds(12) });
      return headers.get('x-svc-continuity-state');
    })
    .toBe('elided_tool_output');
  const { stdout } = await runHere(['memory', 'list', '--json'], { home: stage.home });
  const listed = JSON.parse(stdout) as readonly { ref: string; text: string }[];
  const ref = listed.find(({ text }) => text === FACTS[0])?.ref ?? '';
  return { stage, id: headers.get('x-svc-request-id') ?? '', ref };
}

async function show(page: Page, hash: string, ready: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await page.locator(ready).first().waitFor({ timeout: 60_000 });
}

async function keepShot(page: Page, name: string): Promise<void> {
  if (SHOTS === undefined) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
}

/**
 * Every request that the provider got. A row is written behind the answer, and a busy machine makes
 * `sayRecalled` ask more often than a list is long by default.
 */
async function allRows(stage: PageStage): Promise<readonly RequestRow[]> {
  let rows: readonly RequestRow[] = [];
  await expect
    .poll(async () => {
      const args = ['requests', '--json', '--limit', '1000'];
      const { stdout } = await runCli(args, { home: stage.home });
      rows = JSON.parse(stdout) as readonly RequestRow[];
      return rows.length;
    })
    .toBe(stage.provider.records.length);
  return rows;
}

describe.skipIf(missing !== undefined)('every view', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test(
    'is usable in both themes, on a narrow screen and enlarged',
    { timeout: 480_000 },
    async () => {
      const { stage, id, ref } = await dayOfWork();
      const wrong: string[] = [];
      for (const [lookName, look] of LOOKS) {
        const { page, faults } = await openUi(browser, { home: stage.home, look });
        for (const [name, hash, ready] of VIEWS) {
          await show(page, hash.replace('ID', id).replace('REF', ref), ready);
          if (name === 'conversation') {
            await page.locator('.talk summary').first().click();
            await page.locator('.inside table').first().waitFor();
          }
          const isJudged = JUDGES_ALL || JUDGED.includes(lookName);
          const lines = isJudged ? await axeViolations(page) : [];
          wrong.push(...lines.map((line) => `${name} ${lookName}: ${line}`));
          const isWide = await page.evaluate(
            'document.documentElement.scrollWidth > document.documentElement.clientWidth',
          );
          if (isWide === true) wrong.push(`${name} ${lookName}: scrolls sideways`);
          await keepShot(page, `${name}-${lookName}`);
        }
        wrong.push(...faults);
      }
      expect(wrong).toEqual([]);
    },
  );

  test.each(['light', 'dark'] as const)(
    'says that there is nothing, that it failed, and that it is closed, in the %s theme',
    { timeout: 120_000 },
    async (colorScheme) => {
      const stage = await startPageStage();
      const { page, faults } = await openUi(browser, { home: stage.home, look: { colorScheme } });
      const wrong: string[] = [];
      const look = async (name: string): Promise<void> => {
        // A view may show its text while another part of it still loads.
        await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
        for (const line of await axeViolations(page)) wrong.push(`${name}: ${line}`);
        await keepShot(page, `state-${name}-${colorScheme}`);
      };
      const states = [
        ['now', '#/now', 'The log has no request of a conversation yet'],
        ['memory', '#/memory', 'Nothing is remembered yet'],
        ['savings', '#/savings', 'no request has a known cost'],
        ['requests', '#/requests', 'No request in the log matches'],
        ['request', '#/request?id=req_nothing', 'no longer has this request'],
        // An address that somebody typed.
        ['requests', '#/requests?first=garbage', 'No request in the log matches'],
        ['savings', '#/savings?days=100000', 'no request has a known cost'],
      ] as const;
      for (const [name, hash, text] of states) {
        await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
        await expect.poll(() => page.locator('main').innerText()).toContain(text);
        await look(name);
      }
      await page.evaluate('sessionStorage.clear()');
      await page.reload();
      await expect.poll(() => page.locator('main').innerText()).toContain('needs a link');
      await look('closed');
      expect([wrong, faults]).toEqual([[], []]);
    },
  );

  test('is reached and left by the keyboard alone', async () => {
    const stage = await startPageStage();
    await stage.say({ session: 's1', prompt: FACTS[0] ?? '' });
    const { page } = await openUi(browser, { home: stage.home });
    await page.locator('.talk').waitFor();
    const focused = (): Promise<unknown> =>
      page.evaluate('document.activeElement.textContent.trim().slice(0, 40)');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to content');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.locator('.inside table a').first().waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.locator('.diff').waitFor();
    await page.locator('.views a').nth(2).focus();
    await page.keyboard.press('Enter');
    await page.locator('#q').waitFor();
  });

  test('today says what the rows of today say, also that svc added to the price, and the last five conversations', async () => {
    const stage = await startPageStage();
    for (const text of FACTS) {
      await runHere(['memory', 'add', text, '--space', 'tidewater'], { home: stage.home });
    }
    const { session } = await stage.sayRecalled(QUESTION);
    await stage.say({ session, prompt: QUESTION, rounds: rounds(1) });
    for (const name of ['b', 'c', 'd', 'e']) {
      await stage.say({ session: name, prompt: 'What is the weather like?', space: 'paper-mill' });
    }
    const all = await allRows(stage);
    const sum = (of: (row: RequestRow) => number): number =>
      all.reduce((total, row) => total + of(row), 0);
    const [paid, direct] = [
      sum(({ price }) => price?.paid ?? 0),
      sum(({ price }) => price?.direct ?? 0),
    ];
    // A block was added, and nothing was left out.
    expect(paid).toBeGreaterThan(direct);
    const states = all.map(({ memoryState }) => memoryState);
    const recalled = states.filter((state) => state === 'recalled').length;
    const asked = recalled + states.filter((state) => state === 'empty').length;
    const { page } = await openUi(browser, { home: stage.home });
    await page.locator('.talk').nth(4).waitFor();
    // The figures are an answer of their own, which may come behind the conversations.
    await page.locator('.figures dt').first().waitFor();
    const added = `${Math.round((100 * (paid - direct)) / direct)}\u00A0%`;
    expect(await page.locator('.figures dt').allInnerTexts()).toContain('Added');
    expect(await page.locator('.figures .figure').allInnerTexts()).toEqual([
      `${recalled} of ${asked}`,
      added,
      String(all.filter(({ miss }) => miss !== undefined).length),
      '–',
    ]);
    expect(await page.locator('h1').innerText()).toBe(
      `Today svc added ${added} of what direct costs.`,
    );
    const shown = await page.locator('.talk').count();
    expect(shown).toBe(new Set(all.map(({ conversation }) => conversation)).size);
  });

  test('a request that only carries earlier memories is not called unchanged', async () => {
    const stage = await startPageStage();
    for (const text of FACTS) {
      await runHere(['memory', 'add', text, '--space', 'tidewater'], { home: stage.home });
    }
    const { session } = await stage.sayRecalled(QUESTION);
    const earlier = [{ prompt: QUESTION, answer: 'Into the planner.' }];
    const headers = await stage.say({ session, prompt: 'ok', earlier });
    expect(headers.get('x-svc-memory-state')).toBe('recalled');
    await allRows(stage);
    const { page } = await openUi(browser, { home: stage.home });
    await show(page, '#/requests', 'tbody tr');
    expect(await page.locator('tbody tr').first().innerText()).toContain(
      'Recalled for earlier prompts',
    );
    const id = headers.get('x-svc-request-id') ?? '';
    await show(page, `#/request?id=${id}`, '.diff');
    expect(await page.locator('h1').innerText()).toContain('Carried memories for earlier prompts');
  });

  test('savings say the same as svc stats, and their bars open the requests behind them', async () => {
    const stage = await startPageStage();
    for (const session of ['a', 'b']) await stage.say({ session, prompt: FACTS[0] ?? '' });
    await allRows(stage);
    const { page } = await openUi(browser, { home: stage.home });
    await show(page, '#/savings?days=7', '.chart');
    const { stdout } = await runCli(['stats', '--days', '7', '--json'], { home: stage.home });
    const { total } = JSON.parse(stdout) as {
      total: { requests: number; price: { paid: number; direct: number } };
    };
    await page.locator('.twin summary').click();
    const cells = await page.locator('.twin tfoot td').allInnerTexts();
    const numbers = cells.slice(0, 3).map((cell) => Number(cell.replaceAll(/[^\d]/g, '')));
    expect(numbers).toEqual([
      total.requests,
      Math.round(total.price.paid),
      Math.round(total.price.direct),
    ]);
    await page.locator('.chart a').first().focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(2);
  });

  test('health shows doctor’s checks with their mends, and its close button ends the page', async () => {
    const stage = await startPageStage();
    const { page } = await openUi(browser, { home: stage.home });
    await show(page, '#/health', '.checks li');
    const { stdout } = await runCli(['doctor', '--json'], { home: stage.home });
    const { checks } = JSON.parse(stdout) as { checks: readonly { level: string }[] };
    const bad = checks.filter(({ level }) => level !== 'ok').length;
    expect(await page.locator('.checks .warn, .checks .bad').count()).toBeGreaterThanOrEqual(bad);
    expect(await page.content()).not.toMatch(/CANARY|77aa/);
    await page.locator('button', { hasText: 'Close it now' }).click();
    await expect.poll(() => page.locator('h1').innerText()).toBe('This page is closed.');
  });
});
