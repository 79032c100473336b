#!/usr/bin/env node
// This file is CommonJS, by the package.json beside it.
// An old Node must be able to parse this file, so that it can say which Node is needed.
const { homedir } = require('node:os');
const { join } = require('node:path');

/** The oldest Node that svc-service runs on; package.json says the same in `engines`. */
const NODE_MIN = [20, 18, 1];

async function main() {
  setHome();
  if (isOld(process.versions.node)) {
    const needed = NODE_MIN.join('.');
    process.stderr.write(
      `svc-service needs Node ${needed} or newer, and this is Node ${process.versions.node}. Install a newer one from https://nodejs.org\n`,
    );
    process.exitCode = 1;
    return;
  }
  const { run } = await import('../dist/main.js');
  process.exitCode = await run(process.argv.slice(2));
}

/** Sets HOME for a user without a name, as a container may have: to `/`, as Docker does. Without it Node throws. */
function setHome() {
  try {
    homedir();
  } catch {
    process.env.HOME = '/';
  }
}

function isOld(version) {
  const parts = version.split('.').map(Number);
  const at = parts.findIndex((part, index) => part !== NODE_MIN[index]);
  return at !== -1 && parts[at] < NODE_MIN[at];
}

main().catch((error) => {
  const where = join(__dirname, '..');
  const isUnbuilt = error.code === 'ERR_MODULE_NOT_FOUND';
  if (!isUnbuilt || !String(error.message).includes(join(where, 'dist'))) throw error;
  process.stderr.write(
    `svc-service: its program files are not complete. Try again in a moment, or build them: npm run build (in ${where})\n`,
  );
  process.exitCode = 1;
});
