/**
 * Returns the built file of a worker, which all bundles share: dist/quick. From source it is the same file, in the
 * folder `built`, because a worker thread cannot load TypeScript.
 */
export function workerFile(name: string, built = 'dist'): URL {
  // Keep this form: the bundler recognises no other.
  const url = import.meta.url;
  if (url.endsWith('.ts')) return new URL(`../../../${built}/quick/${name}.cjs`, url);
  return new URL(`./${url.endsWith('.cjs') ? '' : 'quick/'}${name}.cjs`, url);
}
