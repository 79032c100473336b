import type { InjectionEntry } from './injections.ts';
import type { ToolOutput } from './outputs.ts';
import type { Item, RequestView } from './view.ts';

/**
 * Remembers batches, so that what was left out once stays left out: in the next request, after a
 * restart, in a fork, in a resumed session. A batch belongs to the conversation up to the item at
 * which it was made. A request that does not hold this item, because the person went back before it,
 * is as it was before the batch.
 */

/** In shadow nothing is left out, so what would be is remembered apart. */
export type ElisionKind = 'real' | 'shadow';

// The conversation at the newest item; and at the one before, in case the client rewrites its last
// message in the next request.
const ANCHORS = 2;
// 72 random bits: two outputs of one conversation never share them, and the text is proven anyway.
const DIGEST_CHARS = 12;

/**
 * One key that says whether conversations that begin like this one have batches at all: most have
 * none, and are not looked up item by item. Undefined when nobody said anything yet.
 */
export function elisionMark(
  view: RequestView,
  space: string,
  kind: ElisionKind,
): string | undefined {
  const first = view.items.find(isAnchor);
  return first === undefined ? undefined : `m${keyOf(first.fingerprint, space, kind)}`;
}

/** The keys under which batches of this conversation may be known. */
export function elisionKeys(
  view: RequestView,
  space: string,
  kind: ElisionKind,
): readonly string[] {
  return anchorsOf(view).map((fingerprint) => keyOf(fingerprint, space, kind));
}

/** The outputs that these entries left out. */
export function repeatedOutputs(
  outputs: readonly ToolOutput[],
  entries: Iterable<InjectionEntry>,
): ReadonlySet<ToolOutput> {
  const repeated = new Set<ToolOutput>();
  for (const { block } of entries) {
    const [before = '', ...digests] = block.split(' ');
    const known = new Set(digests);
    for (const output of outputs) {
      const isIn = output.item < Number(before) && known.has(shortDigest(output));
      if (isIn) repeated.add(output);
    }
  }
  return repeated;
}

/** What the ledger keeps of a batch. */
export function elisionEntries(
  batch: readonly ToolOutput[],
  place: { readonly view: RequestView; readonly space: string; readonly kind: ElisionKind },
  at: number,
): readonly InjectionEntry[] {
  // Two outputs may say the same: those behind the last one of the batch are not in it.
  const before = Math.max(...batch.map(({ item }) => item)) + 1;
  const block = [String(before), ...batch.map(shortDigest)].join(' ');
  const { view, space, kind } = place;
  const other = { form: 'text', dropsEarlier: false, at } as const;
  const mark = elisionMark(view, space, kind);
  return [
    ...(mark === undefined ? [] : [{ key: mark, block: '', ...other }]),
    ...anchorsOf(view)
      .slice(-ANCHORS)
      .map((fingerprint) => ({ key: keyOf(fingerprint, space, kind), block, ...other })),
  ];
}

/** What ends a request: a person's message or a tool's answer. Never a mark or note of the client. */
function isAnchor({ humanText, toolResultIds }: Item): boolean {
  return humanText !== '' || toolResultIds.length > 0;
}

function anchorsOf({ items }: RequestView): readonly string[] {
  return items.filter(isAnchor).map(({ fingerprint }) => fingerprint);
}

function keyOf(fingerprint: string, space: string, kind: ElisionKind): string {
  return `${kind === 'real' ? 'x' : 'y'}:${fingerprint}:${space}`;
}

function shortDigest({ digest }: ToolOutput): string {
  return digest.slice(0, DIGEST_CHARS);
}
