import { pathTokenOf } from '../http/local-token.ts';
import { proxySecretsOf } from './network-proxy.ts';
import type { MemorySettings, Settings } from './settings.ts';

/** A header or a query value whose name says that it is a credential. */
const SECRET_NAME = /auth|key|token|secret|pass|cookie|credential/i;

type Known = Partial<Pick<Settings, 'upstreams' | 'localToken'>> & {
  readonly memory?: MemorySettings;
};

/** The secrets of a configuration: what must never be kept or sent, whatever it looks like (R41). */
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
