/** A valid configuration file, to be changed by tests. */
export const LOCAL_TOKEN = 'svc_local_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY';
export const PROVIDER_KEY = 'sk-ant-api03-CANARY-7f3a9b2c1d0e4f5a6b7c8d9e';

export function validConfig(): Record<string, unknown> {
  return {
    version: 1,
    proxy: { port: 8765 },
    memory: { kind: 'embedded' },
    upstreams: [
      {
        name: 'anthropic',
        apiStyle: 'anthropic_messages',
        baseUrl: 'https://api.anthropic.com',
        providerKey: PROVIDER_KEY,
        auth: 'x-api-key',
      },
    ],
    localToken: LOCAL_TOKEN,
  };
}
