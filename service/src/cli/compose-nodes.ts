import { randomBytes } from 'node:crypto';
import type { ServiceSettings } from '../core/settings.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import { type JoinedNode, joinNodes } from '../server/node-registry.ts';
import { CliError } from '../../../src/cli/cli-error.ts';

/** Joins a process to the nodes of its service. */

export interface NodeParts {
  readonly store: ServiceStore;
  readonly limiterPlace: string | undefined;
  readonly settings: Pick<ServiceSettings, 'requestsPerMinute'>;
}

/** Throws CliError where limits are counted in two places. */
export async function joinAsNode({
  store,
  limiterPlace,
  settings,
}: NodeParts): Promise<JoinedNode> {
  const { requestsPerMinute = null } = settings;
  const node = await joinNodes({ store, randomBytes, limiterPlace, requestsPerMinute });
  if (node.otherPlace === undefined) return node;
  await node.leave();
  throw new CliError(
    `Another node of this service counts limits in ${node.otherPlace}, this one in ${limiterPlace ?? 'its own process'}.`,
    'Set SVC_REDIS_URL to the same address on all nodes. A loopback address means a different Redis on each machine.',
  );
}
