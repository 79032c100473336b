import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { axeViolations, launchBrowser, missingChromium, openUi } from '../support/browser.ts';
import { LOCAL_TOKEN } from '../support/config.ts';
import { longOutput, type Round } from '../support/tool-session.ts';
import { type PageStage, startPageStage } from '../support/ui-stage.ts';

/** One request in two columns, against what the recording provider saw. */

const missing = missingChromium();

const FACT = 'Tide checks go into the planner, not into the API: use the table of the harbour.';

function rounds(count: number): readonly Round[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `call_${at}`,
    tool: 'Bash',
    args: { command: `npm test part ${at}` },
    output: longOutput(`part${at}`, 1500),
  }));
}

/** A request that carries a block and leaves outputs out. */
async function changedRequest(stage: PageStage): Promise<string> {
  await stage.say({ session: 'earlier', prompt: FACT });
  const prompt = 'Where do the tide checks of the harbour planner go?';
  const { session } = await stage.sayRecalled(prompt);
  const state = async (asked: number): Promise<Headers> =>
    stage.say({ session, prompt, rounds: rounds(asked) });
  let headers = await state(10);
  await expect
    .poll(
      async () => {
        headers = await state(12);
        return headers.get('x-svc-continuity-state');
      },
      { interval: 300 },
    )
    .toBe('elided_tool_output');
  return headers.get('x-svc-request-id') ?? '';
}

describe.skipIf(missing !== undefined)('one request', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('shows the exact text that svc added and left out, and no other', async () => {
    const stage = await startPageStage({ proxy: { inputBudget: 1000, elisionKeepRounds: 2 } });
    const id = await changedRequest(stage);
    const forwarded = stage.provider.records.at(-1)?.body.toString() ?? '';
    const { page, faults } = await openUi(browser, { home: stage.home });
    await page.goto(`${page.url()}#/request?id=${id}`);
    await page.locator('.diff').waitFor();

    const block = (await page.locator('.lines > li').allInnerTexts()).join('\n');
    expect(block).toContain('tidewater');
    const fence = await page.locator('.lines > li').first().innerText();
    expect(forwarded).toContain(JSON.stringify(fence).slice(1, -1));
    expect(await page.locator('.lines .memory').first().innerText()).toContain(
      'Tide checks go into',
    );
    expect(await page.locator('.lines .memory a').first().getAttribute('href')).toMatch(
      /^#\/memory\?space=tidewater&ref=m_/,
    );

    const stub = await page.locator('.gone .left pre').first().innerText();
    expect(stub).toMatch(/^\[svc left out this Bash output/);
    expect(forwarded).toContain(JSON.stringify(stub).slice(1, -1));
    await page.locator('.gone summary').first().click();
    await page.locator('.gone .sent pre').first().waitFor();
    expect(await page.locator('.gone .sent pre').first().innerText()).toContain('part0 line 0');

    expect(await page.locator('h1').innerText()).toMatch(/^Added .*left out \d+ old items?/);
    expect(await page.locator('.fold .size').first().innerText()).toMatch(/tokens$/);
    const html = await page.content();
    // A prompt is the client's: svc keeps no body, so the page cannot have it.
    expect(html).not.toContain('Where do the tide checks of the harbour planner go?');
    expect(await axeViolations(page)).toEqual([]);
    expect(faults).toEqual([]);
    if (process.env['SVC_TEST_SHOTS'] !== undefined) {
      await page.screenshot({
        path: `${process.env['SVC_TEST_SHOTS']}/request.png`,
        fullPage: true,
      });
    }
  });

  test('proxy.keepRequests shows whole requests both ways, and forgets them when it is off', async () => {
    const stage = await startPageStage({ proxy: { keepRequests: 2 } });
    await stage.say({ session: 'earlier', prompt: FACT });
    const prompt = 'Where do the tide checks of the harbour planner go?';
    const { headers } = await stage.sayRecalled(prompt);
    const { page } = await openUi(browser, { home: stage.home });
    await page.goto(`${page.url()}#/request?id=${headers.get('x-svc-request-id')}`);
    await page.locator('.whole').waitFor();
    const [sent = '', went = ''] = await page.locator('.whole pre').allInnerTexts();
    expect([sent.includes(prompt), went.includes(prompt)]).toEqual([true, true]);
    expect([sent.includes('svc-memory'), went.includes('svc-memory')]).toEqual([false, true]);
  });

  test('hostile text of a tool, a model and a client is shown as text', async () => {
    const stage = await startPageStage({ proxy: { inputBudget: 1000, elisionKeepRounds: 2 } });
    const attack =
      '<img src=x onerror="globalThis.hacked = 1"><script>globalThis.hacked = 1</script>';
    const marks = 'javascript:globalThis.hacked=1 \u202Egnol\u202C \u001b[31mred\u001b[0m';
    const hostile = rounds(12).map((round, at) => ({
      ...round,
      tool: `Bash${attack}`,
      output: at === 0 ? `${attack}\n${marks}\n${'0123456789'.repeat(10_000)}` : round.output,
    }));
    let id = '';
    await expect
      .poll(
        async () => {
          const asked = { session: 's', prompt: FACT, rounds: hostile, space: 'tidewater' };
          const headers = await stage.say(asked);
          id = headers.get('x-svc-request-id') ?? '';
          return headers.get('x-svc-continuity-state');
        },
        { interval: 300 },
      )
      .toBe('elided_tool_output');
    await fetch(`${stage.proxy.url}/v1/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': LOCAL_TOKEN,
        'user-agent': attack,
        'x-svc-memory-space': 'tidewater',
      },
      body: JSON.stringify({
        model: `${attack}${'m'.repeat(500)}`,
        max_tokens: 9,
        messages: [{ role: 'user', content: `${attack} ${marks}` }],
      }),
    });
    const { page, faults } = await openUi(browser, { home: stage.home });
    const isNarrow = 'document.documentElement.scrollWidth <= innerWidth';
    await expect.poll(() => page.locator('.talk').count()).toBeGreaterThan(1);
    expect(await page.evaluate(isNarrow)).toBe(true);
    await page.goto(`${page.url()}#/request?id=${id}`);
    await page.locator('.gone summary').first().click();
    await page.locator('.gone .sent pre').first().waitFor();
    expect(await page.locator('.gone .sent pre').first().innerText()).toContain(attack);
    expect(await page.evaluate(isNarrow)).toBe(true);
    await page.goto(`${stage.proxy.url}/svc/ui#/requests`);
    await page.locator('tbody tr').first().waitFor();
    expect(await page.evaluate(isNarrow)).toBe(true);
    expect(await page.evaluate('globalThis.hacked')).toBeUndefined();
    expect(faults).toEqual([]);
  });

  test('an unknown request is said, with a way to try again', async () => {
    const stage = await startPageStage();
    const { page } = await openUi(browser, { home: stage.home });
    await page.goto(`${page.url()}#/request?id=req_nothing`);
    await expect
      .poll(() => page.locator('[role=alert]').innerText())
      .toContain('no longer has this request');
    expect(await page.locator('[role=alert] button').innerText()).toBe('Try again');
  });
});
