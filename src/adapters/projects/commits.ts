import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { bytesAt, kindOf, readBounded, withFile } from './bounded-read.ts';
import { COMMIT_HASH, hashIn, readHead, readPacked } from './head.ts';

/** Which commits a repository holds, read from its refs, logs and objects. */

const NO_COMMIT = /^0+$/;
const LOG_BYTES_MAX = 64 * 1024;
/** Branches whose own files are read; the others are packed, or recorded another time. */
const REFS_MAX = 64;
const PACKS_MAX = 256;
const COMMITS_MAX = 512;

/** The newest last: what HEAD names. Empty for a repository without a commit. */
export async function commitsOf(common: string): Promise<readonly string[]> {
  const packed = await readPacked(common);
  const log = await readBounded(join(common, 'logs', 'HEAD'), LOG_BYTES_MAX);
  const refs = await Promise.all((await refFiles(common)).map(hashIn));
  const { commit } = await readHead({ own: common, common });
  const found = [...hashes(packed), ...refs, ...hashes(log), commit];
  const commits = [...new Set(found.toReversed())].filter((one) => one !== '').toReversed();
  return commits.slice(-COMMITS_MAX);
}

/** True when one of these commits is in the repository's refs, logs or objects. */
export async function holdsAny(common: string, wanted: readonly string[]): Promise<boolean> {
  const known = new Set(await commitsOf(common));
  if (wanted.some((commit) => known.has(commit))) return true;
  for (const commit of wanted) {
    const loose = join(common, 'objects', commit.slice(0, 2), commit.slice(2));
    if ((await kindOf(loose)) === 'file') return true;
  }
  const folder = join(common, 'objects', 'pack');
  const names = await readdir(folder).catch(() => []);
  const indexes = names.filter((name) => /^pack-[0-9a-f]+\.idx$/.test(name)).slice(0, PACKS_MAX);
  for (const name of indexes) {
    if (await packHolds(join(folder, name), wanted)) return true;
  }
  return false;
}

function hashes(text: string): readonly string[] {
  return (text.match(COMMIT_HASH) ?? []).filter((hash) => !NO_COMMIT.test(hash));
}

async function refFiles(common: string): Promise<readonly string[]> {
  const folders = ['refs/heads', 'refs/remotes/origin', 'refs/tags'];
  const files = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(join(common, folder), { withFileTypes: true }).catch(() => []);
      return names.filter((one) => one.isFile()).map(({ name }) => join(common, folder, name));
    }),
  );
  return files.flat().slice(0, REFS_MAX);
}

const INDEX_MAGIC = 0xff744f63;
const FANOUT_BYTES = 8;
const TABLE_BYTES = FANOUT_BYTES + 256 * 4;
const HASH_BYTES = 20;

/** Version 2 of a pack's index, with SHA-1: the table of names is sorted, so it is searched by halves. */
async function packHolds(path: string, wanted: readonly string[]): Promise<boolean> {
  const found = await withFile(path, async (file) => {
    const head = await bytesAt(file, 0, TABLE_BYTES);
    if (head.length < TABLE_BYTES || head.readUInt32BE(0) !== INDEX_MAGIC) return false;
    for (const commit of wanted) {
      const hash = Buffer.from(commit, 'hex');
      if (hash.length !== HASH_BYTES) continue;
      const first = hash[0] ?? 0;
      let low = first === 0 ? 0 : head.readUInt32BE(FANOUT_BYTES + (first - 1) * 4);
      let high = head.readUInt32BE(FANOUT_BYTES + first * 4);
      while (low < high) {
        const middle = (low + high) >>> 1;
        const name = await bytesAt(file, TABLE_BYTES + middle * HASH_BYTES, HASH_BYTES);
        if (name.length < HASH_BYTES) return false;
        const order = name.compare(hash);
        if (order === 0) return true;
        if (order < 0) low = middle + 1;
        else high = middle;
      }
    }
    return false;
  });
  return found === true;
}
