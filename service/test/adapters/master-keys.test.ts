import { randomBytes } from 'node:crypto';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createMasterKeys } from '../../src/adapters/vault/master-keys.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

const KEY = randomBytes(32);
const ID = 'mk_00000001';

function find(from: string, environment: Record<string, string> = {}) {
  const sources = async () => [{ id: ID, from }];
  return createMasterKeys({ sources, environment }).find(ID);
}

function keyFile(text: string, mode = 0o600): string {
  const path = join(tempFolder(), 'master.key');
  writeFileSync(path, text, { mode });
  chmodSync(path, mode);
  return path;
}

test.each([
  ['base64url', `${KEY.toString('base64url')}\n`],
  ['base64', KEY.toString('base64')],
  ['hexadecimal', KEY.toString('hex')],
])('a key in %s is read from a file, the environment and a program', async (_, text) => {
  const path = keyFile(text);
  expect(await find(`file:${path}`)).toEqual(KEY);
  expect(await find('env:MASTER', { MASTER: text })).toEqual(KEY);
  expect(await find(`command:cat ${path}`)).toEqual(KEY);
});

test('R28: a file that others may read, a link and a folder are refused, with the id and not the key', async () => {
  const text = KEY.toString('hex');
  const link = join(tempFolder(), 'link.key');
  symlinkSync(keyFile(text), link);
  for (const path of [keyFile(text, 0o644), link, tempFolder(), '/nowhere.key', 'relative.key']) {
    // oxlint-disable-next-line no-await-in-loop
    await expect(find(`file:${path}`)).rejects.toThrow(`The master key ${ID} cannot be read`);
  }
});

test('R29: what is no key is refused, and nothing of it is quoted', async () => {
  for (const from of [
    'env:MISSING',
    `env:SHORT`,
    'command:false',
    'command:/nowhere/program',
    'command:echo CANARY-3',
    `command:cat ${keyFile('CANARY-4'.repeat(1000))}`,
    'https://example.com',
  ]) {
    // oxlint-disable-next-line no-await-in-loop
    const error = await find(from, { SHORT: 'CANARY-5' }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'FileError' });
    expect(String(error)).not.toContain('CANARY');
  }
});

test('a key is read once; one without a source is none', async () => {
  const path = keyFile(KEY.toString('hex'));
  const keys = createMasterKeys({
    sources: async () => [{ id: ID, from: `file:${path}` }],
    environment: {},
  });
  expect(await keys.find(ID)).toEqual(KEY);
  writeFileSync(path, 'gone');
  expect(await keys.find(ID)).toEqual(KEY);
  expect(await keys.find('mk_00000009')).toBe(undefined);
});
