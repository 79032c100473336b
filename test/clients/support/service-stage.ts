import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { onTestFinished } from 'vitest';
import { DIALECTS } from '../../support/dialect-wire.ts';
import {
  HOST,
  type ModelService,
  openModelService,
  providerCertificate,
} from '../../../service/test/support/model-service.ts';
import { startScriptedProvider } from '../../support/scripted-provider/provider.ts';
import type { Stage } from './stage.ts';
import { PROVIDER_KEY } from './svc.ts';
import { Tap } from './tap.ts';

/** A service in place of the local proxy: a client has its address and a service key, and nothing else. */
export async function openServiceStage(): Promise<Stage & { readonly models: ModelService }> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-clients-'));
  const newFolder = (name: string) => {
    mkdirSync(join(folder, name), { recursive: true });
    return join(folder, name);
  };
  const provider = await startScriptedProvider();
  const port = await startTls(Number(new URL(provider.url).port));
  const models = await openModelService({ egress: { ports: [port], allow: ['127.0.0.0/8'] } });
  for (const dialect of DIALECTS) {
    const more = {
      base_url: `https://${HOST}:${port}`,
      credential: PROVIDER_KEY,
      allowed_models: ['*'],
      default_model: 'm',
    };
    // oxlint-disable-next-line no-await-in-loop
    await models.addProvider(dialect, more);
  }
  const token = await models.makeKey();
  const tap = new Tap(models.port);
  await tap.start();
  onTestFinished(async () => {
    await tap.stop();
    await provider.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
  });
  return {
    models,
    provider,
    tap,
    url: tap.url,
    home: newFolder('home'),
    project: newFolder('project'),
    svc: {
      program: '',
      url: models.service.url,
      port: models.port,
      token,
      dataFolder: models.service.folder,
      env: {},
      stop: async () => {},
      kill: async () => {},
    },
    restartSvc: async () => {},
    newFolder,
  };
}

/** TLS in front of a provider that speaks none. */
async function startTls(port: number): Promise<number> {
  const server = createServer(providerCertificate(), (socket) => {
    const inner = connect(port, '127.0.0.1');
    for (const one of [socket, inner]) {
      one.on('error', () => {
        socket.destroy();
        inner.destroy();
      });
    }
    socket.pipe(inner).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
