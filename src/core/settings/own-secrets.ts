import { pathTokenOf } from '../http/local-token.ts';
import { proxySecretsOf } from './network-proxy.ts';
import type { MemorySettings, Settings } from './settings.ts';

/** Matches names of headers and query values that hold a credential. */
const SECRET_NAME = /auth|key|token|secret|pass|cookie|credential/i;

type Known = Partial<Pick<Settings, 'upstreams' | 'localToken'>> & {
  readonly memory?: MemorySettings;
};

/** Returns the secrets of a configuration, which svc masks by value in the texts that it stores. */
export function ownSecretsOf({ upstreams = [], memory, localToken }: Known): readonly string[] {
  const ofUpstreams = upstreams.flatMap(({ providerKey, headers, query, proxy }) => [
    providerKey,
    ...proxySecretsOf(proxy),
    ...[...Object.entries(headers), ...Object.entries(query)]
      .filter(([name]) => SECRET_NAME.test(name))
      .map(([, value]) => value.replace(/^(?:Bearer|Basic|Token) /i, '')),
  ]);
  const ofMemory =
    memory?.kind === 'hosted' ? [memory.serviceKey, ...proxySecretsOf(memory.proxy)] : [];
  const ofClients = localToken === undefined ? [] : [localToken, pathTokenOf(localToken)];
  return [...ofUpstreams, ...ofMemory, ...ofClients];
}
