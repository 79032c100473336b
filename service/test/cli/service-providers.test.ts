import { expect, test } from 'vitest';
import { runServiceHere, tempFolder } from '../../../test/support/cli.ts';
import { initService } from '../support/service-process.ts';

test('a provider is added with a key from stdin, listed without it, changed and removed', async () => {
  const home = tempFolder();
  await initService(home);
  const secret = 'sk-CANARY-77ab';
  const said: string[] = [];
  const run = async (args: readonly string[], stdin?: string) => {
    const ran = await runServiceHere(['providers', ...args], {
      home,
      ...(stdin === undefined ? {} : { input: stdin }),
    });
    said.push(ran.stdout, ran.stderr);
    return ran;
  };
  const style = ['--api-style', 'openai_responses'];
  const custom = ['--base-url', 'https://models.example.com', ...style, '--model', 'gpt-5'];
  const header = ['--header', 'x-team: api', 'x-key: $API_KEY', '--key-stdin'];
  expect((await run(['add', 'gateway', ...custom, ...header], `${secret}\n`)).code).toBe(0);
  const preset = ['add', 'claude', '--preset', 'anthropic', '--api-style', 'anthropic_messages'];
  expect((await run([...preset, '--model', 'claude-x', '--key-stdin'], secret)).code).toBe(0);
  const list = await run(['list']);
  expect(list.stdout).toMatch(
    /gateway +enabled +openai_responses +https:\/\/models.example.com .*fp_/,
  );
  const same = await run(['fingerprint', 'gateway'], `${secret}\n`);
  expect([same.code, list.stdout]).toEqual([0, expect.stringContaining(same.stdout.trim())]);
  const other = await run(['fingerprint', 'gateway', '--json'], 'sk-other');
  expect([other.code, JSON.parse(other.stdout).matches]).toEqual([1, false]);
  const shown = await run(['show', 'gateway']);
  expect(shown.stdout).toContain('custom_headers: x-key: (secret)');
  const clash = await run(['add', 'second', ...custom, '--key-stdin'], secret);
  expect([clash.code, clash.stderr]).toEqual([1, expect.stringContaining('second and gateway')]);
  expect((await run(['update', 'gateway', '--disable'])).code).toBe(0);
  expect(JSON.parse((await run(['show', 'gateway', '--json'])).stdout)).toMatchObject({
    enabled: false,
    version: 2,
  });
  expect((await run(['remove', 'gateway'])).code).toBe(0);
  expect((await run(['show', 'gateway'])).code).toBe(1);
  expect((await run(['update', 'claude'])).code).toBe(2);
  expect((await run(['add', 'x', ...style])).code).toBe(2);
  for (const [words, input, told] of [
    [['add', 'x', ...custom], undefined, '--auth none'],
    [['add', 'x', ...preset.slice(2), '--model', 'c-*', '--key-stdin'], secret, '--default-model'],
    [['add', 'x', ...custom, '--key-stdin'], '', '< key.txt'],
    [['add', 'x', '--preset', 'antropic', ...custom.slice(2), '--key-stdin'], secret, 'presets'],
  ] as const) {
    // oxlint-disable-next-line no-await-in-loop
    const refused = await run(words, input);
    expect([refused.code === 0, refused.stderr]).toEqual([false, expect.stringContaining(told)]);
  }
  expect(said.join('\n')).not.toContain(secret);
}, 120_000);
