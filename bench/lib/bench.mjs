/** What every suite works with: the provider, the targets in their order, and requests made for them. */
import { join } from 'node:path';
import { PATHS, SIZES, makeBody, renumber } from './bodies.mjs';
import { Connection, encodeRequest } from './connection.mjs';
import { now, sleep } from './clock.mjs';
import { cpuMsOf, isPortOpen, startProcess, stopProcess, waitForPort } from './processes.mjs';
import { CLIENT_HEADERS } from './targets.mjs';

/** Enough requests for the compiler to settle, within limits for slow targets. */
const WARM_UP_MS = 2000;
const PORT_CLOSES_MS = 2000;

export class Bench {
  #folder;
  #bodies = new Map();

  constructor({ provider, targets, rounds, isQuick, folder }) {
    this.provider = provider;
    this.targets = targets;
    this.rounds = rounds;
    this.isQuick = isQuick;
    this.#folder = folder;
  }

  /** A or B, whichever the kind of run asks for. */
  choose(quick, whole) {
    return this.isQuick ? quick : whole;
  }

  /** A B, then B A: a drift of the machine meets every target alike. */
  inOrder(round) {
    return round % 2 === 0 ? this.targets : this.targets.toReversed();
  }

  started() {
    return this.targets.filter((target) => target.command !== undefined);
  }

  /** The bytes of a request for this target. Options: size, dialect, isStream, headers, body, seed, newest, moreRounds. */
  requestFor(target, options = {}) {
    const { headers = {}, body, ...bodyOptions } = options;
    const { dialect = 'messages' } = options;
    return encodeRequest({
      host: `${target.host}:${target.port}`,
      path: PATHS[dialect],
      body: body ?? this.bodyFor(target, bodyOptions),
      headers: { ...CLIENT_HEADERS, ...target.headers, ...target.headersOf?.[dialect], ...headers },
    });
  }

  bodyFor(target, { size = '2k', isStream = true, ...options }) {
    const model = target.model ?? 'bench-model';
    const wanted = { bytes: SIZES[size], isStream, model, ...options };
    const key = JSON.stringify(wanted);
    if (!this.#bodies.has(key)) this.#bodies.set(key, makeBody(wanted));
    return this.#bodies.get(key);
  }

  async start(target) {
    target.process = this.spawn(target);
    return waitForPort(target, target.process);
  }

  async drop(target) {
    await this.stop(target);
    this.targets = this.targets.filter((it) => it !== target);
  }

  spawn(target) {
    const log = join(this.#folder, `${target.name}.log`);
    return startProcess(target.command, target.args, {
      role: 'target',
      env: target.env,
      folder: this.#folder,
      log,
    });
  }

  async stop(target) {
    await stopProcess(target.process);
    target.process = undefined;
    const until = now() + PORT_CLOSES_MS;
    while (now() < until && (await isPortOpen(target))) await sleep(20);
  }

  async restart(target) {
    await this.stop(target);
    await this.start(target);
  }

  /** CPU milliseconds so far; undefined for what we did not start. */
  cpuMs(target) {
    return target.process === undefined ? undefined : cpuMsOf(target.process.pid);
  }

  /** What went wrong, undefined when the target serves. */
  async warmUp(target) {
    const connection = new Connection(target);
    await this.provider.setMode({ kind: 'sse' });
    const until = now() + this.choose(WARM_UP_MS / 4, WARM_UP_MS);
    const requests = ['2k', '1m'].map((size) => this.requestFor(target, { size }));
    for (let count = 0; now() < until; count += 1) {
      // A large one now and then: the paths for large bodies must be warm, too.
      const { status, failure } = await connection.request(
        renumber(requests[count % 20 === 19 ? 1 : 0]),
      );
      if (status !== 200)
        return `${target.name} answered ${status} ${failure ?? ''}, see ${this.#folder}/${target.name}.log`;
    }
    connection.close();
    return undefined;
  }
}
