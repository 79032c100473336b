import { repairModes } from '../adapters/config-file.ts';
import { configFolder } from '../adapters/config-folder.ts';
import { dataFolder } from '../adapters/data-folder.ts';
import { FileError } from '../adapters/file-error.ts';
import { folderMode, tightenFolder } from '../adapters/private-folder.ts';
import type { CommandContext } from './context.ts';

/**
 * What `svc doctor --fix` may mend by itself: modes that are too open. Keys, ports and the files of
 * clients are the person's to decide about.
 */
export async function fixModes({ environment, terminal }: CommandContext): Promise<void> {
  const mended: string[] = [];
  try {
    mended.push(...(await repairModes(configFolder(environment))));
    const data = dataFolder(environment);
    const isThere = (await folderMode(data)) !== undefined;
    if (isThere && (await tightenFolder(data))) mended.push(data);
  } catch (error) {
    // A link or a foreign folder: the checks tell it, with what to do.
    if (!(error instanceof FileError)) throw error;
  }
  for (const path of mended) terminal.note(`Made private: ${path}`);
}
