import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runServiceHere, tempFolder } from '../../../test/support/cli.ts';
import { requestWith, said, toolRound } from '../../../test/support/dialect-wire.ts';
import { openModelService } from '../support/model-service.ts';
import { runServiceWith } from '../support/service-process.ts';

const DIALECT = 'anthropic_messages';

/** A session whose tools answered at length. */
function session(rounds: number): object {
  const filler = (at: number) =>
    Array.from({ length: 400 }, (_, line) => `line ${line} of output ${at}: ${at * 31 + line}`);
  const items = Array.from({ length: rounds }, (_, at) =>
    toolRound(DIALECT, `call_${at}`, filler(at).join('\n')),
  ).flat();
  const tools = [{ name: 'Bash', description: 'A shell.', input_schema: { type: 'object' } }];
  return requestWith(DIALECT, [said('user', 'Read all of these files.'), ...items], { tools });
}

const OWN = 'http://127.0.0.1:8766';

test.each([
  ['does not know its public address', {}, {}],
  ['was asked by another name than its loopback', { publicUrl: OWN }, { host: 'svc.example.com' }],
  ['was asked through a balancer', { publicUrl: OWN }, { 'x-forwarded-for': '198.51.100.7' }],
])('a service that %s leaves no tool output out', async (_why, limits, headers) => {
  const { send, makeKey, addProvider, provider } = await openModelService({ limits });
  await addProvider(DIALECT);
  const key = await makeKey();
  for (let rounds = 12; rounds < 22; rounds += 1) {
    // oxlint-disable-next-line no-await-in-loop
    const answer = await send(DIALECT, session(rounds), { key, headers });
    expect(answer.headers['x-svc-continuity-state']).not.toBe('elided_tool_output');
    expect(answer.headers['x-svc-elided-items']).toBe('0');
    // oxlint-disable-next-line no-await-in-loop -- The outputs are stored meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const body = provider.seen.at(-1)?.body.toString() ?? '';
  for (let at = 0; at < 21; at += 1) expect(body).toContain(`line 399 of output ${at}:`);
});

test('init, start and doctor say that the public address is missing, and how to set it', async () => {
  const home = tempFolder();
  const words = ['init', '--host', '127.0.0.1', '--port', '0', '--behind-proxy'];
  const made = await runServiceHere(words, { home });
  expect([made.code, made.stderr]).toEqual([0, expect.stringContaining('--public-url')]);
  const service = await runServiceWith(home, {});
  expect(await service.end('SIGTERM')).toBe(0);
  expect(service.stderr()).toContain('--public-url');
  const doctor = await runServiceHere(['doctor'], { home });
  const printed = `${doctor.stdout}${doctor.stderr}`;
  expect([printed.includes('Public address'), printed.includes('publicUrl')]).toEqual([true, true]);

  const other = tempFolder();
  const told = await runServiceHere([...words, '--public-url', 'https://svc.example.com/'], {
    home: other,
  });
  expect([told.code, told.stderr.includes('public address')]).toEqual([0, false]);
  const file = join(other, '.local/share/svc/service/service.json');
  const settings = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  expect(settings['publicUrl']).toBe('https://svc.example.com');
  const wrong = await runServiceHere([...words, '--public-url', 'svc.example.com/a'], {
    home: tempFolder(),
  });
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--public-url')]);
});
