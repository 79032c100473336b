import { type Draft, upstreamEntries } from '../../core/settings/config-draft.ts';
import {
  type Environment,
  namedVariable,
  variableText,
} from '../../core/settings/config-values.ts';
import type { Dialect } from '../../core/conversation/view.ts';
import { apiOf } from '../../core/dialects/apis.ts';
import { requireConfigFile } from './load-config.ts';

/** Unjudged: their keys may be missing here and set where svc runs. */
export async function storedUpstreams(environment: Environment): Promise<readonly Draft[]> {
  return upstreamEntries((await requireConfigFile(environment)).value);
}

/** The variables, as a shell writes them, in which the configuration looks for provider keys. */
export async function keyVariables(environment: Environment): Promise<readonly string[]> {
  const keys = (await storedUpstreams(environment)).map((one) => namedVariable(one['providerKey']));
  return [...new Set(keys.filter((name) => name !== undefined).map(variableText))];
}

export async function storedUpstream(
  environment: Environment,
  apiStyle: Dialect,
): Promise<Draft | undefined> {
  const upstreams = await storedUpstreams(environment);
  return upstreams.find((one) => one['apiStyle'] === apiStyle);
}

/** Says so when no provider speaks what a client is going to speak. */
export async function noteMissingUpstream(
  environment: Environment,
  apiStyle: Dialect,
  note: (line: string) => void,
): Promise<void> {
  if ((await storedUpstream(environment, apiStyle)) !== undefined) return;
  const { provider } = apiOf(apiStyle);
  note(
    `No provider for ${apiStyle} is configured. Add one: svc setup --yes --upstream ${provider}`,
  );
}
