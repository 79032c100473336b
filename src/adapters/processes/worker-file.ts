/**
 * Where a worker's built file is: beside the file that asks, in the same format. From source it is
 * the one of dist: a worker thread cannot load TypeScript.
 */
export function workerFile(name: string): URL {
  // In full: the bundler knows it by this form only.
  const url = import.meta.url;
  if (url.endsWith('.ts')) return new URL(`../../../dist/quick/${name}.cjs`, url);
  return new URL(`./${name}.${url.endsWith('.cjs') ? 'cjs' : 'js'}`, url);
}
