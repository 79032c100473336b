import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import { type TestContext, beforeEach, describe, expect, test, vi } from 'vitest';
import { field } from '../support/scripted-provider/loose-json.ts';
import { missingTmux } from '../support/tmux.ts';
import { runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import { expectSameAnswers, insertedText } from './support/laws.ts';
import {
  callWith,
  openClaudeScreen,
  openCodexScreen,
  rewindClaude,
  rewindCodex,
  sentWith,
  typedTexts,
} from './support/screen-session.ts';
import { callPairs, openStage, type Stage } from './support/stage.ts';
import { FACT, QUESTION, SECRET_OF_FACT } from './support/story.ts';

/** What a person types is in the prompt and stored as their words, and nothing else is. */

const clients = { claude: await installedClient('claude'), codex: await installedClient('codex') };
const noScreen = missingTmux();

beforeEach((context: TestContext) => {
  const missing = noScreen ?? clients.claude.missing ?? clients.codex.missing;
  if (missing !== undefined) context.skip(missing);
});

vi.setConfig({ testTimeout: 240_000 });

const HERON = 'The heron gateway of this project is on port 6431.';
const WALRUS = 'The walrus gateway of this project is on port 7532.';
const OTTER = 'The otter gateway of this project is on port 8643.';

describe('Claude Code', () => {
  test('after /rewind the new prompt has the earlier one and not the one taken back, and all three are stored', async () => {
    const stage = await openStage();
    const { claude } = clients;
    const session = await openClaudeScreen(claude, stage);
    await session.say(HERON);
    await callWith(stage, HERON);
    await session.say(WALRUS);
    await callWith(stage, WALRUS);
    await rewindClaude(session, WALRUS);
    await session.say(OTTER);
    const { clientBody, forwardedBody } = await callWith(stage, OTTER);
    expect(clientBody.includes(WALRUS)).toBe(false);
    for (const words of [HERON, OTTER]) expect(forwardedBody.includes(words)).toBe(true);
    expect(await typedTexts(stage, claude)).toEqual([HERON, OTTER, WALRUS].toSorted());
  });

  test('what is typed while it works is in the prompt and stored', async () => {
    const stage = await openStage();
    const { claude } = clients;
    const session = await openClaudeScreen(claude, stage);
    const work = 'Do the steps. [[plan=bash:sleep 6|bash:echo the end of the work]]';
    await session.say(work);
    await sentWith(stage, work);
    const rule = 'Never touch the file heron.env of this project.';
    await session.say(rule);
    await session.shows('the end of the work');
    const { forwardedBody } = await callWith(stage, rule);
    expect(forwardedBody.includes(rule)).toBe(true);
    await vi.waitFor(async () => expect(await typedTexts(stage, claude)).toContain(rule), {
      timeout: 30_000,
    });
    expect(await typedTexts(stage, claude)).toEqual([work, rule].toSorted());
  });

  test('of a prompt with a picture only the words are stored', async () => {
    const stage = await openStage();
    const picture = pictureIn(stage);
    const prompt = `The heron on @${picture} stands for the release train of this project.`;
    expect(await runClaude(clients.claude, stage, { prompt })).toMatchObject({ status: 0 });
    const { forwardedBody } = await callWith(stage, 'release train');
    expect(forwardedBody.includes('"type":"image"')).toBe(true);
    expect(await typedTexts(stage, clients.claude)).toEqual([prompt]);
  });

  // On the screen it takes the newest one of all.
  test.each(['sonnet', 'haiku', 'claude-sonnet-4-5'])(
    'with the model %s a fact is stored, and given in a later session',
    async (model) => {
      const stage = await openStage();
      const args = ['--model', model];
      expect(await runClaude(clients.claude, stage, { prompt: FACT, args })).toMatchObject({
        status: 0,
      });
      expect(await runClaude(clients.claude, stage, { prompt: QUESTION, args })).toMatchObject({
        status: 0,
      });
      const asked = await callWith(stage, QUESTION);
      expect(field(asked.record.json, 'model')).toContain(model);
      expect(insertedText(asked)).toContain(SECRET_OF_FACT);
      expectSameAnswers(callPairs(stage));
      expect(await typedTexts(stage, clients.claude)).toEqual([FACT, QUESTION].toSorted());
    },
  );
});

describe('Codex', () => {
  test('after a rewind the new prompt has the earlier one and not the one taken back, and all three are stored', async () => {
    const stage = await openStage();
    const { codex } = clients;
    const session = await openCodexScreen(codex, stage);
    await session.say(HERON);
    await callWith(stage, HERON);
    await session.idle();
    await session.say(WALRUS);
    await callWith(stage, WALRUS);
    await rewindCodex(session);
    await session.say(OTTER);
    const { clientBody, forwardedBody } = await callWith(stage, OTTER);
    expect(clientBody.includes(WALRUS)).toBe(false);
    for (const words of [HERON, OTTER]) expect(forwardedBody.includes(words)).toBe(true);
    expect(await typedTexts(stage, codex)).toEqual([HERON, OTTER, WALRUS].toSorted());
  });

  test('what is typed while it works is in the prompt and stored, and nothing else', async () => {
    const stage = await openStage();
    const { codex } = clients;
    const session = await openCodexScreen(codex, stage);
    const work = 'Do the steps. [[plan=bash:sleep 6|bash:echo the end of the work]]';
    await session.say(work);
    await sentWith(stage, work);
    const rule = 'Never touch the file heron.env of this project.';
    await session.say(rule);
    const { forwardedBody } = await callWith(stage, rule);
    expect(forwardedBody.includes(rule)).toBe(true);
    // Codex takes the step back and asks again with both texts: they are one exchange.
    await vi.waitFor(
      async () => expect((await typedTexts(stage, codex)).join('\n')).toContain(rule),
      { timeout: 60_000 },
    );
    const stored = (await typedTexts(stage, codex)).join('\n');
    expect(stored).toContain(work);
    expect(stored.replaceAll(work, '').replaceAll(rule, '').trim()).toBe('');
  });

  test('of a prompt with a picture only the words are stored, also after a resume', async () => {
    const stage = await openStage();
    const { codex } = clients;
    const picture = pictureIn(stage);
    const run = await runCodex(codex, stage, { prompt: HERON, pictures: [picture] });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    const { forwardedBody } = await callWith(stage, HERON);
    expect(forwardedBody.includes('"type":"input_image"')).toBe(true);
    const resumed = await runCodex(codex, stage, { prompt: OTTER, isResumed: true });
    expect(resumed, resumed.stderr).toMatchObject({ status: 0 });
    expect(await typedTexts(stage, codex)).toEqual([HERON, OTTER].toSorted());
  });
});

/** A picture of one colour, 64 pixels wide and high. */
function pictureIn(stage: Stage): string {
  const chunk = (name: string, data: Buffer): Buffer => {
    const named = Buffer.concat([Buffer.from(name, 'latin1'), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(named));
    return Buffer.concat([length, named, sum]);
  };
  const head = Buffer.from([0, 0, 0, 64, 0, 0, 0, 64, 8, 2, 0, 0, 0]);
  const lines = Buffer.concat(
    Array.from({ length: 64 }, () => Buffer.concat([Buffer.from([0]), Buffer.alloc(192, 120)])),
  );
  const path = join(stage.project, 'heron.png');
  const magic = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  const parts = [
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(lines)),
    chunk('IEND', Buffer.alloc(0)),
  ];
  writeFileSync(path, Buffer.concat([magic, ...parts]));
  return 'heron.png';
}
