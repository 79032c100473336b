import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  cleanOutputFiles,
  outputFileRefs,
  readOutputFile,
  writeOutputFile,
} from '../../src/adapters/files/output-files.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { runCli } from '../support/cli.ts';
import { outputRecordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

// Processes with a database each, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const DAY_MS = 24 * 3600 * 1000;
const TEXT = 'one\r\n\u2028two\n\n\0𝄞 tail without end';
const patience = (): AbortSignal => AbortSignal.timeout(30_000);

function outputOf(text: string): { ref: string; text: string; path(folder: string): string } {
  const ref = referenceOf(outputRecordOf(text).digest);
  return { ref, text, path: (folder) => join(folder, 'outputs', `${ref}.txt`) };
}

function openStore(folder: string) {
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  return store;
}

/** A store that has just proven these outputs, and so mirrors them. */
async function storeWithFiles(folder: string, texts: readonly string[], space = 'project') {
  const store = openStore(folder);
  const records = texts.map((text) => outputRecordOf(text, { space }));
  await store.memory.capture(records, patience());
  // Kept is not left out: nothing is written in plain sight before somebody needs it.
  expect(existsSync(join(folder, 'outputs'))).toBe(false);
  const digests = records.map(({ digest }) => digest);
  await store.memory.hold({ space, digests, nonce: Buffer.alloc(32) }, patience());
  await vi.waitFor(() => expect(filesIn(folder)).toHaveLength(texts.length), 10_000);
  return store;
}

function filesIn(folder: string): string[] {
  const outputs = join(folder, 'outputs');
  return existsSync(outputs) ? readdirSync(outputs).filter((name) => name.endsWith('.txt')) : [];
}

test('R28: what is left out is a file too: exact bytes, 0600 in a folder 0700, whatever the umask', async () => {
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  const folder = tempFolder();
  await storeWithFiles(folder, [TEXT]);
  const path = outputOf(TEXT).path(folder);
  expect(readFileSync(path).equals(Buffer.from(TEXT))).toBe(true);
  expect(lstatSync(path).mode & 0o777).toBe(0o600);
  expect(lstatSync(join(folder, 'outputs')).mode & 0o777).toBe(0o700);
  expect(readOutputFile(folder, outputOf(TEXT).ref)).toBe(TEXT);
});

test('forgetting an output removes its file, by reference, by space, and from another process', async () => {
  const folder = tempFolder();
  const store = await storeWithFiles(folder, ['the first', 'the second', 'the third']);
  const [first, second, third] = ['the first', 'the second', 'the third'].map(outputOf);
  await store.memory.forget({ refs: [first?.ref ?? ''] }, patience());
  expect(new Set(await outputFileRefs(folder))).toEqual(new Set([second?.ref, third?.ref]));
  const env = { SVC_DATA_HOME: folder };
  const { code } = await runCli(['memory', 'forget', second?.ref ?? '', '--yes'], {
    home: folder,
    env,
  });
  expect([code, await outputFileRefs(folder)]).toEqual([0, [third?.ref]]);
  await store.memory.forget({ space: 'project' }, patience());
  expect(await outputFileRefs(folder)).toEqual([]);
});

test('a file stays as long as one space holds its text', async () => {
  const folder = tempFolder();
  const store = await storeWithFiles(folder, [TEXT]);
  await store.memory.capture([outputRecordOf(TEXT, { space: 'other' })], patience());
  await store.memory.forget({ space: 'other' }, patience());
  expect(filesIn(folder)).toHaveLength(1);
});

test('svc memory get reads the file where the store cannot be opened, to the byte', async () => {
  const folder = tempFolder();
  const { ref } = outputOf(TEXT);
  await writeOutputFile(folder, outputOf(TEXT), Date.now());
  // Whoever runs this: a folder is no database.
  mkdirSync(join(folder, 'memory.db'));
  const get = (...words: string[]) =>
    runCli(['memory', 'get', ...words], { home: folder, env: { SVC_DATA_HOME: folder } });
  expect(await get(ref)).toEqual({ stdout: TEXT, stderr: '', code: 0 });
  expect((await get(ref, '--lines', '2-3')).stdout).toBe('\u2028two\n\n');
  const other = await get('m_aaaaaaaaaaaaaaaa');
  expect(other).toMatchObject({ stdout: '', code: 1 });
  expect(other.stderr).toContain('The memory cannot answer');
});

test('R28: a link is neither read nor written through', async () => {
  const folder = tempFolder();
  const elsewhere = join(tempFolder(), 'elsewhere');
  const output = outputOf(TEXT);
  writeFileSync(elsewhere, TEXT);
  mkdirSync(join(folder, 'outputs'));
  symlinkSync(elsewhere, output.path(folder));
  expect(readOutputFile(folder, output.ref)).toBeUndefined();
  writeFileSync(elsewhere, 'not mine');
  await writeOutputFile(folder, output, Date.now());
  expect(readFileSync(elsewhere, 'utf8')).toBe('not mine');
  expect(lstatSync(output.path(folder)).isFile()).toBe(true);
  const linked = tempFolder();
  symlinkSync(join(folder, 'outputs'), join(linked, 'outputs'));
  expect(readOutputFile(linked, output.ref)).toBeUndefined();
  await expect(writeOutputFile(linked, outputOf('new'), Date.now())).rejects.toThrow();
  expect(readdirSync(join(folder, 'outputs'))).toHaveLength(1);
});

test('a file that was changed, cut or replaced is not given out as the output', async () => {
  const folder = tempFolder();
  const output = outputOf(TEXT);
  await writeOutputFile(folder, output, Date.now());
  for (const other of [`${TEXT} `, TEXT.slice(1), '']) {
    writeFileSync(output.path(folder), other);
    expect(readOutputFile(folder, output.ref)).toBeUndefined();
  }
  expect(readOutputFile(folder, '../memory')).toBeUndefined();
  await expect(writeOutputFile(folder, { ref: '../x', text: '' }, 0)).rejects.toThrow();
});

test('files that nobody used for 7 days go, then the oldest of what is too much, and half-written ones', async () => {
  const folder = tempFolder();
  const now = Date.now();
  const ages = [0, 1, 3, 6.9, 7.1, 30];
  for (const days of ages) {
    const output = outputOf(`text of ${days} days `.padEnd(1_000, '.'));
    await writeOutputFile(folder, output, now - days * DAY_MS);
    // Only writing again what is there sets its time.
    await writeOutputFile(folder, output, now - days * DAY_MS);
  }
  const half = join(folder, 'outputs', '.0123456789abcdef.tmp');
  writeFileSync(half, 'half');
  utimesSync(half, (now - 8 * DAY_MS) / 1000, (now - 8 * DAY_MS) / 1000);
  writeFileSync(join(folder, 'outputs', 'notes.md'), 'not ours');
  await cleanOutputFiles(folder, now);
  expect(filesIn(folder)).toHaveLength(4);
  expect(existsSync(half)).toBe(false);
  await cleanOutputFiles(folder, now, 2_500);
  expect(new Set(await outputFileRefs(folder))).toEqual(
    new Set([0, 1].map((days) => outputOf(`text of ${days} days `.padEnd(1_000, '.')).ref)),
  );
  expect(readFileSync(join(folder, 'outputs', 'notes.md'), 'utf8')).toBe('not ours');
});
