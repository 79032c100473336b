import { mkdirSync, realpathSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere, tempFolder } from '../support/cli.ts';
import { git, newRepository, requestFrom } from '../support/claude-request.ts';
import { PROVIDER_KEY, validConfig } from '../support/config.ts';
import { answerTo } from '../support/dialect-wire.ts';
import { homeWith } from '../support/home.ts';
import { startMemoryService } from '../../service/test/support/memory-service.ts';
import { startProxyProcess } from '../support/proxy-process.ts';
import { type RecordingProvider, startRecordingProvider } from '../support/story.ts';

/** Two machines over one memory service: the built program, each with a home and a clone of its own. */

const FACT =
  'The gateway of the walrus shop listens on port 6431 because 6430 belongs to the mailer.';
const QUESTION = 'Which port does the gateway of the walrus shop listen on?';
const ORIGIN = 'https://git.example.com/walrus/shop.git';

interface Service {
  readonly url: string;
  readonly key: string;
  readonly provider: RecordingProvider;
}

/** Sends a prompt from a folder and resolves with the body that the provider got. */
type Send = (folder: string, prompt: string) => Promise<string>;

let sessions = 0;

async function startMachine({ url, key, provider }: Service): Promise<{
  readonly send: Send;
  readonly spaces: () => Promise<readonly string[]>;
}> {
  const upstream = { name: 'anthropic', apiStyle: 'anthropic_messages', baseUrl: provider.url };
  const home = homeWith({
    ...validConfig(),
    // A project of one fact is young: its share says nothing yet.
    proxy: { port: 8765, recallQuietPercent: 0, recallMs: 10_000 },
    upstreams: [{ ...upstream, providerKey: PROVIDER_KEY, allowPrivate: true }],
    memory: { kind: 'hosted', baseUrl: url, serviceKey: key },
  });
  const data = join(home, 'data');
  const proxy = await startProxyProcess(home, { SVC_DATA_HOME: data });
  return {
    send: async (folder, prompt) => {
      sessions += 1;
      const request = requestFrom(folder, sessions, prompt);
      const answer = await fetch(`${proxy.url}/v1/messages?beta=true`, {
        method: 'POST',
        ...request,
      });
      await answer.text();
      expect(answer.status).toBe(200);
      return provider.seen.at(-1)?.body.toString() ?? '';
    },
    spaces: async () => {
      // The service lives in this process: a synchronous call would stop it.
      const env = { SVC_DATA_HOME: data };
      const { stdout } = await runHere(['memory', 'list', '--json'], { home, env });
      return (JSON.parse(stdout) as { space: string }[]).map(({ space }) => space);
    },
  };
}

function withOrigin(folder: string, origin: string): string {
  git(folder, 'remote', 'add', 'origin', origin);
  return folder;
}

test('four folders of one repository and a clone on another machine share one memory of a service', async () => {
  const provider = await startRecordingProvider();
  provider.reply = (request) => answerTo(request, { text: 'Noted, I will use that port.' });
  const service = await startMemoryService();
  const place = { url: service.url, key: await service.makeKey(), provider };
  const [one, other] = [await startMachine(place), await startMachine(place)];

  // One machine: root, subfolder and worktree; the root has another name later.
  const base = realpathSync(tempFolder());
  const shop = withOrigin(newRepository(join(base, 'one', 'shop')), ORIGIN);
  git(shop, 'worktree', 'add', '-q', join(base, 'tree'));
  // The other machine: a clone under another name, and a repository of the same name from elsewhere.
  git(base, 'clone', '-q', shop, join(base, 'other-clone'));
  const clone = join(base, 'other-clone');
  git(clone, 'remote', 'set-url', 'origin', 'git@git.example.com:walrus/shop.git');
  const namesake = withOrigin(
    newRepository(join(base, 'two', 'shop')),
    'https://git.example.com/seal/shop.git',
  );

  await one.send(join(shop, 'packages', 'api'), FACT);
  await expect
    .poll(async () => (await one.spaces()).length, { timeout: 40_000 })
    .toBeGreaterThan(0);
  const recalls = async (send: Send, folder: string, at: number): Promise<void> => {
    // Another prompt each time: what was decided for one is replayed.
    const body = await send(folder, `${QUESTION} (${at})`);
    expect([folder, body.includes('<svc-memory'), body.includes('6431')]).toEqual([
      folder,
      true,
      true,
    ]);
  };
  await recalls(one.send, shop, 1);
  await recalls(one.send, join(base, 'tree'), 2);
  await recalls(other.send, clone, 3);
  mkdirSync(join(base, 'moved'));
  const renamed = join(base, 'moved', 'market');
  renameSync(shop, renamed);
  await recalls(one.send, renamed, 4);

  // A repository of the same name has a memory of its own, on either machine.
  expect(await other.send(namesake, `${QUESTION} (5)`)).not.toContain('6431');
  await other.send(namesake, FACT.replace('6431', '7002'));
  await expect.poll(async () => new Set(await other.spaces()).size, { timeout: 40_000 }).toBe(2);
  const again = await one.send(renamed, `${QUESTION} (6)`);
  expect(again).toContain('6431');
  expect(again).not.toContain('7002');
}, 180_000);
