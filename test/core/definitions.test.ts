import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { definitionsIn, fewDefinitions } from '../../src/core/bytes/definitions.ts';
import { definitionOf } from '../../src/cli/memory/excerpt.ts';

const namesIn = (text: string) => definitionsIn(text).map(({ name, line }) => `${line} ${name}`);

test.each([
  ['export async function loadAll(x) {', 'loadAll'],
  ['export default class Foo extends Bar {', 'Foo'],
  ['  private static load(a: string) {', 'load'],
  ['interface Shape<T> {', 'Shape'],
  ['export const run = async (x) => {', 'run'],
  ['const total = 3;', ''],
  ['def main():', 'main'],
  ['    async def fetch_all(self):', 'fetch_all'],
  ['func (s *Server) Handle(w http.ResponseWriter) {', 'Handle'],
  ['type Config struct {', 'Config'],
  ['pub(crate) fn parse<T>(input: &str) -> T {', 'parse'],
  ['impl<T> Reader for File {', 'Reader'],
  ['public void writeTo(OutputStream out) {', 'writeTo'],
  ['CREATE TABLE users (', 'users'],
  ['   12→export function numbered() {', 'numbered'],
  ['     7\tclass Tabbed:', 'Tabbed'],
  ['function of the second kind', ''],
  ['type the password', ''],
  ['return new Foo(', ''],
  ['if (a) {', ''],
])('in %j the name %j is defined', (text, name) => {
  expect(namesIn(text)).toEqual(name === '' ? [] : [`1 ${name}`]);
});

test('headings count where nothing else is defined', () => {
  const text = '# Install\n\ntext\n\n## From a clone\n';
  expect(namesIn(text)).toEqual(['1 Install', '5 From a clone']);
  expect(namesIn(`${text}def f():\n`)).toEqual(['6 f']);
});

test('a few are spread over the text, the outer ones first', () => {
  const methods = Array.from({ length: 30 }, (_, at) => `  public m${at}() {\n  }\n`).join('');
  expect(fewDefinitions(methods, 4).map(({ name }) => name)).toEqual(['m0', 'm8', 'm15', 'm23']);
  const classes = 'class A {\n  async public x() {}\n}\nclass B {\n}\nclass C {\n}\n';
  expect(fewDefinitions(classes, 4).map(({ name }) => name)).toEqual(['A', 'B', 'C']);
});

test('a definition ends where the next one begins that stands as far left', () => {
  const text =
    'class A:\n    def one(self):\n        pass\n    def two(self):\n        pass\nclass B:\n';
  expect(definitionOf(text, 'A.one')).toEqual({ line: 2, next: 4 });
  expect(definitionOf(text, 'A')).toEqual({ line: 1, next: 6 });
  expect(definitionOf(text, 'B')).toEqual({ line: 6, next: undefined });
  expect(definitionOf(text, 'C')).toBeUndefined();
});

test('any text has definitions in ascending lines, of bounded number and length', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 2_000 }), (text) => {
      const lines = text.split('\n').length;
      let before = 0;
      for (const { name, line } of definitionsIn(text)) {
        expect(line).toBeGreaterThan(before);
        expect(line).toBeLessThanOrEqual(lines);
        expect(name.length).toBeLessThanOrEqual(40);
        before = line;
      }
    }),
  );
  expect(definitionsIn('class A:\n'.repeat(100_000)).length).toBe(2_000);
  expect(fewDefinitions(`${'x '.repeat(500_000)}\n`, 6)).toEqual([]);
});
