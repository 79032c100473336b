/**
 * `svc run pi` hands this to pi: it points pi's providers at the proxy. A model of svc's own provider is
 * described as far as pi insists; svc knows no more of it.
 */
const MODEL = {
  reasoning: false,
  input: ['text', 'image'],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 128_000,
  maxTokens: 16_384,
};

// pi calls the default export.
// oxlint-disable-next-line import/no-default-export
export default function pointAtProxy(pi) {
  const providers = JSON.parse(process.env.SVC_PI_PROVIDERS ?? '{}');
  for (const [name, { models, ...provider }] of Object.entries(providers)) {
    const described = models?.map((model) => ({ name: model.id, ...MODEL, ...model }));
    pi.registerProvider(name, described ? { ...provider, models: described } : provider);
  }
}
