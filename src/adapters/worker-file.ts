/**
 * Where a worker's built file is. Workers run from dist even when the rest runs from source: a
 * worker thread cannot load TypeScript.
 */
export function workerFile(name: string): URL {
  const isSource = import.meta.url.endsWith('.ts');
  return new URL(isSource ? `../../dist/${name}.js` : `./${name}.js`, import.meta.url);
}
