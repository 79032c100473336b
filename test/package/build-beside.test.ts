import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, readdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runProgram, tempFolder } from '../support/cli.ts';

// It builds twice, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

const root = join(import.meta.dirname, '..', '..');

/** The sources as they are, with the packages of this clone. */
function copyOfClone(): string {
  const folder = tempFolder();
  for (const name of ['bin', 'src', 'scripts', 'package.json', 'tsconfig.json', 'tsup.config.ts']) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

test('a build beside an installed svc breaks none of its calls, and a missing build is one sentence', async () => {
  const folder = copyOfClone();
  const bin = join(folder, 'bin', 'svc.js');
  const svc = (...args: string[]) =>
    runProgram([process.execPath, bin, ...args], { home: folder, cwd: folder });
  const tsup = [join(root, 'node_modules/tsup/dist/cli-default.js'), '--silent'];
  const unbuilt = await svc('--version');
  expect([unbuilt.code, unbuilt.stderr.trim().split('\n').length]).toEqual([1, 1]);
  expect(unbuilt.stderr).toContain('npm run build');
  execFileSync(process.execPath, tsup, { cwd: folder });
  const build = spawn(process.execPath, tsup, { cwd: folder, stdio: 'ignore' });
  const ended = new Promise<number | null>((resolve) => build.on('exit', resolve));
  const codes: (number | null)[] = [];
  while (build.exitCode === null) {
    codes.push((await svc('memory', '--help')).code, (await svc('config', '--help')).code);
  }
  expect(await ended).toBe(0);
  expect(codes.length).toBeGreaterThan(4);
  expect(new Set(codes)).toEqual(new Set([0]));
  expect(
    existsSync(join(folder, '.dist-next')) ? readdirSync(join(folder, '.dist-next')) : [],
  ).toEqual([]);
  // A file that is missing when it is needed is no stack trace either.
  renameSync(join(folder, 'dist', 'quick'), join(folder, 'quick'));
  for (const args of [['start'], ['config', 'token']]) {
    const broken = await svc(...args);
    expect([broken.code, broken.stderr.trim().split('\n').length]).toEqual([1, 1]);
  }
});
