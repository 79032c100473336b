import { expect, onTestFinished, test } from 'vitest';
import {
  openHostedMemory,
  openHostedMemoryWithOutbox,
} from '../../src/adapters/memory-client/open-hosted-memory.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { writeOmissionNote } from '../../src/core/shortening/omissions.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { patience } from '../support/hosted.ts';
import { startMemoryService, type TestService } from '../../service/test/support/memory-service.ts';
import { bodyOf, plainItem, type PlainItem } from '../support/plain-chat.ts';
import { openProxyStage } from '../support/proxy-stage.ts';
import { recordOf } from '../support/records.ts';
import { openState } from '../../src/adapters/state/state.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput } from '../support/tool-session.ts';

/** Old exchanges and a memory service: the real one, over a real socket, from the first capture on. */

const OLD = 6;
const SETTINGS = { recallMs: 10_000, inputBudget: 1_000 };
const QUESTION = 'Remind me: which port does the staging server falcon1 listen on?';
const THANKS = 'Thank you for all of these ports, I wrote them down.';

async function openScene(service: TestService) {
  const folder = tempFolder();
  const serviceKey = await service.makeKey();
  const settings = {
    kind: 'hosted',
    baseUrl: service.url,
    serviceKey,
    allowPrivate: true,
  } as const;
  const options = { settings, recallMs: SETTINGS.recallMs, report: () => undefined };
  const state = openState({ folder, report: options.report });
  const hosted = openHostedMemoryWithOutbox({ ...options, state });
  const stage = await openProxyStage({
    folder,
    settings: SETTINGS,
    wrap: () => hosted.memory,
    outbox: () => hosted.outbox,
  });
  onTestFinished(async () => {
    await stage.stop();
    await hosted.close();
    await state.close();
  });
  /** As a command opens it: with nothing of what the proxy knows to be held. */
  const openBeside = () => {
    const beside = openHostedMemory(options);
    onTestFinished(() => beside.close());
    return beside.memory;
  };
  return { hosted, stage, openBeside };
}

function exchanges(dialect: Dialect): PlainItem[] {
  return Array.from({ length: OLD }, (_, at) => [
    plainItem(dialect, 'user', `Which port does the staging server falcon${at} listen on?`),
    plainItem(
      dialect,
      'assistant',
      `The staging server falcon${at} listens on port ${6400 + at}.\n${longOutput(`f${at}`, 300)}`,
    ),
  ]).flat();
}

function wholeBody(dialect: Dialect): Record<string, unknown> {
  return bodyOf(dialect, [
    ...exchanges(dialect),
    plainItem(dialect, 'user', THANKS),
    plainItem(dialect, 'assistant', 'Glad that the list of ports was of use.'),
    plainItem(dialect, 'user', QUESTION),
  ]);
}

/** The session up to its last question, and a service that holds all of it. */
async function tell({ hosted, stage }: Awaited<ReturnType<typeof openScene>>, dialect: Dialect) {
  const items = [...exchanges(dialect), plainItem(dialect, 'user', THANKS)];
  await stage.send(dialect, bodyOf(dialect, items));
  const held = async () => (await hosted.memory.list({ limit: 100 }, patience())).length;
  await expect.poll(held, { timeout: 20_000 }).toBeGreaterThanOrEqual(2 * OLD + 1);
  stage.setClockAhead(301_000);
}

test.each(DIALECTS)(
  '[3.3-committed] in %s exchanges that a memory service proves are left out, and come back when it forgets one',
  async (dialect) => {
    const service = await startMemoryService();
    const scene = await openScene(service);
    const { stage, openBeside } = scene;
    await tell(scene, dialect);
    const answer = await stage.send(dialect, wholeBody(dialect));
    expect(answer.headers).toMatchObject({
      'x-svc-continuity-state': 'committed',
      'x-svc-memory-state': 'recalled',
      'x-svc-elided-items': String(2 * OLD),
    });
    const note = JSON.stringify(writeOmissionNote(OLD)).slice(1, -1);
    expect(stage.forwarded().split(note)).toHaveLength(2);
    expect(stage.forwarded()).not.toContain('falcon4 listens on');
    expect(stage.forwarded()).toContain('falcon1 listens on port 6401');

    const said = recordOf('Which port does the staging server falcon4 listen on?');
    const refs = [referenceOf(said.digest)];
    expect(await openBeside().forget({ refs }, patience())).toBe(1);
    const after = await stage.send(dialect, wholeBody(dialect));
    expect(after.headers['x-svc-continuity-state']).not.toBe('committed');
    for (let at = 0; at < OLD; at += 1) expect(stage.forwarded()).toContain(`falcon${at} listens`);
  },
  60_000,
);

test('what a command sends beside the proxy is held once, and the proofs go on', async () => {
  const dialect = 'anthropic_messages';
  const service = await startMemoryService();
  const scene = await openScene(service);
  const { hosted, stage, openBeside } = scene;
  await tell(scene, dialect);
  const before = await hosted.memory.list({ limit: 100 }, patience());
  const beside = openBeside();
  const states = await beside.capture(before, patience());
  expect(new Set(states)).toEqual(new Set(['duplicate']));
  const fresh = recordOf('What only the command said.', { space: 'default' });
  expect(await beside.capture([fresh], patience())).toEqual(['stored']);
  expect(await hosted.memory.capture([fresh], patience())).toEqual(['duplicate']);
  const after = await hosted.memory.list({ limit: 100 }, patience());
  expect(after).toHaveLength(before.length + 1);
  const answer = await stage.send(dialect, wholeBody(dialect));
  expect(answer.headers['x-svc-continuity-state']).toBe('committed');
}, 60_000);
