/** The driver's hold on the stand-in provider. */
import { join } from 'node:path';
import { Connection, encodeRequest } from './connection.mjs';
import { now, sleep } from './clock.mjs';
import { startProcess, stopProcess, waitForPort } from './processes.mjs';

export class ProviderProcess {
  #address;
  #tls;
  #control;
  #process;

  /** `tls`: { port, key, certificate } for a second port, the last two as files. */
  constructor(port, tls) {
    this.#address = { host: '127.0.0.1', port };
    this.#tls = tls;
    this.#control = new Connection(this.#address);
  }

  get address() {
    return this.#address;
  }

  get url() {
    return `http://127.0.0.1:${this.#address.port}`;
  }

  async start(folder) {
    const program = join(import.meta.dirname, 'provider.mjs');
    const log = join(folder, 'provider.log');
    const { port, key, certificate } = this.#tls ?? {};
    const secure = port === undefined ? [] : [String(port), key, certificate];
    const args = [program, String(this.#address.port), ...secure];
    this.#process = startProcess(process.execPath, args, {
      role: 'driver',
      folder,
      log,
    });
    if (!(await waitForPort(this.#address, this.#process)))
      throw new Error(`The provider did not start, see ${log}`);
  }

  /** How it answers from now on; what is not named has the default of provider.mjs. */
  setMode(mode) {
    return this.#call('mode', mode);
  }

  reset() {
    return this.#call('reset', {});
  }

  step() {
    return this.#call('step', {});
  }

  /** Paced streams end with their next event. */
  finish() {
    return this.#call('finish', {});
  }

  /** { requests, sentBytes, openSockets, records: [{ path, bytes, digest, headers, abortedAt, … }] } */
  report() {
    return this.#call('report', {});
  }

  /** The first record that fits, as soon as there is one. */
  async waitForRecord(fits, ms) {
    const until = now() + ms;
    while (now() < until) {
      const record = (await this.report()).records.find(fits);
      if (record !== undefined) return record;
      await sleep(2);
    }
    return undefined;
  }

  async stop() {
    this.#control.close();
    await stopProcess(this.#process);
  }

  async #call(name, payload) {
    const parts = [];
    const body = Buffer.from(JSON.stringify(payload));
    const request = encodeRequest({ host: 'bench', path: `/__bench/${name}`, body });
    const answer = await this.#control.request(request, {
      onData: (bytes) => parts.push(Buffer.from(bytes)),
    });
    if (answer.failure !== undefined)
      throw new Error(`The provider's control failed: ${answer.failure}`);
    return JSON.parse(Buffer.concat(parts).toString());
  }
}
