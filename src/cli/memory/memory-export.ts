import { writeLine } from '../../core/memory/memory-lines.ts';
import type { CommandContext } from '../context.ts';
import { deadline, withStore } from './memory.ts';
import type { OpenStore } from '../compose-store.ts';

/** `svc memory export`: every memory, or one space's, as a line of JSON each. */

export interface ExportOptions {
  readonly space?: string;
}

/** As many as the store gives at once. */
const PAGE = 1000;

/**
 * Newest first, on stdout; the number on stderr. Memories stored meanwhile are not among them. A memory
 * service has pages by number only: there, memories that others forget meanwhile may move one out.
 */
export async function exportMemories(
  { space }: ExportOptions,
  context: CommandContext,
  openStore: OpenStore,
): Promise<void> {
  const { terminal } = context;
  const filter = { limit: PAGE, ...(space === undefined ? {} : { space }) };
  const count = await withStore(context, openStore, async ({ memory }) => {
    let written = 0;
    let next: number | undefined;
    for (;;) {
      const page =
        memory.page === undefined
          ? {
              records: await memory.list({ ...filter, offset: written }, deadline()),
              next: undefined,
            }
          : await memory.page(
              { ...filter, ...(next === undefined ? {} : { before: next }) },
              deadline(),
            );
      for (const record of page.records) terminal.out(writeLine(record));
      written += page.records.length;
      terminal.progress(`${written} memories`);
      if (page.records.length < PAGE) return written;
      ({ next } = page);
    }
  });
  terminal.progressDone();
  terminal.note(`Exported: ${count}.`);
}
