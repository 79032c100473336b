import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  readForeignFile,
  removeForeignFile,
  replaceForeignFile,
} from '../../src/adapters/foreign/foreign-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

const CHANGED = { name: 'FileError', message: expect.stringContaining('changed meanwhile') };

test('a settings file that its program saves between reading and writing keeps what was saved', async () => {
  const path = join(tempFolder(), 'settings.json');
  writeFileSync(path, '{"a":1}');
  const file = await readForeignFile(path);
  writeFileSync(path, '{"a":2}');
  await expect(replaceForeignFile(file, '{"svc":true}')).rejects.toMatchObject(CHANGED);
  expect(readFileSync(path, 'utf8')).toBe('{"a":2}');
  await expect(removeForeignFile(file, undefined)).rejects.toMatchObject(CHANGED);
  expect(readFileSync(path, 'utf8')).toBe('{"a":2}');
});

test('a settings file that appears meanwhile is not replaced, and no draft is left', async () => {
  const folder = tempFolder();
  const path = join(folder, 'settings.json');
  const file = await readForeignFile(path);
  writeFileSync(path, '{"a":1}');
  await expect(replaceForeignFile(file, '{"svc":true}')).rejects.toMatchObject(CHANGED);
  expect(readFileSync(path, 'utf8')).toBe('{"a":1}');
  expect(readdirSync(folder)).toEqual(['settings.json']);
});
