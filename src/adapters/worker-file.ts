/**
 * Where a worker's built file is. Workers are entries of the bundle and lie beside its chunks; from
 * the sources (tests) they are taken from the last build.
 */
export function workerFile(name: string): URL {
  const isSource = import.meta.url.endsWith('.ts');
  return new URL(isSource ? `../../dist/${name}.js` : `./${name}.js`, import.meta.url);
}
