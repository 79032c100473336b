import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  axeViolations,
  launchBrowser,
  missingChromium,
  openLink,
  openUi,
} from '../support/browser.ts';
import { runCli, runHere } from '../support/cli.ts';
import { LOCAL_TOKEN } from '../support/config.ts';
import { startPageStage } from '../support/ui-stage.ts';

/** The page in a real browser, in front of a real proxy. */

const missing = missingChromium();

/** All that a script of the page could read, or leave behind. */
const EVERYTHING = `JSON.stringify([document.documentElement.outerHTML, { ...localStorage },
  { ...sessionStorage }, document.cookie, location.href, history.state])`;

describe.skipIf(missing !== undefined)('the page', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('R47: opens by a link, shows requests live, and nothing in the browser holds a secret', async () => {
    const stage = await startPageStage();
    const { page, context, faults } = await openUi(browser, { home: stage.home });
    await expect.poll(() => page.locator('h1').innerText()).toBe('Nothing came through svc today.');
    expect(await page.locator('main').innerText()).toContain('No request is being answered.');
    expect(page.url()).toBe(`${stage.proxy.url}/svc/ui`);

    await stage.say({
      session: 's1',
      prompt: 'The tide checks go into the planner of the harbour.',
    });
    await expect.poll(() => page.locator('.talk').count()).toBe(1);
    await expect.poll(() => page.locator('.talk summary').innerText()).toContain('The tide checks');
    await page.locator('.talk summary').click();
    await page.locator('.inside table tbody tr').first().waitFor();
    expect(await page.locator('.talk .named').innerText()).toContain('tidewater');

    const cookies = await context.cookies();
    const { value = '', httpOnly, sameSite, path } = cookies[0] ?? {};
    expect([cookies.length, httpOnly, sameSite, path]).toEqual([1, true, 'Strict', '/svc/ui/api/']);
    const seen = String(await page.evaluate(EVERYTHING));
    for (const secret of [LOCAL_TOKEN, 'CANARY', value, 'link='])
      expect(seen).not.toContain(secret);
    expect(stage.proxy.stderr()).not.toMatch(/link=|CANARY|svc_local/);
    expect(faults).toEqual([]);
  });

  test('what happened while the stream of events was broken is there when it is back', async () => {
    const stage = await startPageStage();
    const { page, faults } = await openUi(browser, { home: stage.home });
    await page.route('**/events', (call) => call.abort());
    await page.reload();
    await page.locator('.notice.warn').waitFor();
    await page.getByText('The log has no request of a conversation yet.').waitFor();
    await stage.say({ session: 's1', prompt: 'The tide checks go into the planner.' });
    await page.unroute('**/events');
    await expect.poll(() => page.locator('.talk').count(), { timeout: 20_000 }).toBe(1);
    await page.locator('.notice.warn').waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
  });

  test('R47: a used link opens nothing, a reload and a bookmark continue in their tab alone', async () => {
    const stage = await startPageStage();
    const { stdout, stderr } = await runCli(['ui', '--print'], { home: stage.home });
    expect(stderr).toBe('');
    const { page } = await openLink(browser, stdout.trim());
    const again = await openLink(browser, stdout.trim());
    expect(await again.page.locator('h1').innerText()).toBe('This link is not valid any more.');
    await page.evaluate(`location.hash = '#/health'`);
    await page.reload();
    await expect.poll(() => page.title()).toBe('Health · svc');
    await page.goto(`${stage.proxy.url}/svc/ui#/savings`);
    await expect.poll(() => page.title()).toBe('Savings · svc');
    // Another tab has the cookie, and not the secret.
    const other = await page.context().newPage();
    await other.goto(`${stage.proxy.url}/svc/ui`);
    await expect.poll(() => other.locator('h1').innerText()).toBe('This page needs a link.');
    // A session that was closed is gone from the tab, too.
    await page.evaluate(`location.hash = '#/health'`);
    await page.locator('button', { hasText: 'Close it now' }).click();
    await expect.poll(() => page.locator('h1').innerText()).toBe('This page is closed.');
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    await page.reload();
    await expect.poll(() => page.locator('h1').innerText()).toBe('This page needs a link.');
  });

  test('a new link that is pasted into a tab leads back to the view that was open', async () => {
    const stage = await startPageStage();
    const { page, faults } = await openUi(browser, { home: stage.home });
    await page.locator('.views a', { hasText: 'Savings' }).click();
    await expect.poll(() => page.title()).toBe('Savings · svc');
    await page.evaluate('sessionStorage.clear()');
    await page.reload();
    await expect.poll(() => page.locator('h1').innerText()).toBe('This page needs a link.');
    expect(await page.locator('main').innerText()).toContain('svc ui');
    const { stdout } = await runCli(['ui', '--print'], { home: stage.home });
    await page.goto(stdout.trim());
    await expect.poll(() => page.title()).toBe('Savings · svc');
    expect(page.url()).toBe(`${stage.proxy.url}/svc/ui#/savings`);
    // An old link leaves an open page as it is.
    await page.goto(stdout.trim());
    await expect.poll(() => page.url()).toBe(`${stage.proxy.url}/svc/ui#/savings`);
    expect(await page.title()).toBe('Savings · svc');
    await stage.say({ session: 's1', prompt: 'The tide checks go into the planner.' });
    await page.locator('.views a', { hasText: 'Today' }).click();
    await expect.poll(() => page.locator('.talk').count()).toBe(1);
    expect(faults).toEqual([]);
  });

  test('a proxy that is gone, and one that was started again, are said', async () => {
    const stage = await startPageStage();
    const { page } = await openUi(browser, { home: stage.home });
    await stage.proxy.kill('SIGTERM');
    await expect
      .poll(() => page.locator('[role=status]').allInnerTexts())
      .toContainEqual(expect.stringContaining('does not answer'));
    await runCli(['start', '--detach'], { home: stage.home });
    await expect.poll(() => page.locator('h1').innerText()).toBe('This page has ended.');
    await runHere(['stop'], { home: stage.home });
  });

  test('"ui": false serves no page, and svc ui says so', async () => {
    const stage = await startPageStage({ ui: false });
    const { code, stdout, stderr } = await runCli(['ui'], { home: stage.home });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('"ui": false');
    expect((await fetch(`${stage.proxy.url}/svc/ui`)).status).toBe(401);
  });

  test.each(['light', 'dark'] as const)(
    'axe finds nothing in the %s theme',
    async (colorScheme) => {
      const stage = await startPageStage();
      await stage.say({
        session: 's1',
        prompt: 'The tide checks go into the planner of the harbour.',
      });
      const { page } = await openUi(browser, { home: stage.home, look: { colorScheme } });
      await page.locator('.talk summary').click();
      await page.locator('.inside').waitFor();
      expect(await axeViolations(page)).toEqual([]);
    },
  );
});
