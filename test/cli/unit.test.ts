import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import {
  installUnit,
  uninstallUnit,
  launchdPlist,
  systemdUnit,
  unitPrograms,
} from '../../src/cli/proxy/unit.ts';
import { BIN, runCli, runHere, tempFolder } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';
import { screen } from '../support/screen.ts';

vi.setConfig({ testTimeout: 30_000 });

const facts = { node: '/usr/bin/node', script: '/opt/a b/svc.js', environment: [] };
const parts = { platform: 'linux', node: facts.node, script: facts.script, startMs: 0 };

test('the unit holds its words as they are, whatever systemd would read in them', () => {
  const script = '/opt/50% "$HOME"/svc.js';
  const text = systemdUnit({ ...facts, script, environment: [['SVC_DATA_HOME', '/da $ta']] });
  expect(text).toContain(
    String.raw`ExecStart="/usr/bin/node" "/opt/50%% \"$$HOME\"/svc.js" start --quiet`,
  );
  expect(text).toContain('Environment="SVC_DATA_HOME=/da $ta"');
  expect(text.slice(0, text.indexOf('[Service]'))).toContain('StartLimitIntervalSec=60');
  const plist = launchdPlist({ ...facts, script: '/opt/<&>/svc.js' });
  expect(plist).toContain('<string>/opt/&lt;&amp;&gt;/svc.js</string>');
});

test('install writes the unit and asks the service manager, uninstall takes both back', async () => {
  const keyed = { ...(validConfig()['upstreams'] as object[])[0], providerKey: { env: 'MY_KEY' } };
  const home = homeWith({ ...validConfig(), upstreams: [keyed] });
  mkdirSync(join(home, 'bin'));
  const log = join(home, 'log');
  const fake = `#!/bin/sh\necho "$@" >> '${log}'\n`;
  writeFileSync(join(home, 'bin/systemctl'), fake, { mode: 0o755 });
  const environment = { HOME: home, SVC_DATA_HOME: join(home, 'data') };
  const file = join(home, '.config/systemd/user/svc-local-proxy.service');
  vi.stubEnv('PATH', `${join(home, 'bin')}:${process.env['PATH'] ?? ''}`);
  const { terminal, stderr } = screen();
  // This service manager starts nothing, as one whose service ends at once.
  await expect(installUnit({}, { environment, terminal }, parts)).rejects.toMatchObject({
    message: 'The service is installed, but its proxy does not answer.',
    hint: 'See why: journalctl --user -u svc-local-proxy.service',
  });
  expect(stderr()).not.toContain('svc runs now');
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('ExecStart="/usr/bin/node" "/opt/a b/svc.js" start --quiet');
  expect(text).not.toContain(LOCAL_TOKEN);
  expect(text).not.toContain(PROVIDER_KEY);
  expect(stderr()).toContain('does not see the variables of your shell: $MY_KEY');
  expect(await uninstallUnit({ environment, terminal }, parts)).toBe(0);
  expect(existsSync(file)).toBe(false);
  expect(readFileSync(log, 'utf8').trim().split('\n')).toEqual([
    '--user daemon-reload',
    '--user enable --now svc-local-proxy.service',
    '--user disable --now svc-local-proxy.service',
  ]);
  vi.unstubAllEnvs();
});

test('install says that svc runs when its proxy answers', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: await freePort() } });
  mkdirSync(join(home, 'bin'));
  const start = `'${process.execPath}' '${BIN}' start --quiet >/dev/null 2>&1 &`;
  const fake = `#!/bin/sh\ncase "$*" in *enable*) HOME='${home}' ${start} esac\n`;
  writeFileSync(join(home, 'bin/systemctl'), fake, { mode: 0o755 });
  const environment = { HOME: home, SVC_DATA_HOME: join(home, 'data') };
  vi.stubEnv('PATH', `${join(home, 'bin')}:${process.env['PATH'] ?? ''}`);
  const { terminal, stderr } = screen();
  const waiting = { ...parts, startMs: 20_000 };
  expect(await installUnit({}, { environment, terminal }, waiting)).toBe(0);
  vi.unstubAllEnvs();
  expect(stderr()).toContain('svc runs now');
  expect(await runCli(['stop'], { home })).toMatchObject({ code: 0 });
});

test('without a service manager it says what to do instead', async () => {
  const environment = { HOME: homeWith(validConfig()), SVC_DATA_HOME: tempFolder() };
  const { terminal } = screen();
  vi.stubEnv('PATH', '/nonexistent');
  await expect(installUnit({}, { environment, terminal }, parts)).rejects.toMatchObject({
    hint: expect.stringContaining('svc start --detach'),
  });
  vi.unstubAllEnvs();
  const other = { ...parts, platform: 'win32' };
  await expect(installUnit({}, { environment, terminal }, other)).rejects.toThrow('systemd');
});

test('--print shows the file and does nothing', async () => {
  const environment = { HOME: homeWith(validConfig()) };
  const { terminal, stdout } = screen();
  const mac = { ...parts, platform: 'darwin' };
  expect(await installUnit({ print: true }, { environment, terminal }, mac)).toBe(0);
  expect(stdout()).toContain('<key>ProgramArguments</key>');
  expect(existsSync(join(environment.HOME, 'Library'))).toBe(false);
});

test('R41: the unit keeps the network’s proxy and certificates, never a password', async () => {
  const environment = {
    HOME: homeWith(validConfig()),
    SVC_DATA_HOME: tempFolder(),
    HTTPS_PROXY: 'http://me:SECRET-pass@proxy.example.com:8080',
    NO_PROXY: '127.0.0.1,.example.com',
    NODE_EXTRA_CA_CERTS: '/etc/ssl/company.pem',
  };
  const { terminal, stdout } = screen();
  await installUnit({ print: true }, { environment, terminal }, parts);
  expect(stdout()).toContain('Environment="NODE_EXTRA_CA_CERTS=/etc/ssl/company.pem"');
  expect(stdout()).toContain('Environment="HTTPS_PROXY=http://proxy.example.com:8080"');
  expect(stdout()).toContain('Environment="NO_PROXY=127.0.0.1,.example.com"');
  expect(stdout()).not.toContain('SECRET');
  const log = join(environment.HOME, 'bin');
  mkdirSync(log);
  writeFileSync(join(log, 'systemctl'), '#!/bin/sh\n', { mode: 0o755 });
  vi.stubEnv('PATH', `${log}:${process.env['PATH'] ?? ''}`);
  const installed = screen();
  const installing = installUnit({}, { environment, terminal: installed.terminal }, parts);
  await expect(installing).rejects.toThrow('does not answer');
  vi.unstubAllEnvs();
  expect(installed.stderr()).toMatch(/HTTPS_PROXY contains a user name and password.*chmod 600/s);
  expect(installed.stderr()).not.toContain('SECRET');
});

test('doctor names a service whose Node is gone, as after a change of the version', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const files = {
    linux: join(home, '.config/systemd/user/svc-local-proxy.service'),
    darwin: join(home, 'Library/LaunchAgents/svc-local-proxy.plist'),
  };
  const node = join(home, 'n 1 "100%" $x\\y <&>', 'node');
  const known = { node, script: process.execPath, environment: [] };
  for (const [platform, text] of [
    ['linux', systemdUnit(known)],
    ['darwin', launchdPlist(known)],
  ] as const) {
    mkdirSync(dirname(files[platform]), { recursive: true });
    writeFileSync(files[platform], text);
    const found = await unitPrograms({ HOME: home }, { ...parts, platform });
    expect(found).toEqual({ file: files[platform], programs: [node, process.execPath] });
  }
  const doctor = async () => (await runHere(['doctor', '--offline', '--json'], { home })).stdout;
  const isHere = process.platform === 'linux' || process.platform === 'darwin';
  const service = async () =>
    (JSON.parse(await doctor()) as { checks: { subject: string; level: string }[] }).checks.find(
      ({ subject }) => subject === 'Service',
    );
  if (!isHere) return;
  expect(await service()).toMatchObject({
    level: 'problem',
    found: expect.stringContaining(node),
    fix: expect.stringContaining('svc start --at-login'),
  });
  mkdirSync(dirname(node));
  writeFileSync(node, '');
  expect(await service()).toMatchObject({ level: 'ok' });
});
