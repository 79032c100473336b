import { type Draft, upstreamEntries } from '../../core/settings/config-draft.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import type { Dialect } from '../../core/conversation/dialect.ts';
import { requireConfigFile } from './load-config.ts';

/** Unjudged: their keys may be missing here and set where svc runs. */
export async function storedUpstreams(environment: Environment): Promise<readonly Draft[]> {
  return upstreamEntries((await requireConfigFile(environment)).value);
}

/** Says so when no provider speaks what a client is going to speak. */
export async function noteMissingUpstream(
  environment: Environment,
  apiStyle: Dialect,
  note: (line: string) => void,
): Promise<void> {
  const upstreams = await storedUpstreams(environment);
  if (upstreams.some((one) => one['apiStyle'] === apiStyle)) return;
  const name = apiStyle === 'anthropic_messages' ? 'anthropic' : 'openai';
  note(`No provider speaks ${apiStyle} yet. Add one: svc setup --yes --upstream ${name}`);
}
