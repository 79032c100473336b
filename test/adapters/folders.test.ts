import { join } from 'node:path';
import { makingError } from '../../src/adapters/files/private-folder.ts';
import { expect, test, vi } from 'vitest';
import { cacheFolder, dataFolder, configFolder } from '../../src/adapters/files/own-folders.ts';
import { createLocalToken } from '../../src/adapters/processes/local-token.ts';

// spec: 2.4-config-home, 2.4-xdg-config-home, 2.4-home-config
test('the configuration is in SVC_CONFIG_HOME, else XDG_CONFIG_HOME/svc, else ~/.config/svc', () => {
  const all = { SVC_CONFIG_HOME: '/a b/c', XDG_CONFIG_HOME: '/x', HOME: '/h' };
  expect(configFolder(all)).toBe('/a b/c');
  expect(configFolder({ ...all, SVC_CONFIG_HOME: '' })).toBe('/x/svc');
  expect(configFolder({ HOME: '/h', XDG_CONFIG_HOME: '' })).toBe('/h/.config/svc');
  expect(configFolder({ SVC_CONFIG_HOME: '/a/' })).toBe('/a');
});

test('T5: no folder depends on the current one', () => {
  expect(() => configFolder({ SVC_CONFIG_HOME: 'here', HOME: '/h' })).toThrow('not an absolute');
  expect(configFolder({ XDG_CONFIG_HOME: 'here', HOME: '/h' })).toBe('/h/.config/svc');
  expect(() => dataFolder({ SVC_DATA_HOME: './d' })).toThrow('not an absolute');
  vi.stubEnv('XDG_DATA_HOME', 'here');
  if (process.platform === 'linux') expect(() => dataFolder({})).toThrow('XDG_DATA_HOME');
  vi.unstubAllEnvs();
});

test('data and cache are in the folders of the system, with no suffix, or in SVC_DATA_HOME', () => {
  vi.stubEnv('XDG_DATA_HOME', '/data');
  vi.stubEnv('XDG_CACHE_HOME', '/cache');
  if (process.platform === 'linux') {
    expect(dataFolder({})).toBe('/data/svc');
    expect(cacheFolder({})).toBe('/cache/svc');
  }
  vi.unstubAllEnvs();
  expect(dataFolder({ SVC_DATA_HOME: '/d' })).toBe('/d');
  expect(cacheFolder({ SVC_DATA_HOME: '/d' })).toBe(join('/d', 'cache'));
});

test('R4: a local token is 32 random bytes', () => {
  const tokens = Array.from({ length: 100 }, createLocalToken);
  for (const token of tokens) expect(token).toMatch(/^svc_local_[A-Za-z0-9_-]{43}$/);
  expect(new Set(tokens).size).toBe(100);
});

test('a folder that cannot be made for lack of one above it lies in a file system that is read-only', () => {
  // Node looks at the path after EROFS, and reports ENOENT.
  const { message, hint } = makingError('/home/walrus/data', failed('ENOENT'));
  expect(message).toBe('/home/walrus/data cannot be made: its file system is read-only.');
  expect(hint).toContain('SVC_DATA_HOME');
  expect(makingError('/x', failed('EEXIST')).message).toBe('/x is not a folder.');
});

const failed = (code: string): Error => Object.assign(new Error(code), { code });
