import type { CliStore } from '../compose-store.ts';
import { oneLine } from '../terminal.ts';
import { CodeChecker, type FileCheck } from './code-check.ts';

/**
 * Tells the reader of a memory which of its files have changed since. It is a remark beside the
 * text and never a part of it. A memory whose files svc does not know gets none.
 */

/** More names than these tell a reader nothing more. */
const NAMED_MAX = 3;
const PATH_CHARS_MAX = 200;

export interface ChangeReader {
  /** The svc remark for the memory; undefined where it holds, or nothing is known. Never rejects. */
  remark(ref: string): Promise<string | undefined>;
}

export function changeReader({ code }: Pick<CliStore, 'code'>, dataFolder: string): ChangeReader {
  if (code === undefined) return { remark: async () => undefined };
  const checker = new CodeChecker(code.reader, dataFolder);
  const changedOf = async (ref: string): Promise<readonly FileCheck[]> => {
    const held = await code.provenance.list({ refs: [ref], limit: 8 });
    const checks = await checker.check(held.slice(0, 1));
    return checks
      .filter(({ holds }) => holds === 'outgrown')
      .flatMap(({ files }) => files.filter(({ state }) => state === 'changed' || state === 'gone'));
  };
  return {
    remark: async (ref) => {
      // A memory is read as well when nothing can be said of its files.
      const changed = await changedOf(ref).catch(() => []);
      return changed.length === 0 ? undefined : remarkOf(changed);
    },
  };
}

function remarkOf(changed: readonly FileCheck[]): string {
  const names = changed.slice(0, NAMED_MAX).map(({ path }) => oneLine(path, PATH_CHARS_MAX));
  const more = changed.length - names.length;
  const others = more > 0 ? ` and ${more} more` : '';
  return `[svc: files changed since this was said: ${names.join(', ')}${others}. Read them before you rely on it.]`;
}
