/**
 * Remembers the last body of each conversation, so that the next one is read from where it differs.
 *
 * A cache and nothing more: whatever is forgotten here is read again, with the same result.
 */
import { commonPrefix } from '../core/bytes/common-prefix.ts';
import type { Dialect, RequestView } from '../core/conversation/view.ts';
import { finish, type Steps } from '../core/bytes/steps.ts';
import { type ItemForm, PLAIN_FORM } from '../core/dialects/descriptor.ts';
import { type Earlier, isReadAs, type ReadAs, viewSteps } from '../core/request/request-view.ts';
import { ConversationStates } from './conversation-state.ts';

// One person’s agents at work side by side, sub-agents included. Every view is looked at for every
// request, so more of them also cost more.
const VIEWS_MAX = 16;

// A conversation close to a window of 200,000 tokens is about 1 MB: the limit holds all 16 of them
// at 1.5 MB. The facts read of a body take memory besides; idle, the whole process stays within 110
// MB.
const BYTES_MAX = 24 * 1024 * 1024;

export class Conversations {
  readonly states = new ConversationStates();
  /** The newest first. */
  #views: readonly RequestView[] = [];

  /** An estimate of the memory that is remembered here. */
  get bytes(): number {
    return this.#views.reduce((sum, view) => sum + heldBytes(view), this.states.bytes);
  }

  /** Forgets everything. */
  clear(): void {
    this.#views = [];
    this.states.clear();
  }

  /** The view of a decoded body; undefined when viewRequest() in core/request/request-view.ts cannot read it. */
  view(bytes: Buffer, dialect: Dialect, form: ItemForm = PLAIN_FORM): RequestView | undefined {
    const view = finish(this.viewSteps(bytes, { dialect, form }));
    return view === 'too_large' ? undefined : view;
  }

  /** The same in steps, between which other requests may be served. */
  *viewSteps(bytes: Buffer, as: ReadAs): Steps<RequestView | 'too_large' | undefined> {
    const nearest = this.#nearest(bytes, as);
    const view = yield* viewSteps(bytes, as, nearest);
    if (view !== undefined && view !== 'too_large') this.#keep(view, nearest?.previous);
    return view;
  }

  #nearest(bytes: Buffer, as: ReadAs): Earlier | undefined {
    let nearest: Earlier | undefined;
    for (const previous of this.#views) {
      const least = nearest?.shared ?? 0;
      if (!isReadAs(previous, as) || !agreeAt(least, previous.bytes, bytes)) continue;
      const shared = commonPrefix(previous.bytes, bytes);
      if (shared > least) nearest = { previous, shared };
    }
    return nearest;
  }

  #keep(view: RequestView, nearest: RequestView | undefined): void {
    if (view.bytes.length > BYTES_MAX) return;
    const replaced = nearest !== undefined && continues(view, nearest) ? nearest : undefined;
    const views = [view];
    let bytes = view.bytes.length;
    for (const other of this.#views) {
      if (other === replaced) continue;
      bytes += other.bytes.length;
      if (views.length === VIEWS_MAX || bytes > BYTES_MAX) break;
      views.push(other);
    }
    this.#views = views;
  }
}

/** Measured: the facts that svc reads of an item take so much beside its bytes, with texts of 2 kB. */
const FACT_BYTES = 1_600;

/** The memory that a view takes, with the facts that are read of its items. */
export function heldBytes({ bytes, items }: RequestView): number {
  return bytes.length + items.length * FACT_BYTES;
}

// Two texts that differ are hardly ever alike for so long at the same place.
const PROBE_BYTES = 64;

/**
 * A cheap test before megabytes are compared: bodies that share more than `at` bytes agree at `at`
 * too. A conversation that is continued, forked and worked on by sub-agents has many views that
 * begin alike.
 */
function agreeAt(at: number, one: Buffer, other: Buffer): boolean {
  const end = Math.min(at + PROBE_BYTES, one.length, other.length);
  return at < end && one.compare(other, at, end, at, end) === 0;
}

// A step adds a call and its results, and a client may take the last one back or mark it again.
const UNSETTLED_ITEMS = 4;

/**
 * Whether the earlier view is of no more use. Its last items may have changed, Claude Code moves a
 * mark in there. A sub-agent shares no more than the beginning with its parent, and must not push it
 * out.
 */
function continues(view: RequestView, earlier: RequestView): boolean {
  const settled = Math.max(0, earlier.items.length - UNSETTLED_ITEMS);
  return view.items[settled] === earlier.items[settled];
}
