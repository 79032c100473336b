/**
 * Where a worker's built file is: in dist/quick, one for all bundles. From source it is the same one, in the folder
 * `built`: a worker thread cannot load TypeScript.
 */
export function workerFile(name: string, built = 'dist'): URL {
  // In full: the bundler knows it by this form only.
  const url = import.meta.url;
  if (url.endsWith('.ts')) return new URL(`../../../${built}/quick/${name}.cjs`, url);
  return new URL(`./${url.endsWith('.cjs') ? '' : 'quick/'}${name}.cjs`, url);
}
