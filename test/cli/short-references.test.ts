import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { failureText } from '../../src/adapters/store/driver.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { runHere, tempFolder } from '../support/cli.ts';
import { outputRecordOf, recordOf, sharedStarts } from '../support/records.ts';

/** The beginning of a reference is enough for every command; several that begin alike are listed. */

vi.setConfig({ testTimeout: 60_000 });

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

async function place() {
  const home = tempFolder();
  const env = { SVC_DATA_HOME: join(home, 'data') };
  const store = openEmbeddedStore({ folder: env.SVC_DATA_HOME, report: () => undefined });
  onTestFinished(() => store.close());
  const svc = (...args: readonly string[]) => runHere(['memory', ...args], { home, env });
  return { svc, memory: store.memory };
}

test('get, move and forget take the beginning of a reference, of outputs too', async () => {
  const { svc, memory } = await place();
  const said = recordOf('The depot opens at nine.');
  const output = outputRecordOf('a long log');
  await memory.capture([said], patience());
  await memory.capture([output], patience());
  const start = referenceOf(said.digest).slice(0, 6);
  expect(await svc('get', start)).toEqual({ code: 0, stdout: said.text, stderr: '' });
  expect((await svc('get', referenceOf(output.digest).slice(0, 6))).stdout).toBe('a long log');
  expect((await svc('move', start, '--to', 'global')).stderr).toContain('Moved to global: 1.');
  expect((await svc('forget', start, '--yes')).stderr).toContain('Forgotten: 1.');
  expect((await svc('forget', referenceOf(output.digest).slice(0, 6), '--yes')).code).toBe(0);
  expect((await svc('get', start)).stderr).toContain('No memory has this reference.');
  for (const flags of [[], ['--origin']]) {
    // oxlint-disable-next-line no-await-in-loop -- One command after the other on one store.
    expect((await svc('get', start.slice(0, 5), ...flags)).stderr).toContain(
      '4 characters after m_',
    );
  }
});

test('a beginning of several memories changes nothing and lists them', async () => {
  const { svc, memory } = await place();
  const both = sharedStarts(4);
  await memory.capture(both, patience());
  const start = referenceOf(both[0].digest).slice(0, 6);
  for (const args of [
    ['get', start],
    ['forget', start, '--yes'],
    ['move', start, '--to', 'global'],
  ]) {
    // oxlint-disable-next-line no-await-in-loop -- One command after the other on one store.
    const { code, stdout, stderr } = await svc(...args);
    expect([code, stdout]).toEqual([1, '']);
    for (const { digest, text } of both)
      expect(stderr).toContain(`${referenceOf(digest)}  ${text}`);
  }
  // Fewer characters are more likely a slip than a choice.
  expect((await svc('forget', start.slice(0, 5), '--yes')).code).toBe(1);
  expect(await memory.list({ space: 'project', limit: 9 }, patience())).toHaveLength(2);
});

test('no failure of the store shows a number of SQLite or a code of its driver', async () => {
  const failed = (codes: object) => failureText(Object.assign(new Error('SQLITE_x'), codes));
  for (let errcode = 1; errcode < 7000; errcode += 1) {
    const text = failed({ errcode, code: 'ERR_SQLITE_ERROR' });
    expect(text).toMatch(/^(?:is|cannot|could) /);
    expect(text).not.toMatch(/\d|sqlite|ERR_/i);
  }
  expect(failed({ errcode: 13 })).toContain('disk is full');
  expect(failed({ code: 'ENOSPC' })).toBe('cannot be used (ENOSPC)');
  const home = tempFolder();
  mkdirSync(join(home, 'data', 'memory.db'), { recursive: true, mode: 0o700 });
  writeFileSync(join(home, 'data', 'memory.db', 'x'), '');
  const env = { SVC_DATA_HOME: join(home, 'data') };
  for (const args of [['memory', 'list'], ['doctor', '--offline'], ['requests'], ['stats']]) {
    // oxlint-disable-next-line no-await-in-loop -- One command after the other on one store.
    const { stdout, stderr, code } = await runHere(args, { home, env });
    expect(code).toBe(1);
    expect((stdout + stderr).replace(/SQLite 3\.[\d.]+/g, '')).not.toMatch(/SQLITE|ERR_|code \d/i);
  }
});
