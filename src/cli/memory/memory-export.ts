import { writeLine } from '../../core/memory/memory-lines.ts';
import type { SpokenRecord } from '../../ports/memory.ts';
import type { CommandContext } from '../context.ts';
import { deadline, withStore } from './memory.ts';
import type { OpenStore } from '../compose-store.ts';

/** `svc memory export`: every memory, or one space's, as a line of JSON each. */

export interface ExportOptions {
  readonly space?: string;
}

/** As many as the store gives at once. */
const PAGE = 1000;

/** Newest first, on stdout; the number on stderr. Memories stored meanwhile are not among them. */
export async function exportMemories(
  { space }: ExportOptions,
  context: CommandContext,
  openStore: OpenStore,
): Promise<void> {
  const { terminal } = context;
  const filter = { until: Date.now(), limit: PAGE, ...(space === undefined ? {} : { space }) };
  const count = await withStore(context, openStore, async ({ memory }) => {
    let offset = 0;
    let page: readonly SpokenRecord[];
    do {
      page = await memory.list({ ...filter, offset }, deadline());
      for (const record of page) terminal.out(writeLine(record));
      offset += page.length;
      terminal.progress(`${offset} memories`);
    } while (page.length === PAGE);
    return offset;
  });
  terminal.progressDone();
  terminal.note(`Exported: ${count}.`);
}
