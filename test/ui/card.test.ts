import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchBrowser, missingChromium, openUi } from '../support/browser.ts';
import { startPageStage } from '../support/ui-stage.ts';

/** The card to share: a file that says what it measures, alike in both themes. */

const missing = missingChromium();
const SHOTS = process.env['SVC_UI_SHOTS'];

async function saved(page: Page, button: string, theme: string): Promise<Buffer> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.locator('button', { hasText: button }).click(),
  ]);
  const name = download.suggestedFilename();
  const path = await download.path();
  if (SHOTS !== undefined) {
    mkdirSync(SHOTS, { recursive: true });
    copyFileSync(path, join(SHOTS, `card-${theme}-${name}`));
  }
  expect(name).toMatch(/^svc-savings\.(?:svg|png)$/);
  return readFileSync(path);
}

describe.skipIf(missing !== undefined)('the card to share', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('is saved as SVG and as PNG, with its scope in words and nothing of the page', async () => {
    const stage = await startPageStage();
    for (const session of ['a', 'b']) {
      await stage.say({ session, prompt: 'The tide checks go into the planner.' });
    }
    const pictures: string[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, faults } = await openUi(browser, { home: stage.home, look: { colorScheme } });
      await page.goto(`${page.url()}#/savings?days=7`);
      await page.locator('.card svg').waitFor();
      const svg = (await saved(page, 'Save as SVG', colorScheme)).toString();
      expect(svg).toMatch(/^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
      expect(svg).toMatch(/>(?:\d+\u00A0%|Even)<\/text>/);
      expect(svg).toMatch(/7 days to .*, 2 requests, by the providers’ own counts\./);
      expect(svg).toContain('Direct is an estimate. The price includes rereads and cache writes.');
      expect(svg).not.toMatch(/tidewater|class=|<script|href|127\.0\.0\.1/);

      const png = await saved(page, 'Save as PNG', colorScheme);
      expect(png.subarray(1, 4).toString()).toBe('PNG');
      expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([960, 440]);
      expect(png.length).toBeGreaterThan(5000);
      pictures.push(svg + png.toString('base64'));
      expect(faults).toEqual([]);
    }
    expect(new Set(pictures).size).toBe(1);
  });
});
