/** Other proxies for model traffic, when they are installed in a folder. See README.md. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const NGINX = '/usr/sbin/nginx';

/** Those that are there, on ports from `port` on. */
export function peerTargets(peersFolder, { port, providerUrl, folder }) {
  const packages = resolve(peersFolder, 'node_modules');
  const known = [
    { path: NGINX, make: nginxTarget },
    { path: join(packages, '@portkey-ai/gateway/build/start-server.js'), make: portkeyTarget },
    { path: join(packages, '@musistudio/claude-code-router/dist/cli.js'), make: routerTarget },
  ];
  return known
    .filter(({ path }) => existsSync(path))
    .map(({ path, make }, at) => {
      const place = { path, port: port + at, providerUrl, folder };
      return { host: '127.0.0.1', port: port + at, headers: {}, env: {}, ...make(place) };
    });
}

/** No program of the kind can be faster: both directions unbuffered, nothing looked at. */
function nginxTarget({ path, port, providerUrl, folder }) {
  const file = join(folder, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (it) => `${it}_temp_path ${folder}/nginx-${it};`,
  );
  writeFileSync(
    file,
    `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log warn;
events { worker_connections 2048; }
http { access_log off; keepalive_timeout 65s; keepalive_requests 1000000000; client_max_body_size 64m; tcp_nodelay on;
  ${temporary.join(' ')}
  upstream provider { server ${new URL(providerUrl).host}; keepalive 512; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://provider; proxy_http_version 1.1;
    proxy_set_header Connection ""; proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 600s; } } }
`,
  );
  return {
    name: 'nginx',
    dialects: ['messages', 'chat', 'responses'],
    command: path,
    args: ['-c', file, '-p', folder],
  };
}

function portkeyTarget({ path, port, providerUrl }) {
  const provider = (name) => ({ 'x-portkey-provider': name });
  return {
    name: 'portkey',
    dialects: ['messages', 'chat', 'responses'],
    command: process.execPath,
    args: [path, `--port=${port}`, '--headless'],
    headers: { 'x-portkey-custom-host': `${providerUrl}/v1` },
    headersOf: {
      messages: provider('anthropic'),
      chat: provider('openai'),
      responses: provider('openai'),
    },
  };
}

function routerTarget({ path, port, providerUrl, folder }) {
  const home = join(folder, 'router-home');
  const config = {
    PORT: port,
    HOST: '127.0.0.1',
    LOG: false,
    NON_INTERACTIVE_MODE: true,
    API_TIMEOUT_MS: 600_000,
    Providers: [
      {
        name: 'bench',
        api_base_url: `${providerUrl}/v1/messages`,
        api_key: 'bench-provider-key',
        models: ['bench-model'],
        transformer: { use: ['Anthropic'] },
      },
    ],
    Router: { default: 'bench,bench-model' },
  };
  mkdirSync(join(home, '.claude-code-router'), { recursive: true });
  writeFileSync(join(home, '.claude-code-router', 'config.json'), JSON.stringify(config));
  const env = { HOME: home, SERVICE_PORT: String(port) };
  return {
    name: 'claude-code-router',
    dialects: ['messages'],
    command: process.execPath,
    args: [path, 'start'],
    env,
  };
}
