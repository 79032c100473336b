import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { Findings } from '../src/core/settings/config-values.ts';
import { readProxySettings } from '../src/core/settings/config-proxy.ts';
import { CLOSED, FAILURES, VIEWS } from '../src/ui/texts/frame.ts';
import { MEMORY } from '../src/ui/texts/memory.ts';

/** What the pages for users say must be true of the tree: links, settings, commands. */

const root = join(import.meta.dirname, '..');
const docs = ['docs', 'service/docs'].flatMap((folder) =>
  readdirSync(join(root, folder)).flatMap((it) => (it.endsWith('.md') ? [`${folder}/${it}`] : [])),
);
const PAGES = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'service/README.md', ...docs];
const read = (path: string) => readFileSync(join(root, path), 'utf8');

test.each(PAGES)('every link of %s leads to a file', (page) => {
  const targets = [...read(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, to]) => to);
  const missing = targets.filter((to) => !existsSync(join(root, dirname(page), to ?? '')));
  expect(missing).toEqual([]);
});

test('each fault of test/mended-faults.md has its test', () => {
  const rows = read('test/mended-faults.md').matchAll(/^\| .+ \| `(\S+)` +\| (.+?) +\|$/gm);
  const found = Array.from(rows, ([, file = '', name = '']) => [file, name] as const);
  expect(found.length).toBeGreaterThan(50);
  const missing = found.filter(
    ([file, name]) => !existsSync(join(root, file)) || !read(file).includes(name),
  );
  expect(missing).toEqual([]);
});

test('each security control that a test cites is in test/controls.md', () => {
  const listed = new Set(
    Array.from(read('test/controls.md').matchAll(/^- (R\d+): /gm), ([, id]) => id),
  );
  const folders = ['test', 'service/test'];
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => join(folder, name)),
  );
  const cited = files.flatMap((file) =>
    Array.from(read(file).matchAll(/\b(?:test|describe)[^\n]*\b(R\d{1,2})\b/g), ([, id]) => id),
  );
  expect(cited.length).toBeGreaterThan(100);
  expect([...new Set(cited)].filter((id) => !listed.has(id))).toEqual([]);
});

test('no page sends a reader to the repository address of package.json, which is not public yet', () => {
  const { homepage } = JSON.parse(read('package.json')) as { homepage: string };
  const address = homepage.replace(/#.*/, '');
  expect(address).toMatch(/^https:\/\/\S+\/\S+$/);
  expect(PAGES.filter((page) => read(page).includes(address))).toEqual([]);
});

test('every page of docs is linked from another page', () => {
  const all = PAGES.map(read).join('\n');
  const alone = docs.filter((name) => !all.includes(`${basename(name)})`));
  expect(alone).toEqual([]);
});

test('the README says how shortening is switched off', () => {
  expect(read('README.md')).toContain('svc setup --yes --compression-mode passthrough');
});

test('messages name a page as svc help PAGE, because a person who installed the package does not know its folder', () => {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const code = sources.flatMap((path) =>
    /\.tsx?$/.test(path) ? read(`src/${path}`).replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '') : [],
  );
  const named = code.flatMap((text) => [...text.matchAll(/\bdocs\/[\w-]+\.md/g)].map(([it]) => it));
  expect(named).toEqual([]);
  const pages = code.flatMap((text) =>
    [...text.matchAll(/See: svc help ([\w-]+)|see: svc help ([\w-]+)/g)].map(([, a, b]) => a ?? b),
  );
  expect(pages.length).toBeGreaterThan(3);
  expect(pages.filter((page) => !existsSync(join(root, `docs/${page}.md`)))).toEqual([]);
});

test('docs/page.md says what helps in every state of the page, and names every view', () => {
  const page = read('docs/page.md');
  const closed = Object.values(CLOSED).map(({ title }) => title);
  const failed = ['late', 'unreachable', 'internal'].map((name) => FAILURES[name] ?? name);
  const named = [...closed, ...failed, 'The memory cannot answer now.', MEMORY.kinds.stale];
  const missing = [...named, ...Object.values(VIEWS)].filter((one) => !page.includes(one));
  expect(missing).toEqual([]);
});

test('docs/configuration.md names every setting of the proxy with its default', () => {
  const page = read('docs/configuration.md');
  const defaults = readProxySettings({}, { environment: {}, flags: {} }, new Findings());
  for (const [name, value] of Object.entries(defaults)) {
    const row = page
      .split('\n')
      .find((line) => line.startsWith('|') && line.includes(`\`${name}\``));
    expect([name, row]).toEqual([name, expect.any(String)]);
    const said = row?.split('|')[2] ?? '';
    const isBytes = typeof value === 'number' && name.endsWith('BytesMax');
    const wanted = isBytes ? `${value / 1024 / 1024} MiB` : String(value);
    if (!Array.isArray(value))
      expect([name, said]).toEqual([name, expect.stringContaining(wanted)]);
  }
});
