/** Starts, pins, watches and stops the processes that are measured. CPU and memory come from /proc. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, openSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import { now, sleep, within } from './clock.mjs';

/** The driver and the provider share a core, so that what is measured has the other one to itself. */
const DRIVER_CORE = '0';
const TARGET_CORE = '1';

/** A process that does not go after SIGTERM is killed; ours drain in less. */
const STOP_MS = 3000;

const RAISED_PRIORITY = -15;
const AUTOGROUP = '/proc/self/autogroup';

export const isPinned = os.cpus().length > 1 && canPin();

function canPin() {
  try {
    execFileSync('taskset', ['-c', '0', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export function pinDriver() {
  if (isPinned)
    execFileSync('taskset', ['-a', '-cp', DRIVER_CORE, String(process.pid)], { stdio: 'ignore' });
}

/** What is measured in this process and in those that it starts from now on has all cores. */
export function unpinDriver() {
  if (!isPinned) return;
  const cores = `0-${os.cpus().length - 1}`;
  execFileSync('taskset', ['-a', '-cp', cores, String(process.pid)], { stdio: 'ignore' });
}

/**
 * As root, on a machine that others use: the run and what it starts go first. Where sessions are
 * scheduled as groups, only the group's own priority counts against other sessions.
 */
export function raisePriority() {
  os.setPriority(0, RAISED_PRIORITY);
  if (existsSync(AUTOGROUP)) writeFileSync(AUTOGROUP, String(RAISED_PRIORITY));
}

/** Options: role 'driver' | 'target', env, folder (working directory), log (path). */
export function startProcess(command, args, { role, env = {}, folder, log }) {
  const core = role === 'target' ? TARGET_CORE : DRIVER_CORE;
  const [file, ...rest] = isPinned ? ['taskset', '-c', core, command, ...args] : [command, ...args];
  const output = openSync(log, 'a');
  // A bundle of extra CAs costs every Node process some 40 ms at start, ours and theirs.
  const { NODE_EXTRA_CA_CERTS: _, ...inherited } = process.env;
  const startedAt = now();
  const child = spawn(file, rest, {
    stdio: ['ignore', output, output],
    cwd: folder,
    env: { ...inherited, ...env },
  });
  const started = { pid: child.pid, startedAt, isDead: false, child };
  started.exited = new Promise((resolve) => {
    const end = () => {
      started.isDead = true;
      resolve();
    };
    child.once('exit', end);
    child.once('error', end);
  });
  return started;
}

export async function stopProcess(started) {
  if (started === undefined || started.isDead) return;
  const pids = withDescendants(started.pid);
  started.child.kill('SIGTERM');
  await within(STOP_MS, started.exited);
  if (started.isDead) return;
  for (const pid of pids) killIfAlive(pid);
  await started.exited;
}

function killIfAlive(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It went by itself, which is what we wanted.
  }
}

export async function waitForPort({ host, port }, started, ms = 20_000) {
  const until = now() + ms;
  while (now() < until && !started.isDead) {
    if (await isPortOpen({ host, port })) return true;
    await sleep(20);
  }
  return false;
}

/** A port that nobody listens on; the system does not hand it out again soon. */
export function findFreePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export function isPortOpen({ host, port }) {
  return new Promise((resolve) => {
    const socket = net.connect(port, host);
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** On-CPU milliseconds of all threads of a process and its descendants. */
export function cpuMsOf(pid) {
  const nanoseconds = withDescendants(pid).flatMap((it) =>
    taskFiles(it, 'schedstat').map((text) => Number(text.split(' ')[0])),
  );
  return nanoseconds.reduce((sum, it) => sum + it, 0) / 1e6;
}

/** On-CPU milliseconds of each thread of a process, the main one first. */
export function threadCpuMsOf(pid) {
  return readdirSync(`/proc/${pid}/task`).map((task) => {
    const [nanoseconds = 0] = readIfThere(`/proc/${pid}/task/${task}/schedstat`).split(' ');
    return { task: Number(task), ms: Number(nanoseconds) / 1e6 };
  });
}

/** Resident megabytes of a process and its descendants. */
export function residentMbOf(pid) {
  const kilobytes = withDescendants(pid).map((it) =>
    Number(/VmRSS:\s+(\d+)/.exec(readIfThere(`/proc/${it}/status`))?.[1] ?? 0),
  );
  return kilobytes.reduce((sum, it) => sum + it, 0) / 1024;
}

function withDescendants(pid) {
  const children = taskFiles(pid, 'children').flatMap((text) =>
    text.trim().split(/\s+/).filter(Boolean),
  );
  return [pid, ...children.flatMap((child) => withDescendants(Number(child)))];
}

function taskFiles(pid, name) {
  try {
    return readdirSync(`/proc/${pid}/task`).map((task) =>
      readIfThere(`/proc/${pid}/task/${task}/${name}`),
    );
  } catch {
    // The process ended while we were looking.
    return [];
  }
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
