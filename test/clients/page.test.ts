import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { axeViolations, launchBrowser, missingChromium, openLink } from '../support/browser.ts';
import { runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import { insertedText } from './support/laws.ts';
import { type CallPair, callPairs, evidence, openStage, type Stage } from './support/stage.ts';
import { svcCommand } from './support/svc-command.ts';

/** Real sessions of Claude Code and Codex, and every view of the page against what the provider saw. */

const claude = await installedClient('claude');
const codex = await installedClient('codex');
const missing = missingChromium() ?? claude.missing ?? codex.missing;

const FACT = 'the walrus gateway listens on port 6543';
const LEARN = `Move the walrus gateway. [[final=Decided: ${FACT}, because pgbouncer owns 6432 on that host.]]`;
const QUESTION = 'On which port does the walrus gateway listen, and why on that one? [[think=0]]';

/** A session that learns, and one of each client that is told. */
async function stageWithSessions(): Promise<Stage> {
  const stage = await openStage({ recallQuietPercent: 0, sessionBrief: false });
  expect(await runClaude(claude, stage, { prompt: LEARN })).toMatchObject({ status: 0 });
  // The captures of the first session are in the memory then.
  await stage.svc.stop();
  await stage.restartSvc();
  await ask(stage);
  return stage;
}

async function ask(stage: Stage): Promise<void> {
  const prompt = QUESTION;
  expect(await runClaude(claude, stage, { prompt })).toMatchObject({ status: 0 });
  expect(await runCodex(codex, stage, { prompt })).toMatchObject({ status: 0 });
}

async function openPage(browser: Browser, stage: Stage) {
  const { stdout, stderr } = await svcCommand(stage, claude, ['ui', '--print']).ended;
  expect(stdout.trim(), stderr).toMatch(/#link=/);
  return openLink(browser, stdout.trim());
}

function toldPairs(stage: Stage): readonly CallPair[] {
  return callPairs(stage).filter((pair) => evidence(pair, 'x-svc-memory-state') === 'recalled');
}

async function view(page: Page, name: string, ready: string): Promise<void> {
  await page.locator('.views a', { hasText: name }).click();
  await page.locator(ready).first().waitFor({ timeout: 60_000 });
}

describe.skipIf(missing !== undefined)('the page beside real clients', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test(
    'says what the provider saw, and what is forgotten in it is not recalled by the next prompt',
    { timeout: 300_000 },
    async () => {
      const stage = await stageWithSessions();
      const told = toldPairs(stage);
      expect(told.length).toBeGreaterThanOrEqual(2);
      const { page, faults } = await openPage(browser, stage);

      await expect.poll(() => page.locator('.talk').count()).toBe(3);
      const talks = await page.locator('.talk summary').allInnerTexts();
      expect(talks.filter((text) => text.includes('claude-code')).length).toBe(2);
      expect(talks.filter((text) => text.includes('codex')).length).toBe(1);
      await expect
        .poll(() => page.locator('.talk .named').allInnerTexts())
        .toContainEqual(expect.stringContaining('On which port does the walrus gateway listen'));

      for (const pair of told) {
        const id = evidence(pair, 'x-svc-request-id') ?? '';
        await page.goto(`${stage.svc.url}/svc/ui#/request?id=${id}`);
        await expect.poll(() => page.locator('main').innerText()).toContain(id);
        await page.locator('.lines .memory').first().waitFor();
        await expectBlock(page, pair);
      }
      const requests = callPairs(stage).length;
      await view(page, 'Savings', 'h1');
      await page.goto(`${stage.svc.url}/svc/ui#/requests`);
      await page.locator('tbody tr').first().waitFor();
      // Side calls of the clients are model requests too.
      expect(await page.locator('tbody tr').count()).toBe(requests);

      await view(page, 'Memory', '.hit');
      const held = page.locator('.hit', { hasText: '6543' });
      await expect.poll(() => held.count()).toBeGreaterThan(0);
      await held.first().locator('a').click();
      await page.locator('.record blockquote').waitFor();
      const seen = await page
        .locator('.trail a')
        .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
      for (const pair of told) {
        expect(seen).toContain(`#/request?id=${evidence(pair, 'x-svc-request-id')}`);
      }
      await view(page, 'Health', '.checks li');
      expect(await axeViolations(page)).toEqual([]);

      await view(page, 'Memory', '.hit');
      for (const box of await held.locator('input').all()) await box.check();
      const count = await page.locator('.hit input:checked').count();
      const button = page.getByRole('button', { name: /^Forget \d/ });
      await button.click();
      await button.click();
      await expect
        .poll(() => page.locator('.happened').innerText())
        .toContain(`${count} ${count === 1 ? 'memory' : 'memories'} forgotten`);
      await expect.poll(() => held.count()).toBe(0);

      const before = stage.provider.records.length;
      await ask(stage);
      const after = stage.provider.records.slice(before).map(({ body }) => body.toString());
      expect(after.length).toBeGreaterThanOrEqual(2);
      expect(after.filter((body) => body.includes('6543'))).toEqual([]);
      await view(page, 'Today', '.talk');
      await expect.poll(() => page.locator('.talk').count()).toBe(5);
      expect(faults).toEqual([]);
    },
  );
});

/** The block on the page is what svc put into the body, line by line. */
async function expectBlock(page: Page, pair: CallPair): Promise<void> {
  const [block = ''] = /<svc-memory.*<\/svc-memory>/.exec(insertedText(pair)) ?? [];
  const inserted = JSON.parse(`"${block}"`) as string;
  const lines = await page.locator('.lines > li').evaluateAll((items) =>
    items.map((item) =>
      [...item.childNodes]
        .filter(({ nodeType }) => nodeType === 3)
        .map(({ textContent }) => textContent ?? '')
        .join(''),
    ),
  );
  expect(lines.length).toBeGreaterThan(2);
  const written = inserted.split('\n').map((line) => line.trim());
  for (const line of lines.flatMap((text) => text.split('\n'))) {
    expect(written).toContain(line.trim());
  }
}
