import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import { isAlive } from '../../../src/adapters/processes/run-files.ts';
import { openTmux, type TmuxSession } from '../../support/tmux.ts';
import type { SpokenRecord } from '../../../src/ports/memory.ts';
import { clientEnvironment } from './claude-code.ts';
import { codexConfig } from './codex.ts';
import { type InstalledClient, binaryOf } from './installed-client.ts';
import { type CallPair, callPairs, type ClientPlace, type Stage } from './stage.ts';
import { svcCommand } from './svc-command.ts';

/** A client on a screen, typed at as a person does. */
export interface ScreenSession extends TmuxSession {
  /** Types a text and sends it once the client shows it; an Enter that comes with a text is part of it. */
  say(text: string): Promise<void>;
}

export interface CodexScreen extends ScreenSession {
  /** Waits until Codex has ended its work on everything that was said. A key that comes before interrupts it. */
  idle(): Promise<void>;
}

/** Another server than the stage's, and another model than the client's own. */
export interface ScreenChoice {
  readonly url?: string;
  readonly model?: string;
}

const COLUMNS = 140;

export async function openClaudeScreen(
  client: InstalledClient,
  stage: ClientPlace,
  { url = stage.url, model }: ScreenChoice = {},
): Promise<ScreenSession> {
  const trust = { [stage.project]: { hasTrustDialogAccepted: true } };
  const state = { hasCompletedOnboarding: true, projects: trust };
  writeFileSync(join(stage.home, '.claude.json'), JSON.stringify(state));
  const choice = model === undefined ? '' : ` --model ${model}`;
  const command = `'${binaryOf(client, 'claude')}' --allowedTools Bash${choice}`;
  const session = openScreen(stage, command, {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_AUTH_TOKEN: stage.svc.token,
    CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  });
  await session.shows('❯');
  return session;
}

export async function openCodexScreen(
  client: InstalledClient,
  stage: ClientPlace,
  { url = stage.url, model }: ScreenChoice = {},
): Promise<CodexScreen> {
  const folder = join(stage.home, '.codex');
  mkdirSync(folder, { recursive: true });
  const choice = model === undefined ? {} : { model };
  const trust = `[projects."${stage.project}"]\ntrust_level = "trusted"\n`;
  writeFileSync(join(folder, 'config.toml'), `${codexConfig(url, choice)}${trust}`);
  // Without --no-daemon a server stays behind that keeps the environment of the first session.
  const command = `'${binaryOf(client, 'codex')}' --no-daemon`;
  const session = openScreen(stage, command, {
    CODEX_HOME: folder,
    SVC_LOCAL_PROXY_TOKEN: stage.svc.token,
  });
  await session.shows('›');
  // Of earlier sessions of this home.
  let ends = endsIn(folder);
  const say = (text: string): Promise<void> => {
    ends += 1;
    return session.say(text);
  };
  const idle = (): Promise<void> =>
    vi.waitFor(() => expect(endsIn(folder)).toBe(ends), { timeout: 60_000 });
  return { ...session, say, idle };
}

/** The screen of Codex 0.169.0 does not say of each prompt that its work has ended. Its session files do. */
function endsIn(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const texts = files
    .filter((file) => /^sessions.*\.jsonl$/.test(file))
    .map((file) => readFileSync(join(folder, file), 'utf8'));
  // Codex may copy them into another file when a prompt is taken back.
  const ends = texts.join('').matchAll(/"type":"task_complete",.*?"turn_id":"([^"]+)"/g);
  return new Set(Array.from(ends, ([, id]) => id)).size;
}

/** Takes `prompt`, the newest one, back with the conversation from it on. */
export async function rewindClaude(session: ScreenSession, prompt: string): Promise<void> {
  await session.say('/rewind');
  await session.shows('Restore the code and/or conversation');
  session.press('Up');
  await session.shows(`❯ ${prompt}`);
  session.press('Enter');
  await session.shows('Restore conversation');
  session.press('Enter');
  // The prompt that was taken back stands in the input, to be typed anew.
  await vi.waitFor(
    () => {
      expect(session.screen()).not.toContain('Restore conversation');
      expect(session.screen().split(prompt).length).toBe(2);
    },
    { timeout: 30_000 },
  );
  session.press('C-u');
}

/** Takes the newest prompt back, with the conversation from it on. */
export async function rewindCodex(session: CodexScreen): Promise<void> {
  await session.idle();
  session.press('Escape');
  await session.shows('esc again to edit');
  session.press('Escape');
  await session.shows('Browsing transcript');
  session.press('Enter');
  await session.shows('Conversation reverted');
  session.press('C-u');
}

function openScreen(
  stage: ClientPlace,
  command: string,
  more: Readonly<Record<string, string>>,
): ScreenSession {
  const environment = { ...clientEnvironment(stage), TERM: 'xterm-256color', ...more };
  const words = Object.entries(environment).map(([name, value]) => `'${name}=${value}'`);
  const session = openTmux({
    command: `cd '${stage.project}' && exec env -i ${words.join(' ')} ${command}`,
    home: stage.home,
    columns: COLUMNS,
  });
  const pid = session.processId();
  onTestFinished(async () => {
    session.close();
    // It goes on writing to its home for a moment.
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 30_000 });
  });
  const say = async (text: string): Promise<void> => {
    session.type(text, false);
    await session.shows(text.slice(0, COLUMNS / 2));
    session.press('Enter');
  };
  return { ...session, say };
}

/** Once a call with these words is on its way to the provider: the client has taken them. */
export async function sentWith({ provider }: Stage, words: string): Promise<void> {
  await vi.waitFor(
    () => {
      if (!provider.records.some(({ body }) => body.includes(words))) {
        throw new Error(`no call with "${words}" was sent`);
      }
    },
    { timeout: 60_000, interval: 100 },
  );
}

/** The call whose newest message has these words, once its answer is over. */
export async function callWith(stage: Stage, words: string): Promise<CallPair> {
  return vi.waitFor(
    () => {
      const call = callPairs(stage).findLast(
        ({ record, clientBody }) => record.isOver && clientBody.includes(words),
      );
      if (call === undefined) throw new Error(`no call with "${words}" is over`);
      return call;
    },
    { timeout: 60_000, interval: 100 },
  );
}

/** What the memory holds as a person's own words, in the order of the alphabet. */
export async function typedTexts(
  stage: Stage,
  client: InstalledClient,
): Promise<readonly string[]> {
  const args = ['memory', 'list', '--json', '--limit', '1000'];
  const { stdout } = await svcCommand(stage, client, args).ended;
  const records = JSON.parse(stdout) as readonly SpokenRecord[];
  return records.flatMap(({ role, text }) => (role === 'user' ? [text] : [])).toSorted();
}
