import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { screen as prompts } from '@inquirer/testing/vitest';
import { expect, vi } from 'vitest';
import { createUpstream } from '../../src/adapters/network/undici-upstream.ts';
import { openStoreForCli } from '../../src/cli/compose-store.ts';
import type { OpenUpstream } from '../../src/cli/doctor/key-check.ts';
import { wizard } from '../../src/cli/setup/wizard.ts';
import { parseEntries } from '../../src/core/settings/catalog-entries.ts';
import { providersOf } from '../../src/core/settings/catalog.ts';
import { BIN } from './cli.ts';
import { screen } from './screen.ts';

/** The wizard in this process, with a person at its questions. */

/** This machine is reached by its address; no name leads anywhere. */
const offline: OpenUpstream = (settings, limits) =>
  createUpstream(settings, limits, {
    resolve: (_, done) => done(Object.assign(new Error('offline'), { code: 'ENOTFOUND' }), []),
  });

export interface Session {
  readonly ended: Promise<number>;
  readonly notes: () => string;
  readonly config: () => Record<string, never> & { proxy: object; upstreams: object[] };
  readonly file: string;
}

const snapshot = join(import.meta.dirname, '../../src/adapters/catalog/catalog-snapshot.json');
const providers = providersOf(
  parseEntries(JSON.parse(readFileSync(snapshot, 'utf8')) as unknown) ?? {},
);

export function open(home: string, environment: Record<string, string> = {}): Session {
  // In a dumb terminal Node's readline knows no backspace.
  vi.stubEnv('TERM', 'xterm');
  process.argv[1] = BIN;
  // What an earlier session left on the screen is no question of this one.
  prompts.clear();
  const { terminal, stdout, stderr } = screen();
  const own = { HOME: home, ...environment };
  const context = { environment: own, terminal, openStore: openStoreForCli };
  const catalog = { providers: () => providers };
  const ended = wizard(context, {
    openUpstream: offline,
    catalog,
    streams: {},
  });
  const file = join(home, '.config/svc/config.json');
  return {
    ended,
    notes: () => stdout() + stderr(),
    config: () => JSON.parse(readFileSync(file, 'utf8')) as ReturnType<Session['config']>,
    file,
  };
}

// A machine that runs many tests at once may take long; only a hang reaches it.
const PATIENCE = { timeout: 30_000 };

/** Waits until this question is asked; the screen is redrawn on its own time. */
export async function asked(question: string): Promise<void> {
  await vi.waitFor(() => expect(prompts.getScreen()).toContain(question), PATIENCE);
}

export async function answer(question: string, text = ''): Promise<void> {
  await asked(question);
  if (text !== '') prompts.type(text);
  prompts.keypress('enter');
}

/** Chooses the entry that this pattern fits. */
export async function choose(question: string, entry: string): Promise<void> {
  await asked(question);
  const chosen = new RegExp(`^❯ .*${entry}`, 'm');
  for (let presses = 0; presses < 20 && !chosen.test(prompts.getScreen()); presses += 1) {
    prompts.keypress('down');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(prompts.getScreen()).toMatch(chosen);
  prompts.keypress('enter');
}

/** Types into the search, and takes the entry that this pattern fits. */
export async function find(term: string, entry: string): Promise<void> {
  await asked('Which provider?');
  prompts.type(term);
  await vi.waitFor(() => expect(prompts.getScreen()).toMatch(new RegExp(entry, 'm')), PATIENCE);
  await choose('Which provider?', entry);
}
