import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openHostedMemoryWithOutbox } from '../../src/adapters/memory-client/open-hosted-memory.ts';
import { outputFileRefs } from '../../src/adapters/files/output-files.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { openHostedScene, patience } from '../support/hosted.ts';
import { startMemoryService } from '../../service/test/support/memory-service.ts';
import { outputRecordOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { keepThreads } from '../support/same-thread.ts';

keepThreads();

/** What lies near at hand of a service's outputs, when another machine has them forgotten. */

const OUTPUT = outputRecordOf('The build log says zebrafishlantern.');
const OTHER = outputRecordOf('Another project says pelican.', { space: 'other' });

type Service = Awaited<ReturnType<typeof startMemoryService>>;

interface MachineOptions {
  readonly folder?: string;
  readonly serviceKey?: string;
  /** Called before outputs are dropped. */
  readonly beforeDrop?: () => Promise<void>;
}

async function machine(service: Service, options: MachineOptions = {}) {
  const { folder = tempFolder(), beforeDrop = async () => undefined } = options;
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const serviceKey = options.serviceKey ?? (await service.makeKey());
  const drop = store.memory.dropOutputs.bind(store.memory);
  Object.assign(store.memory, {
    dropOutputs: async (space: string) => {
      await beforeDrop();
      await drop(space);
    },
  });
  const hosted = openHostedMemoryWithOutbox({
    settings: { kind: 'hosted', baseUrl: service.url, serviceKey, allowPrivate: true },
    recallMs: 10_000,
    mirror: store.memory,
    state: store.state,
    report: () => undefined,
  });
  const close = async (): Promise<void> => {
    await hosted.close();
    await store.close();
  };
  onTestFinished(close);
  return { folder, serviceKey, close, hosted, near: store.memory, memory: hosted.memory };
}

/** A machine that has left an output of each space out, so that it is near at hand and a file. */
async function machineWithOutputs(service: Service, options: MachineOptions = {}) {
  const here = await machine(service, options);
  for (const output of [OUTPUT, OTHER]) {
    const { space, digest } = output;
    expect(await here.memory.capture([output], patience())).toEqual(['stored']);
    const question = { space, digests: [digest], nonce: randomBytes(32) };
    expect(await here.memory.hold(question, patience())).toHaveLength(1);
  }
  await expect.poll(() => outputFileRefs(here.folder)).toHaveLength(2);
  return here;
}

/** Every byte in the folder, the files of outputs included. */
function bytesIn(folder: string): string {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile());
  return files
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'latin1'))
    .join('\n');
}

async function forgetElsewhere(service: Service): Promise<void> {
  const { memory } = await machine(service);
  const filter = { refs: [referenceOf(OUTPUT.digest)], space: 'project' };
  expect(await memory.forget(filter, patience())).toBe(1);
}

async function expectForgotten(here: Awaited<ReturnType<typeof machine>>): Promise<void> {
  const other = [referenceOf(OTHER.digest)];
  await expect.poll(() => outputFileRefs(here.folder)).toEqual(other);
  expect(await here.near.retrieve(OUTPUT, patience())).toBeUndefined();
  expect((await here.near.retrieve(OTHER, patience()))?.text).toBe(OTHER.text);
  // The databases are rewritten after the files are gone.
  await expect.poll(() => bytesIn(here.folder).includes('zebrafishlantern')).toBe(false);
}

test('R26: an output that another machine had forgotten is given out here no more, nor as a file', async () => {
  const service = await startMemoryService();
  const here = await machineWithOutputs(service);
  await forgetElsewhere(service);
  const ref = referenceOf(OUTPUT.digest);
  expect(await here.memory.retrieve({ ref }, patience())).toBeUndefined();
  await expectForgotten(here);
});

test('R26: it goes with the next call in its space', async () => {
  const service = await startMemoryService();
  const here = await machineWithOutputs(service);
  await forgetElsewhere(service);
  await here.memory.capture([recordOf('We went on.')], patience());
  await expectForgotten(here);
});

test('R26: what could not be dropped at once goes with the next call', async () => {
  const service = await startMemoryService();
  let isFull = true;
  let attempts = 0;
  const beforeDrop = async (): Promise<void> => {
    attempts += 1;
    if (isFull) throw new Error('the disk is full');
  };
  const here = await machineWithOutputs(service, { beforeDrop });
  await forgetElsewhere(service);
  await here.memory.capture([recordOf('We went on.')], patience());
  expect(attempts).toBeGreaterThan(0);
  expect(bytesIn(here.folder)).toContain('zebrafishlantern');
  isFull = false;
  await here.memory.capture([recordOf('And on.')], patience());
  await expectForgotten(here);
});

test('R26: what a process did not live to drop goes with the first call of the next one', async () => {
  const service = await startMemoryService();
  const never = new Promise<void>(() => undefined);
  const { folder, serviceKey, memory, close } = await machineWithOutputs(service, {
    beforeDrop: () => never,
  });
  await forgetElsewhere(service);
  await memory.capture([recordOf('We went on.')], patience());
  await close();
  const next = await machine(service, { folder, serviceKey });
  await next.memory.capture([recordOf('And on.')], patience());
  await expectForgotten(next);
});

test('R26: it goes without a call in its space too, where nobody works in it', async () => {
  const service = await startMemoryService();
  const here = await machineWithOutputs(service);
  await forgetElsewhere(service);
  await here.hosted.watch();
  await expectForgotten(here);
});

test('an output that a deletion did not mean is near at hand again with its next use', async () => {
  const service = await startMemoryService();
  const here = await machineWithOutputs(service);
  const second = outputRecordOf('Of the same project.');
  await here.memory.capture([second], patience());
  await forgetElsewhere(service);
  expect(await here.memory.capture([second, OUTPUT], patience())).toEqual([
    'duplicate',
    'forgotten',
  ]);
  expect((await here.near.retrieve(second, patience()))?.text).toBe(second.text);
  await expectForgotten(here);
});

test('the mirror answers where the service does not, and forgets with it', async () => {
  const near = new FakeMemory();
  const files: string[] = [];
  const mirror = Object.assign(near, {
    keepFiles: (_: string, digests: readonly string[]) => void files.push(...digests),
    placed: async () => new Map<string, ReadonlySet<string>>(),
    forgetPlaced: async () => 0,
    dropOutputs: async () => {},
    outputSpaces: async () => [],
  });
  const { service, hosted } = await openHostedScene({ mirror });
  const output = outputRecordOf('a build log');
  await hosted.memory.capture([output], patience());
  const nonce = randomBytes(32);
  await hosted.memory.hold({ space: 'project', digests: [output.digest], nonce }, patience());
  expect(files).toEqual([output.digest]);
  service.intercept = (_, response) => {
    response.destroy();
    return true;
  };
  expect((await hosted.memory.retrieve(output, patience()))?.text).toBe(output.text);
  service.intercept = () => false;
  const { ref = '' } = (await hosted.memory.retrieve(output, patience())) ?? {};
  expect(await hosted.memory.forget({ refs: [ref] }, patience())).toBe(1);
  expect(await near.retrieve(output, patience())).toBe(undefined);
});
