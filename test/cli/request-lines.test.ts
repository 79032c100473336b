import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { stripVTControlCharacters } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { requestDetails } from '../../src/cli/requests/requests.ts';
import { rowPrinter } from '../../src/cli/requests/request-lines.ts';
import { short } from '../../src/core/meter/figures.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { BIN } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { requestRow } from '../support/request-row.ts';
import { screen } from '../support/screen.ts';

function lineOf(row: RequestRow, columns = 200): string {
  const { terminal, stderr } = screen(columns);
  rowPrinter({}, terminal)?.(row);
  return stripVTControlCharacters(stderr());
}

test('on a terminal each request is one line with what matters', () => {
  expect(lineOf(requestRow())).toBe(
    '16:45:02  claude-code  claude-opus-5-5  200  recalled +112  48k → 48k tokens, 812 out  5005 ms\n',
  );
  const stopped = { end: 'client-gone', kind: 'side', memoryState: 'skipped_side_call' };
  const line = lineOf(
    requestRow({ ...stopped, recalledTokens: 0, continuityState: 'shadow_only' }),
  );
  expect(line).toContain('claude-code/side');
  expect(line).toContain('200 client-gone');
  expect(line).toContain('shadow_only');
});

test('a request that was not shortened says so in its line, and its price in full', () => {
  const row = requestRow({
    continuityState: 'bypassed_not_worth_it',
    price: { paid: 12_000.4, direct: 10_000 },
  });
  expect(lineOf(row)).toContain('bypassed_not_worth_it');
  const details = requestDetails(row).join('\n');
  expect(details).toMatch(/Shortening .*bypassed_not_worth_it/);
  expect(details).toMatch(/Price .*12000 input tokens.*direct about 10000 \(120 %\)/);
  expect(requestDetails(requestRow()).join('\n')).toMatch(/Price +not known/);
});

test('thinking that the provider dropped or refused is on the line, and in the details in full', () => {
  const row = requestRow({ lostThoughts: { prefix: 2, model: 1 }, prefixChangedBy: 'client' });
  expect(lineOf(row)).toContain('812 out  3 thinking blocks dropped  5005 ms');
  expect(lineOf(requestRow({ lostThoughts: { refused: 1 } }))).toContain(
    'refused for its thinking',
  );
  const details = requestDetails(row).join('\n');
  expect(details).toMatch(/Thinking +The provider dropped 2 .* The client changed it first\./);
  expect(requestDetails(requestRow()).join('\n')).not.toContain('Thinking');
});

test('a line is never wider than the terminal', () => {
  for (let columns = 1; columns < 130; columns += 1) {
    const line = lineOf(requestRow({ model: 'm'.repeat(200) }), columns).trimEnd();
    expect(Array.from(line).length).toBeLessThanOrEqual(columns);
  }
});

test('a model name cannot steer the terminal', () => {
  expect(lineOf(requestRow({ model: 'a\u001b[2Jb\nc' }))).toContain('a\ufffd[2Jb c');
});

test('nothing is shown without a terminal or with --quiet, and a wrong form is wrong usage', () => {
  expect(rowPrinter({}, screen().terminal)).toBeUndefined();
  expect(rowPrinter({ quiet: true }, screen(80).terminal)).toBeUndefined();
  expect(rowPrinter({ log: 'off' }, screen(80).terminal)).toBeUndefined();
  expect(rowPrinter({ log: 'text' }, screen().terminal)).toBeDefined();
  expect(() => rowPrinter({ log: 'xml' }, screen().terminal)).toThrow('text, json, off');
});

test('numbers of tokens are short', () => {
  const cases: [number, string][] = [
    [0, '0'],
    [999, '999'],
    [1000, '1.0k'],
    [9949, '9.9k'],
    [9950, '10k'],
    [999_499, '999k'],
    [999_500, '1.0M'],
    [12_345_678, '12M'],
  ];
  for (const [tokens, text] of cases) expect(short(tokens)).toBe(text);
});

test('R29: --log json prints a line of JSON for each request, with no text and no key in it', async () => {
  const provider = createServer((_, answer) => {
    answer.setHeader('content-type', 'application/json');
    answer.end('{"content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":3}}');
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  onTestFinished(() => void provider.close());
  const { port } = provider.address() as AddressInfo;
  const [upstream] = validConfig()['upstreams'] as object[];
  const upstreams = [{ ...upstream, baseUrl: `http://127.0.0.1:${port}`, allowPrivate: true }];
  const home = homeWith({ ...validConfig(), proxy: { port: 0 }, upstreams });
  const child = spawn(process.execPath, [BIN, 'start', '--log', 'json', '--json'], {
    env: { HOME: home, PATH: process.env['PATH'] ?? '' },
  });
  onTestFinished(() => void child.kill());
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  await expect.poll(() => stdout).toContain('\n');
  const { url } = JSON.parse(stdout) as { url: string };
  const body = { model: 'claude-x', messages: [{ role: 'user', content: 'SECRETPROMPT' }] };
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${LOCAL_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const id = answer.headers.get('x-svc-request-id');
  await expect.poll(() => stdout).toMatch(/^.+\n.+\n$/);
  const row = JSON.parse(stdout.trim().split('\n')[1] ?? '') as RequestRow;
  expect(row).toMatchObject({ id, model: 'claude-x', status: 200, end: 'complete' });
  expect(stdout).not.toMatch(/SECRETPROMPT|CANARY|svc_local_/);
  expect(stdout).not.toContain(PROVIDER_KEY);
});
