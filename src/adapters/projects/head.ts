import { join } from 'node:path';
import { readBounded } from './bounded-read.ts';

/** Reads which branch and commit a working tree has checked out. */

export interface Head {
  /** Undefined for a detached head. */
  readonly branch: string | undefined;
  /** '' before the first commit. */
  readonly commit: string;
}

/** Where a working tree keeps its own HEAD, and where its repository keeps the branches. */
export interface HeadPlace {
  readonly own: string;
  readonly common: string;
}

const REF_BYTES_MAX = 1024;
const PACKED_BYTES_MAX = 256 * 1024;
export const COMMIT_HASH = /\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b/g;
const REF = /^ref: (refs\/[^\s\p{Cc}\p{Cf}<>]{1,250})\s*$/u;
const BRANCHES = 'refs/heads/';

export async function readHead({ own, common }: HeadPlace): Promise<Head> {
  const head = await readBounded(join(own, 'HEAD'), REF_BYTES_MAX);
  const ref = REF.exec(head)?.[1];
  if (ref === undefined) return { branch: undefined, commit: firstHash(head) };
  if (ref.includes('..')) return { branch: undefined, commit: '' };
  const branch = ref.startsWith(BRANCHES) ? ref.slice(BRANCHES.length) : undefined;
  const loose = await hashIn(join(common, ref));
  return { branch, commit: loose === '' ? await packedHash(common, ref) : loose };
}

/** The hash in the file of a branch or a tag. */
export async function hashIn(path: string): Promise<string> {
  return firstHash(await readBounded(path, REF_BYTES_MAX));
}

export function readPacked(common: string): Promise<string> {
  return readBounded(join(common, 'packed-refs'), PACKED_BYTES_MAX);
}

async function packedHash(common: string, ref: string): Promise<string> {
  const packed = await readPacked(common);
  return firstHash(packed.split('\n').find((line) => line.endsWith(` ${ref}`)) ?? '');
}

function firstHash(text: string): string {
  return text.match(COMMIT_HASH)?.[0] ?? '';
}
