import { spaceNames } from '../../adapters/projects/registry.ts';
import { readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/config-folder.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { asList, asRecord, asText } from '../../core/bytes/json-fields.ts';
import { WELL_KNOWN_NAMES } from '../../core/settings/well-known.ts';
import { CliError } from '../cli-error.ts';
import type { OpenStore } from '../compose-store.ts';
import type { CommandContext } from '../context.ts';
import { ASKED_VALUES, type AskedValues } from './completion.ts';

/** `svc completion --values`: what a shell proposes after an option, one value a line. */

const DAYS_MS = 90 * 24 * 3600 * 1000;

export async function printValues(
  kind: string,
  { environment, terminal }: CommandContext,
  openStore: OpenStore,
): Promise<void> {
  const known = ASKED_VALUES.find((one) => one === kind);
  if (known === undefined) {
    throw new CliError(
      `svc completion lists ${ASKED_VALUES.join(' and ')}.`,
      'See: svc completion --help',
      2,
    );
  }
  const values = await LISTS[known](environment, openStore);
  for (const value of values) terminal.out(value);
}

type List = (
  environment: CommandContext['environment'],
  openStore: OpenStore,
) => Promise<readonly string[]>;

const LISTS: Readonly<Record<AskedValues, List>> = {
  // Those that something went through lately: the request log knows them by a quick sum.
  spaces: async (environment, openStore) => {
    const store = await openStore(dataFolder(environment), { report: () => undefined });
    try {
      const sums = await store.requests.sum({ since: Date.now() - DAYS_MS });
      const all = sums.map(({ space }) => space).filter((space) => space !== '');
      const names = spaceNames(dataFolder(environment), all);
      const spaces = all.map((space) => names.of(space));
      return [...new Set(['global', ...spaces])].toSorted();
    } finally {
      await store.close();
    }
  },
  upstreams: async (environment) => {
    const file = await readConfigFile(configFolder(environment));
    const configured = asList(asRecord(file?.value)['upstreams']).map((it) =>
      asText(asRecord(it)['name']),
    );
    return [...new Set([...configured.filter((name) => name !== ''), ...WELL_KNOWN_NAMES])];
  },
};
