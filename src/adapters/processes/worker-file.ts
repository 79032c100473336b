/**
 * Returns the compiled file of a worker thread, which is in dist/quick for all bundles. If svc runs from source, the
 * file is in the folder `built`, because a worker thread cannot load TypeScript.
 */
export function workerFile(name: string, built = 'dist'): URL {
  // The bundler recognises `import.meta.url` only in this form.
  const url = import.meta.url;
  if (url.endsWith('.ts')) return new URL(`../../../${built}/quick/${name}.cjs`, url);
  return new URL(`./${url.endsWith('.cjs') ? '' : 'quick/'}${name}.cjs`, url);
}
