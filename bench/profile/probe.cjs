/**
 * Loaded into every thread of the measured process. SIGUSR2 starts a CPU profile of all threads, and
 * ends it the next time: each thread then writes its own into SVC_PROFILE_FOLDER.
 */
const { Session } = require('node:inspector');
const { writeFileSync } = require('node:fs');
const threads = require('node:worker_threads');

const given = process.env['SVC_PROFILE_FOLDER'] ?? threads.getEnvironmentData('profile folder');
const FOLDER = typeof given === 'string' ? given : '.';
/** Short enough for a request of one millisecond; V8 takes about 3 us for a sample. */
const INTERVAL_US = 200;

const session = new Session();
session.connect();

function toggle(isOn) {
  if (isOn) {
    session.post('Profiler.enable');
    session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
    session.post('Profiler.start');
    return;
  }
  session.post('Profiler.stop', (error, result) => {
    if (error !== null) return;
    const name = threads.isMainThread ? 'main' : `thread-${threads.threadId}`;
    writeFileSync(`${FOLDER}/${name}.cpuprofile`, JSON.stringify(result.profile));
  });
}

const channel = new threads.BroadcastChannel('svc profile');
channel.addEventListener('message', ({ data }) => toggle(data));
channel.unref();

if (threads.isMainThread) {
  threads.setEnvironmentData('profile folder', FOLDER);
  let isOn = false;
  process.on('SIGUSR2', () => {
    isOn = !isOn;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- That is a window's.
    channel.postMessage(isOn);
    toggle(isOn);
  });
  // The product starts its threads with flags of their own, and so without this file.
  threads.Worker = class extends threads.Worker {
    constructor(file, options = {}) {
      const execArgv = [...(options.execArgv ?? []), '--require', __filename];
      super(file, { ...options, execArgv });
    }
  };
}
