/**
 * require() with V8's code cache: compiling half a megabyte of JavaScript is a fifth of the CPU of a
 * start. Node has this as module.enableCompileCache() from 22.1 on only, and puts it into a folder
 * that all users share. Here the cache lies beside the file that it was made from, so that whoever
 * could change the one could change the other too; where that folder cannot be written there is none.
 */
const { createHash } = require('node:crypto');
const { readFileSync, renameSync, rmSync, writeFileSync } = require('node:fs');
const { createRequire, wrapper } = require('node:module');
const { dirname } = require('node:path');
const { Script } = require('node:vm');

/** More code than that beside the cached code is worth a new cache. */
const WORTH_SHARE = 0.05;

/**
 * `exports`: of the CommonJS file, which must not use import(). `save()`: writes what was compiled so far, if none of it
 * came from the cache. `saveMore()`: also where the cache has clearly less of it. Both take some 20 ms and never throw.
 */
exports.requireCached = function requireCached(file) {
  const cache = `${file}.cache`;
  const source = readFileSync(file);
  const cachedData = read(cache, source);
  // As bytes: V8 would copy a text that is put together once more.
  const wrapped = Buffer.concat([Buffer.from(wrapper[0]), source, Buffer.from(wrapper[1])]);
  const script = new Script(wrapped.toString('utf8'), {
    filename: file,
    // V8 refuses what another version of it made.
    ...(cachedData !== undefined && { cachedData }),
  });
  const isCached = cachedData !== undefined && script.cachedDataRejected !== true;
  const module = { exports: {} };
  const run = script.runInThisContext();
  run.call(module.exports, module.exports, createRequire(file), module, file, dirname(file));
  let cachedBytes = isCached ? cachedData.length : 0;
  const saveMore = () => {
    const code = script.createCachedData();
    if (code.length <= cachedBytes * (1 + WORTH_SHARE)) return;
    write(cache, source, code);
    cachedBytes = code.length;
  };
  const save = () => {
    if (cachedBytes === 0) saveMore();
  };
  return { exports: module.exports, isCached, save, saveMore };
};

const DIGEST_BYTES = 32;

/**
 * Undefined unless it is whole and of this very source: V8 would run what a bad disk made of it, and
 * tells sources apart by their length alone. Times say nothing: package managers unpack files of 1985,
 * and copy a new version over an old one.
 */
function read(cache, source) {
  try {
    const bytes = readFileSync(cache);
    const data = bytes.subarray(DIGEST_BYTES);
    return digestOf(source, data).equals(bytes.subarray(0, DIGEST_BYTES)) ? data : undefined;
  } catch {
    return undefined;
  }
}

/** Whole or not at all: two processes may do so at once, and each may be killed. */
function write(cache, source, code) {
  const draft = `${cache}.${process.pid}`;
  try {
    const whole = Buffer.concat([digestOf(source, code), code]);
    writeFileSync(draft, whole, { mode: 0o600, flag: 'wx' });
    renameSync(draft, cache);
  } catch {
    remove(draft);
  }
}

function remove(draft) {
  try {
    rmSync(draft, { force: true });
  } catch {
    // Another user's, of the same process number, in a folder that is not ours.
  }
}

function digestOf(...parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
}
