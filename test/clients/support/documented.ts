import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Stage } from './stage.ts';

/** The examples of a page in docs/, as a reader would copy them. */

const root = join(import.meta.dirname, '..', '..', '..');
/** What the pages name: the default address. */
const ADDRESS = 'http://127.0.0.1:8765';

/**
 * The block whose first line is a comment with this name, or the first block of this language; with
 * the stage's address in place of the default one.
 */
export function documented(page: string, name: string, stage: Stage): string {
  const text = readFileSync(join(root, 'docs', page), 'utf8');
  const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  const block = blocks.find(
    ([, language, code = '']) =>
      language === name || /^(?:\/\/|#) (\S+)\n/.exec(code)?.[1] === name,
  );
  const code = block?.[2];
  if (code === undefined || !/\n/.test(code)) throw new Error(`docs/${page} has no ${name}`);
  return code.replaceAll(ADDRESS, stage.url);
}

/** A folder for the PATH in which `svc` is this program. */
export function folderWithSvc(stage: Stage): string {
  const folder = join(stage.home, 'bin');
  mkdirSync(folder, { recursive: true });
  const script = `#!/bin/sh\nexec '${process.execPath}' '${stage.svc.program}' "$@"\n`;
  writeFileSync(join(folder, 'svc'), script, { mode: 0o755 });
  return folder;
}
