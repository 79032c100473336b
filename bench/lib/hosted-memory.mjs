/**
 * A service of the product's own as the memory of a local proxy, over TLS on loopback. It stands for
 * another machine, so it has the driver's core.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { makeCertificate } from '../hosted/certificate.mjs';
import { findFreePort, startProcess, stopProcess, waitForPort } from './processes.mjs';

const SERVICE_BIN = join(import.meta.dirname, '..', '..', 'service', 'bin', 'svc-service.js');

export class HostedMemory {
  #command;
  #folder;
  #process;

  constructor({ folder }) {
    this.#folder = join(folder, 'hosted-memory');
    this.#command = (...args) => [SERVICE_BIN, ...args];
  }

  /** Gives the member `memory` of a configuration, and the certificate to be trusted. */
  async start() {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const { key, certificate } = makeCertificate(this.#folder);
    const port = await findFreePort();
    const tls = ['--tls-cert', certificate, '--tls-key', key];
    this.#run('init', '--port', String(port), ...tls);
    const serviceKey = this.#run('keys', 'create', '--name', 'bench').trim();
    this.#process = startProcess(process.execPath, this.#command('start', '--log', 'off'), {
      role: 'driver',
      env: this.#env,
      folder: this.#folder,
      log: join(this.#folder, 'service.log'),
    });
    if (!(await waitForPort({ host: '127.0.0.1', port }, this.#process)))
      throw new Error(`The service did not start, see ${this.#folder}/service.log`);
    const baseUrl = `https://127.0.0.1:${port}`;
    const memory = { kind: 'hosted', baseUrl, serviceKey, allowPrivate: true };
    return { memory, certificate };
  }

  stop() {
    return stopProcess(this.#process);
  }

  get #env() {
    return { HOME: this.#folder, SVC_CONFIG_HOME: this.#folder, SVC_DATA_HOME: this.#folder };
  }

  #run(...args) {
    const env = { PATH: process.env.PATH, ...this.#env };
    const stdio = ['ignore', 'pipe', 'ignore'];
    return execFileSync(process.execPath, this.#command(...args), { env, stdio }).toString();
  }
}
