/**
 * Remembers the last body of each conversation, so that the next one is read from where it differs.
 *
 * A cache and nothing more: whatever is forgotten here is read again, with the same result.
 */
import { commonPrefix } from '../core/common-prefix.ts';
import type { Dialect } from '../core/dialect.ts';
import { type Earlier, viewFrom } from '../core/request-view.ts';
import type { RequestView } from '../core/view.ts';

// One person's agents at work side by side, sub-agents included. Every view is compared with every
// request, so more of them also cost more.
const VIEWS_MAX = 16;

// A conversation close to a window of 200,000 tokens is about 1 MB: that is all 16 of them at 1.5 MB.
// What was read of a body takes memory besides; idle, the whole process stays within 110 MB.
const BYTES_MAX = 24 * 1024 * 1024;

export class Conversations {
  /** The newest first. */
  #views: readonly RequestView[] = [];

  /** The view of a decoded body; undefined when viewRequest() in core/request-view.ts cannot read it. */
  view(bytes: Buffer, dialect: Dialect): RequestView | undefined {
    const nearest = this.#nearest(bytes, dialect);
    const view = viewFrom(bytes, dialect, nearest);
    if (view !== undefined) this.#keep(view, nearest?.previous);
    return view;
  }

  #nearest(bytes: Buffer, dialect: Dialect): Earlier | undefined {
    let nearest: Earlier | undefined;
    for (const previous of this.#views) {
      const shared = previous.dialect === dialect ? commonPrefix(previous.bytes, bytes) : 0;
      if (shared > (nearest?.shared ?? 0)) nearest = { previous, shared };
      // The newest that shares nearly all of itself is the one: comparing on would read megabytes.
      if (shared > settledEnd(previous)) break;
    }
    return nearest;
  }

  #keep(view: RequestView, nearest: RequestView | undefined): void {
    if (view.bytes.length > BYTES_MAX) return;
    const isReplaced = nearest !== undefined && continues(view, nearest);
    const others = isReplaced ? this.#views.filter((other) => other !== nearest) : this.#views;
    let bytes = 0;
    this.#views = [view, ...others].slice(0, VIEWS_MAX).filter((kept) => {
      bytes += kept.bytes.length;
      return bytes <= BYTES_MAX;
    });
  }
}

// A step adds a call and its results, and a client may take the last one back or mark it anew.
const UNSETTLED_ITEMS = 4;

/** Where the part of a conversation ends that its next request surely holds. */
function settledEnd(view: RequestView): number {
  return view.items.at(-UNSETTLED_ITEMS)?.start ?? view.list.end;
}

/**
 * Whether the earlier view is of no more use. Its last items may have changed, Claude Code moves a
 * mark in there. A sub-agent shares no more than the beginning with its parent, and must not push it
 * out.
 */
function continues(view: RequestView, earlier: RequestView): boolean {
  const settled = Math.max(0, earlier.items.length - UNSETTLED_ITEMS);
  return view.items[settled] === earlier.items[settled];
}
