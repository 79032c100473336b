import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeCertificate } from '../../../test/support/certificate.ts';
import { freePort, isListening } from '../../../test/support/free-port.ts';

/** A real HAProxy with service/haproxy.cfg: addresses and files alone are others. */

const FILE = join(import.meta.dirname, '../../haproxy.cfg');
const START_MS = 30_000;

export interface Haproxy {
  readonly port: number;
  /** Its certificate, which is for "localhost". */
  readonly ca: string;
  stop(): Promise<void>;
}

/** Why the tests of this file cannot run here. In CI, where it can be installed, that is a failure. */
export function missingHaproxy(): string | undefined {
  if (findProgram() !== undefined) return undefined;
  const reason = 'no HAProxy: apt-get install haproxy';
  if (process.env['CI'] === 'true') throw new Error(`There is ${reason}`);
  process.stderr.write(`SKIPPED ALOUD: ${reason}\n`);
  return reason;
}

function findProgram(): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'];
  return folders.map((folder) => join(folder, 'haproxy')).find((path) => existsSync(path));
}

export async function startHaproxy(nodes: readonly number[]): Promise<Haproxy> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-haproxy-')));
  const port = await freePort();
  const { key, cert } = makeCertificate('localhost');
  const pem = join(folder, 'service.pem');
  writeFileSync(pem, `${cert}${key}`, { mode: 0o600 });
  chmodSync(folder, 0o700);
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, settingsFor({ port, pem, nodes }));
  const child = spawn(findProgram() ?? '', ['-db', '-q', '-f', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (bytes: Buffer) => {
    said += bytes.toString();
  });
  const until = performance.now() + START_MS;
  // oxlint-disable-next-line no-await-in-loop -- Asked until it answers.
  while (!(await isListening(port))) {
    if (child.exitCode !== null || performance.now() > until) throw new Error(`HAProxy: ${said}`);
    // oxlint-disable-next-line no-await-in-loop
    await sleep(20);
  }
  return {
    port,
    ca: cert,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, 'exit');
        child.kill('SIGKILL');
        await gone;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Throws where the file has another configuration than this knows to fill in. */
function settingsFor({
  port,
  pem,
  nodes,
}: {
  readonly port: number;
  readonly pem: string;
  readonly nodes: readonly number[];
}): string {
  const places: readonly (readonly [string, string])[] = [
    ['bind :443 ssl crt /tls/service.pem', `bind 127.0.0.1:${port} ssl crt ${pem}`],
    ['server a node-a:8766', `server a 127.0.0.1:${nodes[0]}`],
    ['server b node-b:8766', `server b 127.0.0.1:${nodes[1]}`],
  ];
  return places.reduce(
    (text, [from, to]) => {
      if (!text.includes(from)) throw new Error(`service/haproxy.cfg has no "${from}".`);
      return text.replace(from, to);
    },
    readFileSync(FILE, 'utf8'),
  );
}
