import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { axeViolations, launchBrowser, missingChromium, openUi } from '../support/browser.ts';
import { runHere } from '../support/cli.ts';
import { startMemoryService } from '../../service/test/support/memory-service.ts';
import { startPageStage } from '../support/ui-stage.ts';

/** A memory service that is away while the page is open. */

const missing = missingChromium();
const FACT = 'The tide checks of the harbour go into the planner.';

describe.skipIf(missing !== undefined)('a store that is away', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('is said with a way to try again, and what it holds is there when it is back', async () => {
    const service = await startMemoryService();
    const { url: baseUrl, folder, pepper, port } = service;
    const serviceKey = await service.makeKey();
    const memory = { kind: 'hosted', baseUrl, serviceKey };
    const stage = await startPageStage({ memory });
    const added = await runHere(['memory', 'add', FACT, '--space', 'tidewater'], stage);
    expect([added.code, added.stderr]).toEqual([0, expect.any(String)]);
    const { page, faults } = await openUi(browser, { home: stage.home });
    await page.goto(`${page.url()}#/memory?space=tidewater`);
    await expect.poll(() => page.locator('.hit').allInnerTexts()).toHaveLength(1);
    expect(await page.locator('.lead').first().innerText()).toContain('A memory service holds');

    // The contract has no operation for the rest: it is off, and the page says why.
    for (const name of ['Client', 'Source', 'Kind']) {
      expect(await page.getByLabel(name).isDisabled()).toBe(true);
    }
    await page.locator('.hit a').click();
    await page.locator('.record blockquote').waitFor();
    for (const name of ['Edit', 'Move …', 'Pin']) {
      expect(await page.getByRole('button', { name, exact: true }).isDisabled()).toBe(true);
    }
    expect(await page.locator('#off').innerText()).toContain('others may use this memory too');
    expect(await axeViolations(page)).toEqual([]);

    // What a service has forgotten cannot be restored, so no question says that it can.
    await page.locator('.tick input').check();
    const chosen = page.getByRole('group', { name: '1 memory chosen' });
    await chosen.getByRole('button', { name: 'Forget 1 memory' }).click();
    expect(await chosen.locator('span').innerText()).toBe(
      'Forget 1 memory? That cannot be undone.',
    );
    await chosen.getByRole('button', { name: 'Clear selection' }).click();

    await service.stop();
    await page.goto(`${page.url()}&role=user`);
    await page.locator('.shelf [role=alert]').waitFor();
    expect(await page.locator('.shelf [role=alert]').innerText()).toContain(
      'The memory cannot answer now',
    );
    expect(await page.locator('[aria-busy=true]').count()).toBe(0);

    const again = await startMemoryService({ folder, pepper, port });
    await expect
      .poll(
        async () => {
          const retry = page.locator('.shelf [role=alert] button');
          if ((await retry.count()) > 0) await retry.click();
          return page.locator('.hit').allInnerTexts();
        },
        { interval: 500 },
      )
      .toEqual([expect.stringContaining(FACT)]);
    expect(faults).toEqual([]);
    await again.stop();
  });
});
