import { expect, test } from 'vitest';
import { GitProjects } from '../../src/adapters/projects/git-projects.ts';
import { changeRegistry } from '../../src/adapters/projects/registry.ts';
import { said } from '../support/dialect-wire.ts';
import { NAMED, QUESTION, SECOND, startTalk } from '../support/strict-talk.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A person can switch memory off for a project: the next request places nothing new. */

const blocksIn = (body: string): string[] => body.match(/<svc-memory .*?<\/svc-memory>/g) ?? [];
const asked = said('user', QUESTION);

async function stage() {
  const folder = tempFolder();
  const talk = await startTalk({ folder, projects: new GitProjects(folder) });
  const switchOff = (...off: readonly string[]) =>
    changeRegistry(folder, (now) => ({ ...now, off }));
  return { ...talk, switchOff };
}

test('the next request after the switch recalls nothing and stores nothing, and one after the way back does', async () => {
  const { ask, story, switchOff } = await stage();
  const session = (name: string) => ({ headers: { 'session-id': name } });
  expect(blocksIn((await ask([asked], session('one'))).sent)).toHaveLength(1);
  await switchOff('default');
  const secret = said('user', `${QUESTION} The otters of the quay are called Ada and Bob.`);
  const off = await ask([secret], session('two'));
  expect([blocksIn(off.sent), off.headers['x-svc-memory-state']]).toEqual([[], 'off']);
  expect(off.headers['x-svc-memory-mode']).toBe('off');
  await switchOff();
  const on = await ask([asked], session('three'));
  expect(blocksIn(on.sent)).toHaveLength(1);
  const filter = { space: 'default', words: 'otters', limit: 10 };
  expect(await story.memory.list(filter, AbortSignal.timeout(30_000))).toEqual([]);
});

test('another project keeps its memory', async () => {
  const { ask, switchOff } = await stage();
  await switchOff('team/other');
  expect(blocksIn((await ask([asked])).sent)).toHaveLength(1);
});

test('a bound conversation keeps its placed blocks, and gets no new one', async () => {
  const { ask, strict, switchOff } = await stage();
  const one = await ask([asked]);
  const blocks = blocksIn(one.sent);
  expect(blocks).toHaveLength(1);
  await switchOff('default');
  const two = await ask([asked, one.item, said('user', SECOND)], { headers: NAMED });
  expect([two.status, blocksIn(two.sent)]).toEqual([200, blocks]);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});
