/**
 * The extension that `svc run pi` gives to pi. It sets the proxy's address for pi's providers. For a model of the
 * provider `svc` pi requires the facts below, which svc does not know, so they are guesses.
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
