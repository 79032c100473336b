import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Looks for words that were forgotten in all bytes of all files. */

/** The files of the folder that hold the word. */
export function holdersOf(folder: string, word: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = files.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  return paths.filter((path) => readFileSync(path).includes(word));
}

const PAGE_BYTES = 4096;
const LEAF_OF_TABLE = 0x0d;

/** Writes a word where SQLite leaves a row that it has moved to another page: before the rows of a page. */
export function plantIn(path: string, word: string): void {
  const bytes = readFileSync(path);
  for (let page = PAGE_BYTES; page < bytes.length; page += PAGE_BYTES) {
    const isLeaf = bytes[page] === LEAF_OF_TABLE;
    const pointersEnd = page + 8 + 2 * bytes.readUInt16BE(page + 3);
    const rowsStart = page + bytes.readUInt16BE(page + 5);
    if (!isLeaf || rowsStart - pointersEnd < 100) continue;
    bytes.write(word, rowsStart - 50);
    writeFileSync(path, bytes);
    return;
  }
  throw new Error('No page has room.');
}
