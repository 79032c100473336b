import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from './cli.ts';

/** Every path below the folder with its mode and its bytes. */
export function treeOf(folder: string): readonly string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted();
  return names.map((name) => {
    const path = join(folder, name);
    const stat = lstatSync(path);
    const bytes = stat.isFile() ? readFileSync(path).toString('base64') : '';
    return `${name} ${(stat.mode & 0o7777).toString(8)} ${bytes}`;
  });
}

const RECORDED = join(import.meta.dirname, '../recordings/transcripts/claude-code-2.1.329');
const SESSION = '00000000-0000-4000-8000-000000000003.jsonl';

export interface UsedHome {
  readonly home: string;
  /** The search path has the installed clients and nothing else; svc's data lie in the home. */
  readonly environment: Readonly<Record<string, string>>;
}

/** The home of somebody who uses clients: their programs, and one session of Claude Code. */
export function usedHome(programs: readonly string[] = ['claude']): UsedHome {
  const home = tempFolder();
  const bin = join(home, 'bin');
  mkdirSync(bin);
  for (const program of programs) {
    writeFileSync(join(bin, program), '#!/bin/sh\necho 0.169.0\n');
    chmodSync(join(bin, program), 0o755);
  }
  const project = join(home, '.claude/projects/-work-app');
  mkdirSync(project, { recursive: true });
  copyFileSync(join(RECORDED, SESSION), join(project, SESSION));
  return { home, environment: { PATH: bin, SVC_DATA_HOME: join(home, 'data') } };
}
