/** Safety checks of the way through a network's own proxy. */

const CORE = 'test/core/network-proxy.test.ts';

export const NETWORK = [
  {
    name: 'long answers of one tenant hold up the requests of the others',
    file: 'service/src/adapters/network/provider-pools.ts',
    from: 'connectionsMax: CONNECTIONS_MAX',
    to: 'connectionsMax: CONNECTIONS_MAX / 8',
    test: 'service/test/adapters/provider-pools.test.ts',
  },
  {
    name: 'this machine is reached through the network’s proxy where a setting says so',
    file: 'src/core/settings/network-proxy.ts',
    from: 'if (isOwnMachine(url.hostname)) return undefined;',
    to: '',
    test: CORE,
  },
  {
    name: 'this machine is reached through the network’s proxy of the environment',
    file: 'src/core/settings/network-proxy.ts',
    from: 'isOwnMachine(url.hostname) || isSpared(url, environment)',
    to: 'isSpared(url, environment)',
    test: CORE,
  },
  {
    name: 'the certificate inside a tunnel is not checked',
    file: 'src/adapters/network/pinned-connector.ts',
    from: 'buildConnector(tlsRules(trust))',
    to: 'buildConnector({ ...tlsRules(trust), rejectUnauthorized: false })',
    test: 'test/adapters/network-proxy.test.ts',
  },
];
