import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cachedDataVersionTag } from 'node:v8';
import { expect, test } from 'vitest';

const POOL = join(import.meta.dirname, '../../src/adapters/network/undici-pool.cjs');

test('V8 has its flags back once undici is loaded: under others it would refuse all cached code', () => {
  const before = cachedDataVersionTag();
  const { parser } = createRequire(import.meta.url)(POOL) as { readonly parser: unknown };
  expect(Object.prototype.toString.call(parser)).toBe('[object WebAssembly.Module]');
  expect(cachedDataVersionTag()).toBe(before);
});

/** V8's lines on the code of the parser, for a process that reads 20 answers. */
async function compiled(undici: string): Promise<string> {
  const program = `
    const { createServer } = require('node:http');
    const { Pool } = require(${JSON.stringify(undici)});
    const provider = createServer((request, answer) => answer.end('ok')).listen(0, '127.0.0.1', async () => {
      const pool = new Pool('http://127.0.0.1:' + provider.address().port);
      const ask = () => new Promise((resolve, reject) => {
        const sink = { onRequestStart() {}, onResponseStart() {}, onResponseData() {} };
        sink.onResponseEnd = resolve;
        sink.onResponseError = (_, error) => reject(error);
        pool.dispatch({ path: '/', method: 'GET' }, sink);
      });
      for (let at = 0; at < 20; at += 1) await ask();
      setTimeout(() => process.exit(), 1000);
    });`;
  const flags = ['--trace-wasm-compilation-times', '-e', program];
  const { stdout } = await promisify(execFile)(process.execPath, flags);
  return stdout;
}

test('the first answers of a process do not have the parser optimized', async () => {
  const [ours, own] = [await compiled(POOL), await compiled(createRequire(POOL).resolve('undici'))];
  expect(ours).toContain('using Liftoff');
  expect(ours).not.toContain('using TurboFan');
  expect(own).toContain('using TurboFan');
}, 60_000);
