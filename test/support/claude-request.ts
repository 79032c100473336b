import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { LOCAL_TOKEN } from './config.ts';

/** What Claude Code sends from a folder of a repository, made from a recorded request. */

const RECORDED = '../recordings/claude-code-2.1.329/multi-turn-resume/0001.json';

interface RecordedRequest {
  readonly headers: readonly (readonly [string, string])[];
  readonly body: {
    readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  };
}

function recorded(): RecordedRequest {
  const text = readFileSync(join(import.meta.dirname, RECORDED), 'utf8');
  return (JSON.parse(text) as { request: RecordedRequest }).request;
}

/** The recorded request from another folder, in another session, with another prompt. */
export function requestFrom(folder: string, session: number, prompt: string) {
  const id = `11111111-0000-4000-8000-${String(session).padStart(12, '0')}`;
  const { headers, body } = recorded();
  const messages = body.messages.map((message) =>
    // The recording cut what the client ships: its environment comes first in this message.
    message.role === 'system'
      ? { ...message, content: `# Environment\n - Primary working directory: ${folder}\n` }
      : message,
  );
  const changed = JSON.stringify({ ...body, messages })
    .replaceAll('/home/user/project', folder)
    .replaceAll('00000000-0000-4000-8000-000000000001', id)
    .replaceAll('First typed question: where is the needle? [[plan=bash:ls -1|bash:pwd]]', prompt);
  expect(changed).toContain(prompt);
  const kept = headers.filter(([name]) =>
    /^(?:x-|anthropic-|user-agent|accept$|content-type)/i.test(name),
  );
  return {
    headers: {
      ...Object.fromEntries(kept),
      'X-Claude-Code-Session-Id': id,
      'x-api-key': LOCAL_TOKEN,
    },
    body: changed,
  };
}

export function git(folder: string, ...words: readonly string[]): void {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@b.c'];
  execFileSync('git', [...who, ...words], { cwd: folder, stdio: 'pipe' });
}

/** A repository with one commit of its own. */
export function newRepository(folder: string): string {
  mkdirSync(join(folder, 'packages', 'api'), { recursive: true });
  git(folder, 'init', '-q');
  git(folder, 'commit', '-q', '--allow-empty', '-m', folder);
  return folder;
}
