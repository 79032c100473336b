import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { onTestFinished, vi } from 'vitest';

/** A real terminal to drive a program in, and to read off what a person would see. */
export interface TmuxSession {
  /** Waits until the screen shows this text. */
  shows(text: string): Promise<void>;
  /**
   * Waits until the open question has these words. One that was answered may have them too, and a key
   * that is pressed before its question is there is lost.
   */
  asks(question: string): Promise<void>;
  /** Waits until the screen is another one. */
  changes(before: string): Promise<void>;
  /** Types text, and then Enter unless `isEntered` is false. */
  type(text: string, isEntered?: boolean): void;
  /** A key by tmux's name: 'C-c', 'Down', 'Enter'. */
  press(key: string): void;
  screen(): string;
  /** The lines as the program printed them, also where the screen broke them. */
  wholeLines(): readonly string[];
  /** Of the program itself. */
  processId(): number;
  /** Ends it before the test does. */
  close(): void;
}

export interface TmuxStart {
  readonly command: string;
  readonly home: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Characters in a line; 100 where nothing is said. */
  readonly columns?: number;
}

/** Why there is no terminal to be had; undefined when there is. */
export function missingTmux(): string | undefined {
  const { error, status } = spawnSync('tmux', ['-V']);
  return error === undefined && status === 0 ? undefined : 'tmux is not installed here';
}

const SHOWN_MS = 60_000;

export function openTmux({
  command,
  home,
  environment = {},
  columns = 100,
}: TmuxStart): TmuxSession {
  // A server of its own: a person's sessions on this machine are not touched.
  const socket = `svc-test-${randomUUID()}`;
  const tmux = (...args: string[]): string =>
    spawnSync('tmux', ['-L', socket, '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] ?? '', HOME: home, LANG: 'C.UTF-8', ...environment },
    }).stdout;
  const keep = ['start-server', ';', 'set', '-g', 'history-limit', '20000', ';'];
  const size = ['-x', `${columns}`, '-y', '40'];
  tmux('-u', ...keep, 'new-session', '-d', ...size, '-s', 'test', command);
  onTestFinished(() => void tmux('kill-server'));
  const screen = (): string => tmux('capture-pane', '-p', '-S', '-200', '-t', 'test');
  const press = (key: string): void => void tmux('send-keys', '-t', 'test', key);
  const until = (isThere: (shown: string) => boolean, text: string): Promise<void> =>
    vi.waitFor(
      () => {
        const shown = screen();
        if (!isThere(shown)) throw new Error(`The screen does not show ${text}:\n${shown}`);
      },
      { timeout: SHOWN_MS, interval: 100 },
    );
  return {
    screen,
    wholeLines: () =>
      tmux('capture-pane', '-p', '-J', '-S', '-', '-t', 'test')
        .split('\n')
        .map((line) => line.trimEnd()),
    processId: () => Number(tmux('display-message', '-p', '-t', 'test', '#{pane_pid}')),
    close: () => void tmux('kill-server'),
    press,
    type: (text, isEntered = true) => {
      tmux('send-keys', '-t', 'test', '-l', text);
      if (isEntered) press('Enter');
    },
    shows: (text) => until((shown) => shown.includes(text), text),
    changes: (before) => until((shown) => shown !== before, 'anything else'),
    asks: (question) =>
      until(
        (shown) =>
          shown.split('\n').some((line) => line.startsWith('? ') && line.includes(question)),
        `? ${question}`,
      ),
  };
}
