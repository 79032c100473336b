import { expect, onTestFinished } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { openServiceStore } from '../../service/src/adapters/service-store/sqlite-service-store.ts';
import { ServiceMemory } from '../../service/src/adapters/service-memory/service-memory.ts';
import { openHostedMemory } from '../../src/adapters/memory-client/open-hosted-memory.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { FakeService } from '../support/fake-service.ts';
import { makeCertificate } from '../support/certificate.ts';
import { startMemoryService } from '../../service/test/support/memory-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { memorySuite } from './memory-suite.ts';

const refuse = (): Promise<never> => Promise.reject(new Error('No request asks this.'));
const NOT_ASKED = {
  retrieve: refuse,
  list: refuse,
  references: refuse,
  forget: refuse,
  close: async () => undefined,
};

memorySuite('the embedded store', () => {
  const store = openEmbeddedStore({ folder: tempFolder(), report: () => undefined });
  onTestFinished(() => store.close());
  return store.memory;
});

memorySuite('the fake', () => new FakeMemory());

memorySuite('the hosted client before the fake service', async () => {
  const service = await new FakeService().listen();
  const settings = {
    kind: 'hosted',
    baseUrl: service.url,
    serviceKey: service.key,
    allowPrivate: true,
  } as const;
  const hosted = openHostedMemory({
    settings,
    recallMs: 10_000,
    report: () => undefined,
  });
  onTestFinished(async () => {
    await service.close();
    expect(service.invalid).toEqual([]);
  });
  return hosted.memory;
});

memorySuite(
  "a memory service's own store, in this process",
  () => {
    const store = openServiceStore({
      folder: tempFolder(),
      serves: true,
      creates: true,
      report: () => undefined,
    });
    onTestFinished(() => store.close());
    const memory = new ServiceMemory({
      store: store.of('default'),
      clock: { now: () => Date.now() },
    });
    return {
      supports: memory.supports,
      recall: (question, signal) => memory.recall(question, signal),
      capture: (records, signal) => memory.capture(records, signal),
      hold: (question, signal) => memory.hold(question, signal),
      ...NOT_ASKED,
    };
  },
  { isOfRequests: true },
);

const LOCAL = makeCertificate('localhost');

memorySuite('the hosted client before a memory service over TLS', async () => {
  const service = await startMemoryService({ tls: LOCAL });
  const hosted = openHostedMemory({
    settings: {
      kind: 'hosted',
      baseUrl: `https://localhost:${service.port}`,
      serviceKey: await service.makeKey(),
      allowPrivate: true,
    },
    trust: { ca: LOCAL.cert },
    recallMs: 10_000,
    report: () => undefined,
  });
  return hosted.memory;
});
