/** Reads V8's CPU profiles: which function and which module took the time of a thread. */
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Frames of V8 itself. Waiting is not work. */
const IDLE = new Set(['(idle)', '(root)']);

/**
 * { busyMs, functions, modules }: each list has { name, selfMs, wholeMs }, `wholeMs` with all that it
 * called. `root`: source files are named from there.
 */
export function readSamples(profile, root) {
  const names = new Names(root);
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map();
  for (const { id, children = [] } of profile.nodes) {
    for (const child of children) parents.set(child, id);
  }
  const selfUs = new Map();
  profile.samples.forEach((id, at) => {
    // A delta is the time before its sample.
    const us = Math.max(0, profile.timeDeltas[at + 1] ?? 0);
    selfUs.set(id, (selfUs.get(id) ?? 0) + us);
  });
  const functions = new Totals();
  const modules = new Totals();
  let busyUs = 0;
  for (const [id, us] of selfUs) {
    if (IDLE.has(nodes.get(id).callFrame.functionName)) continue;
    busyUs += us;
    const stack = [];
    for (let at = id; at !== undefined; at = parents.get(at)) {
      if (!IDLE.has(nodes.get(at).callFrame.functionName)) stack.push(names.of(nodes.get(at)));
    }
    functions.add(
      stack.map(({ fn, module }) => (module === '' ? fn : `${fn}  ${module}`)),
      us,
    );
    modules.add(
      stack.map(({ fn, module }) => module || fn),
      us,
    );
  }
  return { busyMs: busyUs / 1000, functions: functions.list(), modules: modules.list() };
}

class Totals {
  #self = new Map();
  #whole = new Map();

  add(stack, us) {
    this.#self.set(stack[0], (this.#self.get(stack[0]) ?? 0) + us);
    for (const name of new Set(stack)) this.#whole.set(name, (this.#whole.get(name) ?? 0) + us);
  }

  list() {
    return [...this.#whole].map(([name, us]) => ({
      name,
      selfMs: (this.#self.get(name) ?? 0) / 1000,
      wholeMs: us / 1000,
    }));
  }
}

/** The source's own names of what the bundle holds. */
class Names {
  #root;
  #maps = new Map();

  constructor(root) {
    this.#root = root;
  }

  of({ callFrame }) {
    const { functionName, url, lineNumber, columnNumber } = callFrame;
    const fn = functionName || '(anonymous)';
    if (url === '') return { fn, module: '' };
    if (url.startsWith('node:')) return { fn, module: url };
    const file = url.startsWith('file:') ? fileURLToPath(url) : url;
    const map = this.#mapOf(file);
    // The code cache wraps the first line into a function.
    const found = map?.findEntry(lineNumber, columnNumber);
    if (found?.originalSource === undefined) return { fn, module: relative(this.#root, file) };
    const module = found.originalSource
      .replace(/^(?:\.\.\/)+/, '')
      .replace(/^.*node_modules\//, '');
    return { fn: `${fn}:${found.originalLine + 1}`, module };
  }

  #mapOf(file) {
    if (!this.#maps.has(file)) {
      const path = `${file}.map`;
      const map = existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : null;
      this.#maps.set(file, map);
    }
    return this.#maps.get(file) ?? undefined;
  }
}
