/** The program in a process of its own, with a configuration, a store and an upstream of its own. */
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
export const TOKEN = 'svc_local_benchbenchbenchbenchbenchbenchbenchbenchbenc';

/** `proxy`: its settings. `node`: flags of Node. `args`: in front of `start`. `stdio`: of the process. */
export async function startSvc(home, providerPort, given = {}) {
  const { proxy = {}, node = [], bin = join(ROOT, 'bin', 'svc.js'), args = [] } = given;
  const { stdio = ['ignore', 'pipe', 'inherit'] } = given;
  const anthropic = {
    name: 'anthropic',
    apiStyle: 'anthropic_messages',
    baseUrl: `http://127.0.0.1:${providerPort}`,
    providerKey: 'none',
    auth: 'x-api-key',
    allowPrivate: true,
  };
  const config = { version: 1, proxy, upstreams: [anthropic], localToken: TOKEN };
  mkdirSync(join(home, 'config'), { mode: 0o700 });
  writeFileSync(join(home, 'config', 'config.json'), JSON.stringify(config), { mode: 0o600 });
  const child = spawn(process.execPath, [...node, bin, ...args, 'start', '--port', '0', '--json'], {
    env: {
      PATH: process.env.PATH,
      HOME: home,
      SVC_CONFIG_HOME: join(home, 'config'),
      SVC_DATA_HOME: join(home, 'data'),
      XDG_CACHE_HOME: join(home, 'cache'),
    },
    stdio,
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  const { url } = JSON.parse(await new Promise((resolve) => child.stdout.once('data', resolve)));
  const proc = `/proc/${child.pid}`;
  return {
    child,
    port: Number(new URL(url).port),
    residentMb: () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`${proc}/status`, 'utf8'))?.[1]) / 1024,
    descriptors: () => readdirSync(`${proc}/fd`).length,
    stop: async () => {
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/** Resolves with the answer's status and headers once its body is over. */
export function postMessages({ port, agent }, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({
      agent,
      port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/v1/messages',
      headers: {
        authorization: `Bearer ${TOKEN}`,
        'anthropic-version': '2023-06-01',
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        ...headers,
      },
    });
    request.on('response', (answer) => {
      answer.resume();
      answer.on('close', () => resolve({ status: answer.statusCode, headers: answer.headers }));
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** An answer of the provider, as JSON. */
export function messageWith(text, id = 'msg_1') {
  return JSON.stringify({
    id,
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 10, output_tokens: 3 },
  });
}
