import { configPath } from '../../adapters/files/config-file.ts';
import { updateConfigFile } from '../../adapters/files/config-writer.ts';
import { createLocalToken } from '../../adapters/processes/local-token.ts';
import {
  type Draft,
  newDraft,
  putUpstream,
  type UpstreamDraft,
} from '../../core/settings/config-draft.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import type { CommandContext } from '../context.ts';

/** Writes the configuration that the environment implies; keys are named in it, not copied. */
export async function writeDerivedConfig(
  folder: string,
  upstreams: readonly UpstreamDraft[],
  { terminal }: CommandContext,
): Promise<void> {
  let isWritten = false;
  await updateConfigFile(folder, (old) => {
    // Another svc was faster: its file is as good.
    if (isRecord(old?.value)) return old.value;
    isWritten = true;
    return upstreams.reduce<Draft>(putUpstream, newDraft(createLocalToken()));
  });
  if (!isWritten) return;
  const names = [...new Set(upstreams.map(({ name }) => name))].join(' and ');
  terminal.note(`svc wrote ${configPath(folder)} for ${names}, from the keys in the environment.`);
}
