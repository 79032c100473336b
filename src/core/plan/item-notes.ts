import type { Placement } from '../recall/injections.ts';
import { referenceOf } from '../memory/reference.ts';
import { isOmitted } from '../shortening/omissions.ts';
import type { Shortening } from './plan.ts';
import type { ItemRole, RequestView } from '../conversation/view.ts';

/**
 * Notes about the items for the request log: their kind, their size, their edit, and references to texts that svc
 * removed or added. Of the request's text they contain only names of tools, and their number is bounded.
 */
export interface ItemNote {
  /**
   * 'same': sent unchanged. 'stub': an output that a stub replaced. 'left_out': whole exchanges. 'block': recalled
   * text that svc added to an item.
   */
  readonly edit: 'same' | 'stub' | 'left_out' | 'block';
  /** The number of items or outputs; 0 for everything outside the list of items: system prompt, tools, settings. */
  readonly count: number;
  /** Estimated tokens as the client sent them. */
  readonly tokens: number;
  /** Estimated tokens as svc sent them, if the number differs. */
  readonly after?: number;
  /** The role of a single item, or `prompt` for the user's newest message. */
  readonly kind?: ItemRole | 'prompt';
  /** The name of the tool whose output a stub replaced. */
  readonly tool?: string;
  /** References of the left-out texts; for a block, the fingerprint of its item. */
  readonly refs?: readonly string[];
}

export interface NoteFacts {
  readonly view: RequestView;
  readonly placements: readonly Placement[];
  readonly shortening: Shortening;
}

/**
 * Bound on the edits with a note of their own. Older ones are merged, so that a row of the log has a few kB, and about
 * 10 kB with long names of tools.
 */
const EDITS_MAX = 40;
const REFS_MAX = 8;
const TOOL_CHARS_MAX = 64;

/** Returns the notes in the order of the request. */
export function itemNotes(facts: NoteFacts): readonly ItemNote[] {
  const { view } = facts;
  const edits = editsByItem(facts);
  const all = [...edits.values()].reduce((sum, notes) => sum + notes.length, 0);
  const writer = new NoteWriter(Math.max(0, all - EDITS_MAX));
  writer.add({ edit: 'same', count: 0, tokens: view.shell.tokens });
  const prompt = view.items.at(-1)?.soFar.humans?.index;
  for (const [index, item] of view.items.entries()) {
    const notes = edits.get(index) ?? [];
    const isGone = isOmitted(item, facts.shortening.omitted);
    const changed = notes.reduce((sum, note) => sum + (note.edit === 'stub' ? note.tokens : 0), 0);
    const tokens = Math.max(0, item.tokens - changed);
    const isOnlyOutputs = notes.some(({ edit }) => edit === 'stub') && tokens < SHELL_TOKENS_MAX;
    if (!isGone && !isOnlyOutputs)
      writer.add({ edit: 'same', count: 1, tokens, kind: index === prompt ? 'prompt' : item.role });
    for (const note of notes) writer.add(note);
  }
  return writer.notes;
}

/**
 * Bound on the tokens of the names and braces around an output. If stubs replaced outputs of an item, and the rest of
 * the item has fewer tokens than this, the rest gets no note.
 */
const SHELL_TOKENS_MAX = 40;

function editsByItem({ view, placements, shortening }: NoteFacts): Map<number, ItemNote[]> {
  const byItem = new Map<number, ItemNote[]>();
  const add = (index: number, note: ItemNote): void => {
    const notes = byItem.get(index) ?? [];
    notes.push(note);
    byItem.set(index, notes);
  };
  for (const { output, saved } of shortening.elided) {
    const { tokens, digest, tool } = output;
    add(output.item, {
      edit: 'stub',
      count: 1,
      tokens,
      after: Math.max(0, tokens - saved),
      kind: 'tool',
      ...(tool === '' ? {} : { tool: tool.slice(0, TOOL_CHARS_MAX) }),
      refs: [referenceOf(digest)],
    });
  }
  if (shortening.omitted.length > 0) {
    const starts = new Map(view.items.map(({ start }, index) => [start, index]));
    for (const { span, texts, items, tokens } of shortening.omitted) {
      const refs = texts.map(({ digest }) => referenceOf(digest)).slice(0, REFS_MAX);
      add(starts.get(span.start) ?? 0, { edit: 'left_out', count: items, tokens, after: 0, refs });
    }
  }
  for (const { item, tokens } of placements) {
    const refs = [item.fingerprint];
    const note = { edit: 'block', count: 1, tokens: 0, after: tokens, refs } as const;
    add(Math.max(0, view.items.indexOf(item)), note);
  }
  return byItem;
}

/** Collects notes. It merges consecutive unchanged items, and the oldest edits if there are more than EDITS_MAX. */
class NoteWriter {
  readonly notes: ItemNote[] = [];
  #tooMany: number;

  /** `tooMany`: how many edits must be merged into others. */
  constructor(tooMany: number) {
    this.#tooMany = tooMany;
  }

  add(note: ItemNote): void {
    const last = this.notes.at(-1);
    if (note.edit === 'same') {
      const isRun = last?.edit === 'same' && note.kind !== 'prompt' && last.kind !== 'prompt';
      if (isRun) this.notes.pop();
      this.notes.push(isRun ? run(last, note) : note);
      return;
    }
    if (this.#tooMany <= 0) {
      this.notes.push(note);
      return;
    }
    // Merges the oldest edits, because people look for the newest ones.
    this.#tooMany -= 1;
    const first = this.notes.findIndex(({ edit }) => edit === note.edit);
    const older = this.notes[first];
    if (older === undefined) this.notes.push(note);
    else this.notes[first] = joined(older, note);
  }
}

function run(one: ItemNote, other: ItemNote): ItemNote {
  return { edit: 'same', count: one.count + other.count, tokens: one.tokens + other.tokens };
}

function joined(older: ItemNote, note: ItemNote): ItemNote {
  const { tool: _, ...rest } = older;
  return {
    ...rest,
    count: older.count + note.count,
    tokens: older.tokens + note.tokens,
    after: (older.after ?? 0) + (note.after ?? 0),
    refs: [...(older.refs ?? []), ...(note.refs ?? [])].slice(0, REFS_MAX),
  };
}
