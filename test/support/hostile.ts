import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Public collections of hostile input. They are other people's data and stand beside the project, or in
 * the folder that SVC_TEST_HOSTILE names. A test whose collection is missing is skipped, and its name
 * says so.
 */

const FOLDER =
  process.env['SVC_TEST_HOSTILE'] ?? join(import.meta.dirname, '../../../shared/data/hostile');

export interface Collection {
  readonly isMissing: boolean;
  /** For the end of a test's name: '', or why it is skipped. */
  readonly note: string;
  /** The parsed file. */
  read(): unknown;
}

export function hostile(name: string): Collection {
  const path = join(FOLDER, name);
  const isMissing = !existsSync(path);
  return {
    isMissing,
    note: isMissing ? `: SKIPPED, ../shared/data/hostile/${name} is not there` : '',
    read: () => JSON.parse(readFileSync(path, 'utf8')),
  };
}

/** The bytes of a collection that lists texts in base64. */
export function decoded(texts: unknown): readonly Buffer[] {
  const list = Array.isArray(texts) ? (texts as unknown[]) : [];
  return list.map((text) => Buffer.from(String(text), 'base64'));
}
