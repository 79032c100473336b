import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { runHere } from './cli.ts';

/** Debian's Chromium, as it is found on the path. Where there is none, tests are skipped aloud. */

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export function findChromium(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => existsSync(path));
}

/** Why the tests of this file cannot run here. */
export function missingChromium(): string | undefined {
  if (findChromium() !== undefined) return undefined;
  const reason = 'no Chromium on the path: apt-get install chromium';
  process.stderr.write(`SKIPPED ALOUD: ${reason}\n`);
  return reason;
}

export async function launchBrowser(): Promise<Browser> {
  const executablePath = findChromium() ?? '';
  return chromium.launch({ executablePath, args: ARGS, timeout: 50_000 });
}

export interface OpenedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Reports of the policy, errors of the page and requests to other hosts; must stay empty. */
  readonly faults: string[];
}

export type PageLook = Readonly<{
  colorScheme?: 'light' | 'dark';
  viewport?: { width: number; height: number };
}>;

/** Opens the page of the proxy that runs in this home, by a link of `svc ui`. */
export async function openUi(
  browser: Browser,
  { home, look = {} }: { readonly home: string; readonly look?: PageLook },
): Promise<OpenedPage> {
  // It warns that the proxy is another build than the source.
  const { stdout, code } = await runHere(['ui', '--print'], { home });
  expect(code).toBe(0);
  return openLink(browser, stdout.trim(), look);
}

export async function openLink(
  browser: Browser,
  link: string,
  look: PageLook = {},
): Promise<OpenedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...look });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const faults: string[] = [];
  const { host } = new URL(link);
  page.on('console', (message) => {
    const isQuiet = !['error', 'warning'].includes(message.type());
    // An answer of 401 or 404 is the page's to show.
    if (!isQuiet && !/Failed to load resource/.test(message.text())) faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol !== 'data:' && url.host !== host) faults.push(`asked ${request.url()}`);
  });
  await page.goto(link);
  await page.locator('h1').first().waitFor();
  return { page, context, faults };
}

/** What axe-core finds wrong, in lines for a person. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  const isLoaded = await page.evaluate('"axe" in globalThis');
  if (isLoaded !== true) await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { axe: loaded } = globalThis as unknown as { axe: typeof axe };
    // To describe the elements that pass takes longer than to judge them all.
    const { violations } = await loaded.run({ resultTypes: ['violations'] });
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`,
    );
  });
}
