import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** The stylesheet and the components name the same classes, elements and tokens. */

const folder = join(import.meta.dirname, '..', '..', 'src', 'ui');
const sheets = readdirSync(join(folder, 'styles')).filter((name) => name.endsWith('.css'));
const css = sheets
  .map((name) => readFileSync(join(folder, 'styles', name), 'utf8'))
  .join('\n')
  .replaceAll(/\/\*[^]*?\*\//g, '');
const components = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.tsx'))
  .map((name) => readFileSync(join(folder, name), 'utf8'));
const selectors = matches(css, /([^{}]+)\{/g)
  .map((selector) => selector.trim().replaceAll(/\[[^\]]*\]|:nth-child\([^)]*\)|::?[\w-]+/g, ''))
  .filter((selector) => selector !== '' && !selector.startsWith('@'))
  .join(' , ');

/** These come from the document, not from a component. */
const OF_THE_DOCUMENT = ['html', 'body'];
/** A value that is compared, and one that is an argument, is no class. */
const NO_CLASS = /[!=]==? '[^']*'|\('[^']*'\)/g;

function matches(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([, found = '']) => found);
}

function notIn(names: readonly string[], others: readonly string[]): readonly string[] {
  return [...new Set(names)].filter((name) => !others.includes(name));
}

/** `class="a b"`, `class={isOpen ? 'a' : NAMES[key]}` with the constant NAMES, and the fills `f-…`. */
function classesOf(source: string): readonly string[] {
  const chosen = matches(source, /\bclass=\{([^{}]*)\}/g);
  const constants = chosen
    .flatMap((text) => matches(text, /(?<!['\w.-])([A-Za-z]\w*)/g))
    .flatMap((name) => matches(source, new RegExp(`\\bconst ${name} = ([^;]*);`, 'g')));
  const literals = [...chosen, ...constants].flatMap((text) =>
    matches(text.replaceAll(NO_CLASS, ''), /'([^'\n]*)'/g),
  );
  const plain = matches(source, /\bclass="([^"]*)"/g);
  return [...plain, ...literals, ...matches(source, /['"](f-[a-z]+)['"]/g)].flatMap((text) =>
    text.split(' '),
  );
}

test('every sheet is a part of the page, and short', () => {
  const joined = readFileSync(join(folder, 'app.css'), 'utf8');
  const imported = matches(joined, /@import '\.\/styles\/([a-z]+\.css)'/g);
  expect(imported.toSorted()).toEqual(sheets.toSorted());
  const lines = sheets.map((name) =>
    readFileSync(join(folder, 'styles', name), 'utf8').split('\n'),
  );
  expect(lines.filter(({ length }) => length > 400)).toEqual([]);
});

test('every class of the stylesheet is one of a component, and the other way round', () => {
  const styled = matches(selectors, /\.([a-z][\w-]*)/gi);
  const used = components.flatMap(classesOf).filter((name) => name !== '');
  expect(used.length).toBeGreaterThan(200);
  expect(notIn(styled, used)).toEqual([]);
  expect(notIn(used, styled)).toEqual([]);
});

test('every element that the stylesheet names is drawn by a component', () => {
  const named = matches(selectors, /(?:^|[\s,>+~(])([a-z]\w*)/g);
  const drawn = components.flatMap((source) => matches(source, /<([a-z]\w*)/g));
  expect(named).toContain('table');
  expect(notIn(named, [...drawn, ...OF_THE_DOCUMENT])).toEqual([]);
});

test('every token of the stylesheet is used, and every one that is used exists', () => {
  const tokens = matches(css, /(--[\w-]+):/g);
  const used = matches(css, /var\((--[\w-]+)/g);
  expect(notIn(tokens, used)).toEqual([]);
  expect(notIn(used, tokens)).toEqual([]);
});
