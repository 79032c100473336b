import { realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { CodeFiles } from '../../src/adapters/projects/code-files.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { axeViolations, launchBrowser, missingChromium, openUi } from '../support/browser.ts';
import { runCli, runHere, tempFolder } from '../support/cli.ts';
import { recordOf } from '../support/records.ts';
import { type PageStage, startPageStage } from '../support/ui-stage.ts';

/** The memory view against a real store: found as recall finds it, and kept in order. */

const missing = missingChromium();
const FACTS = [
  'Tide checks go into the planner, not into the API: use the table of the harbour.',
  'The margin of the berth plan is 1.2 m now, the harbour office changed it.',
  'Pilots are refused a slot when the depth is below draught plus margin.',
];
const OF_A_FILE = 'The planner reads the table of the harbour in planner.ts alone.';
const QUESTION = 'Where do the tide checks of the harbour planner go?';

async function stageWithFacts(): Promise<PageStage> {
  const stage = await startPageStage();
  for (const text of FACTS) await add(stage, text, 'tidewater');
  await add(stage, 'The folding step of the paper mill drops the last sheet.', 'paper-mill');
  return stage;
}

async function add({ home }: PageStage, text: string, space: string): Promise<void> {
  const { code, stderr } = await runHere(['memory', 'add', text, '--space', space], { home });
  expect([code, stderr]).toEqual([0, expect.any(String)]);
}

/** As the proxy keeps an answer that was about a file. */
async function learn({ home }: PageStage, root: string): Promise<void> {
  const folder = join(home, '.local', 'share', 'svc');
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const record = recordOf(OF_A_FILE, { space: 'tidewater', role: 'assistant' });
  await store.memory.capture([record], AbortSignal.timeout(30_000));
  const looked = await new CodeFiles().look({ folder: root, root }, ['planner.ts']);
  const { space, digest } = record;
  const files = looked?.files ?? [];
  expect(files).toHaveLength(1);
  await store.provenance.keep([{ space, digests: [digest], root, commit: '', files }]);
  await store.close();
}

async function openMemory(browser: Browser, stage: PageStage, words = '') {
  const opened = await openUi(browser, { home: stage.home });
  await opened.page.goto(`${opened.page.url()}#/memory?space=tidewater${words}`);
  await opened.page.locator('.shelf').waitFor();
  return opened;
}

async function openRecord(page: Page, text: string): Promise<void> {
  await page.locator('.hit a', { hasText: text }).first().click();
  await page.locator('.record blockquote').waitFor();
}

async function recalled(stage: PageStage, session: string): Promise<string> {
  await stage.say({ session, prompt: QUESTION });
  return stage.provider.records.at(-1)?.body.toString() ?? '';
}

describe.skipIf(missing !== undefined)('the memory view', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('lists by project, and a memory that is forgotten in the page is not recalled; undo brings it back', async () => {
    const stage = await stageWithFacts();
    const { page, faults } = await openMemory(browser, stage);
    expect(await page.locator('h1').innerText()).toBe(
      '4 memories in 2 projects, all on this machine.',
    );
    await expect.poll(() => page.locator('.hit').count()).toBe(3);
    expect(await recalled(stage, 's1')).toContain('Tide checks go into the planner');

    await openRecord(page, 'Tide checks');
    expect(await page.locator('.record blockquote').innerText()).toBe(FACTS[0]);
    await page.locator('.record summary', { hasText: 'Forget' }).click();
    await page.locator('.record button', { hasText: 'Forget 1 memory' }).click();
    await page.locator('.happened button', { hasText: 'Undo' }).waitFor();
    const listed = (): Promise<string> => page.locator('.shelf ol').innerText();
    await expect.poll(listed).not.toContain('Tide checks go into');
    // The day beside the list counts the same memories.
    const isCounted = async (): Promise<boolean> => {
      const total = Number.parseInt(await page.locator('#found').innerText(), 10);
      return (await page.locator('.rail ul').nth(1).innerText()).endsWith(`\n${total}`);
    };
    await expect.poll(isCounted).toBe(true);
    expect(await recalled(stage, 's2')).not.toContain('Tide checks go into the planner');
    const { stdout } = await runHere(['memory', 'list', '--json'], { home: stage.home });
    expect(stdout).not.toContain('Tide checks');

    await page.locator('.happened button', { hasText: 'Undo' }).click();
    await expect.poll(listed).toContain('Tide checks go into');
    await expect.poll(isCounted).toBe(true);
    expect(await recalled(stage, 's3')).toContain('Tide checks go into the planner');
    expect(faults).toEqual([]);
  });

  test('an edit leaves a tombstone and a marked record, and a second page hears that it is late', async () => {
    const stage = await stageWithFacts();
    const { page } = await openMemory(browser, stage);
    await openRecord(page, 'margin of the berth');
    const { page: other } = await openMemory(browser, stage);
    await openRecord(other, 'margin of the berth');
    const edit = async (one: Page, text: string): Promise<void> => {
      await one.locator('.record button', { hasText: 'Edit' }).click();
      await one.locator('#edit').fill(text);
      await one.locator('.edit button[type=submit]').click();
    };
    await edit(page, 'The margin of the berth plan is 1.5 m since Monday.');
    await expect.poll(() => page.locator('.record').innerText()).toContain('edited here on');
    await edit(other, 'The margin of the berth plan is 9 m.');
    await expect
      .poll(() => other.locator('.happened').innerText())
      .toContain('This memory was edited or forgotten meanwhile');
    expect(await other.locator('#edit').inputValue()).toBe('The margin of the berth plan is 9 m.');
    const { stdout } = await runHere(['memory', 'list', '--json'], { home: stage.home });
    expect(stdout).toContain('1.5 m since Monday');
    expect(stdout).not.toMatch(/1\.2 m|9 m/);
    const again = await runHere(['memory', 'add', FACTS[1] ?? '', '--space', 'tidewater'], {
      home: stage.home,
    });
    expect(again.stderr).toContain('forgotten');
  });

  test('a text that is being typed outlives a proxy that is started again', async () => {
    const stage = await stageWithFacts();
    const { page, faults } = await openMemory(browser, stage);
    await openRecord(page, 'margin of the berth');
    await page.locator('.record button', { hasText: 'Edit' }).click();
    const typed = 'The margin of the berth plan is 1.5 m since Monday.';
    await page.locator('#edit').fill(typed);
    await stage.proxy.kill('SIGKILL');
    const { home } = stage;
    expect((await runCli(['start', '--detach'], { home })).code).toBe(0);
    onTestFinished(async () => void (await runHere(['stop'], { home })));
    await expect.poll(() => page.locator('h1').innerText()).toBe('This page has ended.');
    await page.goto((await runHere(['ui', '--print'], { home })).stdout.trim());
    await expect.poll(() => page.locator('#edit').inputValue()).toBe(typed);
    await page.locator('.edit button[type=submit]').click();
    await expect.poll(() => page.locator('.record').innerText()).toContain('edited here on');
    expect(await page.locator('.record blockquote').innerText()).toBe(typed);
    expect(faults.filter((fault) => !fault.includes('ERR_CONNECTION'))).toEqual([]);
  });

  test('never and always are obeyed by the next recall', async () => {
    const stage = await stageWithFacts();
    const { page } = await openMemory(browser, stage);
    await openRecord(page, 'Tide checks');
    await page.locator('.choice label', { hasText: 'never' }).click();
    await expect.poll(() => page.locator('.happened').innerText()).toContain('Saved');
    expect(await recalled(stage, 's1')).not.toContain('Tide checks go into the planner');
    await page.locator('#w').fill(QUESTION);
    await page.locator('#w').press('Enter');
    await expect
      .poll(() => page.locator('.verdicts').innerText())
      .toContain('You pinned it as never');
    await page.locator('.choice label', { hasText: 'always' }).click();
    await expect
      .poll(() => page.locator('.hit').allInnerTexts())
      .toContainEqual(expect.stringContaining('Always'));
    await stage.say({
      session: 's2',
      prompt: 'Rename the paper format in the print view, please.',
    });
    expect(stage.provider.records.at(-1)?.body.toString()).toContain('Tide checks go into');
  });

  test('finds the memories that the code has outgrown', async () => {
    const stage = await stageWithFacts();
    const root = realpathSync(tempFolder());
    writeFileSync(join(root, 'planner.ts'), 'as it was');
    await learn(stage, root);
    const { page, faults } = await openMemory(browser, stage, '&kind=stale');
    const found = page.locator('#found');
    await expect.poll(() => found.innerText()).toBe('0 memories, newest first');
    writeFileSync(join(root, 'planner.ts'), 'as it became');
    await page.getByLabel('Kind').selectOption('edited');
    await page.getByLabel('Kind').selectOption('stale');
    await expect.poll(() => page.locator('.hit').allInnerTexts()).toHaveLength(1);
    expect(await page.locator('.hit').innerText()).toContain(OF_A_FILE);
    expect(faults).toEqual([]);
  });

  test('finds imported memories, and those that came by live', async () => {
    const stage = await stageWithFacts();
    const file = join(tempFolder(), 'memories.jsonl');
    const { stdout } = await runHere(['memory', 'export'], { home: stage.home });
    const [line = ''] = stdout.split('\n');
    const { digest: _, ref: __, ...rest } = JSON.parse(line) as Record<string, unknown>;
    const conversation = 'a-session-from-elsewhere';
    writeFileSync(
      file,
      JSON.stringify({ ...rest, text: OF_A_FILE, space: 'tidewater', conversation }),
    );
    expect((await runHere(['memory', 'import', file], { home: stage.home })).code).toBe(0);
    await stage.say({ session: 's1', prompt: 'The cranes of the harbour stand still in a storm.' });

    const { page, faults } = await openMemory(browser, stage);
    const found = async (source: string): Promise<readonly string[]> => {
      await page.getByLabel('Source').selectOption(source);
      await expect.poll(() => new URL(page.url()).hash).toContain(`source=${source}`);
      await page.locator('#found').waitFor();
      return page.locator('.hit p a').allInnerTexts();
    };
    await expect.poll(() => found('imported')).toEqual([OF_A_FILE]);
    await expect
      .poll(() => found('live'))
      .toContain('The cranes of the harbour stand still in a storm.');
    expect(await found('live')).not.toContain(OF_A_FILE);
    await expect.poll(async () => (await found('by_hand')).length).toBe(FACTS.length);

    await found('imported');
    await openRecord(page, OF_A_FILE);
    expect(await page.locator('.record .facts').innerText()).toContain('imported on');
    expect(faults).toEqual([]);
  });

  test('a memory that is moved is recalled in its new project alone', async () => {
    const stage = await stageWithFacts();
    const { page, faults } = await openMemory(browser, stage);
    await openRecord(page, 'Tide checks');
    await page.locator('.choice label', { hasText: 'never' }).click();
    await expect.poll(() => page.locator('.happened').innerText()).toContain('Saved');
    await page.locator('.record summary', { hasText: 'Move' }).click();
    await page.locator('.record details select').selectOption('paper-mill');
    await page.locator('.record button', { hasText: 'Move 1 memory' }).click();
    await expect.poll(() => page.locator('.happened').innerText()).toContain('Moved.');
    await expect.poll(() => page.locator('.record .facts').innerText()).toContain('paper-mill');
    expect(await page.locator('.record blockquote').innerText()).toBe(FACTS[0]);
    await expect.poll(() => page.locator('.hit').count()).toBe(2);
    // The mark of the person moves too.
    const never = page.getByRole('radio', { name: 'never' });
    expect(await never.isChecked()).toBe(true);
    await page.locator('.choice label', { hasText: 'when relevant' }).click();
    await expect.poll(() => never.isChecked()).toBe(false);
    expect(await recalled(stage, 's1')).not.toContain('Tide checks go into the planner');
    await stage.say({ session: 's2', prompt: QUESTION, space: 'paper-mill' });
    expect(stage.provider.records.at(-1)?.body.toString()).toContain('Tide checks go into');
    expect(faults).toEqual([]);
  });

  test('search shows what recall weighs, with the line below which it adds nothing', async () => {
    const stage = await stageWithFacts();
    const { page } = await openMemory(browser, stage);
    await page.locator('#q').fill(QUESTION);
    await page.locator('#q').press('Enter');
    await page.locator('.limit').waitFor();
    expect(await page.locator('.hit').first().innerText()).toContain('Tide checks go into');
    expect(await page.locator('.limit').innerText()).toContain('Recall adds nothing below');
    // Looking leaves no signal: the same question is still recalled.
    expect(await recalled(stage, 's1')).toContain('Tide checks go into the planner');
    expect(await axeViolations(page)).toEqual([]);
  });

  test('a project is renamed, merged and forgotten with its count', async () => {
    const stage = await stageWithFacts();
    const { page } = await openMemory(browser, stage);
    await page.locator('.project summary', { hasText: 'Rename' }).click();
    await page.locator('.project input[name=to]').fill('harbour');
    await page.locator('.project button', { hasText: 'Rename' }).click();
    await expect.poll(() => page.locator('.rail').innerText()).toContain('harbour');
    await page.locator('.project summary', { hasText: 'Merge' }).click();
    await page.locator('.project button', { hasText: 'Merge' }).click();
    await expect.poll(() => page.locator('h1').innerText()).toContain('4 memories in 1 project');
    await page.locator('.project summary', { hasText: 'Forget all' }).click();
    await page.locator('.project button', { hasText: 'Forget 4 memories' }).click();
    await expect.poll(() => page.locator('h1').innerText()).toContain('Nothing is remembered yet');
    expect((await runHere(['memory', 'list'], { home: stage.home })).stdout).toBe('');
  });

  test('projects have their short names, and a hash only where two have the same one', async () => {
    const stage = await startPageStage();
    const [shop, mill, other] = [
      'project/shop-0123456789',
      'project/mill-aaaaaaaaaa',
      'project/mill-bbbbbbbbbb',
    ];
    for (const space of [shop, mill, other]) await add(stage, FACTS[0] ?? '', space);
    await stage.say({ session: 's1', prompt: QUESTION, space: shop });
    const { page, faults } = await openUi(browser, { home: stage.home });
    const url = page.url();
    const look = async (hash: string, ready: string): Promise<void> => {
      await page.goto(`${url.replace(/#.*/, '')}${hash}`);
      await page.locator(ready).first().waitFor();
    };
    await look(`#/memory?space=${shop}`, '.hit a');
    await openRecord(page, 'Tide checks');
    const named = async (selector: string): Promise<void> => {
      const text = (await page.locator(selector).allInnerTexts()).join('\n');
      expect([selector, text]).toEqual([selector, expect.stringMatching(/\bshop\b/)]);
      expect([selector, text]).toEqual([selector, expect.not.stringContaining('shop-0123')]);
    };
    for (const part of ['.rail', '.filters', '.record .facts']) await named(part);
    expect(await page.locator('.project input[name=to]').inputValue()).toBe('shop');
    expect(await page.locator('.project').textContent()).toContain('Merge shop into');
    const rail = page.locator('.rail');
    await expect.poll(() => rail.innerText()).toContain(mill);
    expect(await rail.innerText()).toContain(other);
    await page.locator('.record summary', { hasText: 'Move' }).click();
    const moves = await page.locator('.record details select').innerText();
    expect(moves.split('\n').toSorted()).toEqual(['global', mill, other]);
    await page.locator('#w').fill(QUESTION);
    await page.locator('#w').press('Enter');
    await page.locator('.verdicts tbody tr').first().waitFor();
    await named('.verdicts');
    await look('#/savings', '.ranked');
    await named('main');
    await look('#/requests', 'tbody tr');
    await named('main');
    await look('#/now', '.talk');
    await named('main');
    expect(faults).toEqual([]);
  });

  test('hostile text is shown as text, wherever it stands', async () => {
    const stage = await startPageStage();
    const hostile = [
      '<script>globalThis.hacked = 1</script><img src=x onerror="globalThis.hacked = 1">',
      '[a link](javascript:globalThis.hacked=1) \u202Egnol\u202C \u001b[31mred\u001b[0m',
      `A very long line ${'0123456789'.repeat(3000)}`,
    ];
    for (const text of hostile) await add(stage, text, 'tidewater');
    await stage.say({ session: '<b>s</b>', prompt: hostile[0] ?? '', space: 'tidewater' });
    const { page, faults } = await openMemory(browser, stage);
    await openRecord(page, '<script>');
    expect(await page.locator('.record blockquote').innerText()).toContain('<script>');
    expect(await page.evaluate('globalThis.hacked')).toBeUndefined();
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await page.goto(`${stage.proxy.url}/svc/ui#/now`);
    await page.locator('.talk').first().waitFor();
    expect(faults).toEqual([]);
  });
});
