import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { writeAgentBlock } from '../../src/core/recall/agent-block.ts';
import { folderSpace } from '../../src/core/request/space.ts';
import type { AgentFacts, RecallAnswer } from '../../src/ports/memory.ts';
import { questionOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** The store of release 0.1.2 after four sessions of Claude Code in a subfolder of a repository. */
const RECORDED = join(import.meta.dirname, '../recordings/store-0.1.2/memories.db.gz');
const FOLDER = '/home/user/shop/packages/api';
const SHOP = folderSpace('/home/user/shop');

const agent: AgentFacts = {
  conversation: 'now',
  branch: '',
  quietShare: 0,
  briefTokensMax: 125,
};

function openUpgraded() {
  const folder = tempFolder();
  writeFileSync(join(folder, 'memory.db'), gunzipSync(readFileSync(RECORDED)), { mode: 0o600 });
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  return store.memory;
}

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

function blockOf({ passages, exchanges = [], sessions = [] }: RecallAnswer): string {
  const limits = { tokensMax: 512, briefTokensMax: 118 };
  return writeAgentBlock({ standing: passages, exchanges, sessions }, limits).text;
}

const asked = { agent, space: SHOP, olderSpaces: [folderSpace(FOLDER)] };

test('the first request after an upgrade recalls what release 0.1.2 stored under the path', async () => {
  const memory = openUpgraded();
  const lines = blockOf(
    await memory.recall(
      questionOf('Which port does the gateway of the walrus shop listen on?', asked),
      patience(),
    ),
  );
  expect(lines).toContain('- The gateway of the walrus shop listens on port 6431');
  // Release 0.1.2 kept answers where requests that nobody vouches for are kept now.
  expect(lines).toContain('- assistant: Noted: the gateway listens on port 6431');
  expect(lines).not.toContain('unverified');
  const brief = blockOf(await memory.recall(questionOf('hello there', asked), patience()));
  expect(brief).toContain('Why does the parser drop the last token of a slow stream?');
});

test('R25: a store of release 0.1.2 tells another project nothing', async () => {
  const memory = openUpgraded();
  const other = { agent, space: folderSpace('/home/other/shop'), olderSpaces: [] };
  const answer = await memory.recall(
    questionOf('Which port does the gateway of the walrus shop listen on?', other),
    patience(),
  );
  expect(answer).toEqual({ passages: [] });
});

test('the memories of release 0.1.2 move to another space', async () => {
  const memory = openUpgraded();
  const move = { from: folderSpace(FOLDER), to: SHOP };
  expect((await memory.moveSome(move, patience())).memories).toBe(8);
  const answer = await memory.recall(
    questionOf('Why does the parser drop a token?', { agent, space: SHOP }),
    patience(),
  );
  expect(blockOf(answer)).toContain('flushTail');
});
