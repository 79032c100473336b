import { isRecord, type Environment } from '../core/config-values.ts';
import type { Dialect } from '../core/dialect.ts';
import { requireConfigFile } from './load-config.ts';

/** The upstreams as the file has them, unjudged: their keys may be missing here and set elsewhere. */
export async function upstreamsIn(
  environment: Environment,
): Promise<readonly Record<string, unknown>[]> {
  const { value } = await requireConfigFile(environment);
  const upstreams = isRecord(value) ? value['upstreams'] : undefined;
  return Array.isArray(upstreams) ? upstreams.filter((one) => isRecord(one)) : [];
}

/** Says so when no provider speaks what a client is going to speak. */
export async function noteMissingUpstream(
  environment: Environment,
  apiStyle: Dialect,
  note: (line: string) => void,
): Promise<void> {
  const upstreams = await upstreamsIn(environment);
  if (upstreams.some((one) => one['apiStyle'] === apiStyle)) return;
  const name = apiStyle === 'anthropic_messages' ? 'anthropic' : 'openai';
  note(`No provider speaks ${apiStyle} yet. Add one: svc setup --yes --upstream ${name}`);
}
