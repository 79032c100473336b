import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import * as fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { shortLines } from '../../src/cli/memory/mcp.ts';
import { BIN } from '../support/cli.ts';
import { tempFolder } from '../support/temp-folder.ts';

async function read(input: Readable, bytesMax: number) {
  const dropped: unknown[] = [];
  const lines: string[] = [];
  for await (const line of shortLines(input, bytesMax, (id) => dropped.push(id))) {
    lines.push(String(line));
  }
  return { lines, dropped };
}

test('lines of any length arrive or are told, however they are cut', async () => {
  const drawn = fc.array(fc.nat({ max: 400 }), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(drawn, fc.integer({ min: 1, max: 300 }), async (lengths, cut) => {
      const messages = lengths.map(
        (length, id) => `${JSON.stringify({ text: 'x'.repeat(length), id })}\n`,
      );
      const whole = Buffer.from(messages.join(''));
      const chunks: Buffer[] = [];
      for (let at = 0; at < whole.length; at += cut) chunks.push(whole.subarray(at, at + cut));
      const { lines, dropped } = await read(Readable.from(chunks), 200);
      expect(lines).toEqual(messages.filter((message) => message.length <= 200));
      const long = messages.flatMap((message, id) => (message.length > 200 ? [id] : []));
      expect(dropped).toEqual(long);
    }),
    { numRuns: 200 },
  );
});

test('the id of a long message is found at either end, and not inside', async () => {
  const filler = 'x'.repeat(3_000);
  const messages = [
    `{"jsonrpc":"2.0","id":"a-1","params":{"text":"${filler}"}}\n`,
    `{"params":{"text":"${filler}"},"jsonrpc":"2.0","id":7}\n`,
    `{"params":{"id":9,"text":"${filler}"},"jsonrpc":"2.0"}\n`,
  ];
  const { dropped } = await read(Readable.from([Buffer.from(messages.join(''))]), 1_000);
  expect(dropped).toEqual(['a-1', 7, undefined]);
});

test('svc mcp answers a message that is too long with an error, and goes on', async () => {
  const child = spawn(process.execPath, [BIN, 'mcp'], {
    env: { PATH: process.env['PATH'] ?? '', HOME: tempFolder() },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const answers: unknown[] = [];
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => answers.push(JSON.parse(line)));
  const long = {
    jsonrpc: '2.0',
    method: 'tools/call',
    params: { text: 'x'.repeat(3 << 20) },
    id: 1,
  };
  const clientInfo = { name: 'test', version: '1' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  child.stdin.write(`${JSON.stringify(long)}\n`);
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'initialize', params })}\n`);
  while (answers.length < 2) await once(lines, 'line');
  expect(answers).toMatchObject([
    { id: 1, error: { code: -32_600, message: 'The message is longer than 1 MiB.' } },
    { id: 2, result: { serverInfo: { name: 'svc' } } },
  ]);
}, 30_000);
