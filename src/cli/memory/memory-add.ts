import { wrongSpace, wholeReferences, nameOf, spaceFor } from './named.ts';
import { deadline, withStore } from '../store.ts';
import { createHash } from 'node:crypto';
import { captureStored, TEXT_CHARS_MAX } from '../../core/memory/captures.ts';
import { isFiller } from '../../core/memory/orders.ts';
import { referenceOf } from '../../core/memory/reference.ts';
import { isSpace } from '../../core/request/space.ts';
import type { MemoryRecord } from '../../ports/memory.ts';
import { CliError } from '../cli-error.ts';
import { isKept } from './record-writer.ts';
import type { Call } from '../context.ts';

/** Runs `svc memory add` and `move`: adds a memory that the user typed, and moves memories between spaces. */

interface AddOptions {
  readonly space?: string;
  readonly json?: boolean;
}

interface MoveOptions {
  readonly to?: string;
  /** The space to move from, if several spaces have the memory. */
  readonly space?: string;
  readonly json?: boolean;
}

export async function addMemory({ args, options, context }: Call<AddOptions>): Promise<void> {
  const space = await spaceFor(options.space, context);
  const record = recordOf(args.join(' '), space);
  const [state] = await withStore(context, ({ memory }) => memory.capture([record], deadline()));
  const ref = referenceOf(record.digest);
  if (state === 'forgotten') throw forgottenThere(space);
  if (!isKept(state)) throw refused();
  if (options.json === true) context.terminal.json({ ref, space, state });
  else {
    context.terminal.out(ref);
    const name = nameOf(space, context);
    context.terminal.note(state === 'stored' ? `Stored in ${name}.` : `${name} has it already.`);
  }
}

/**
 * Moves memories to another space. The store on this machine moves a memory, with the user's choices for it, in one
 * transaction. In a memory service, svc stores the memory in the other space and then forgets it in the first one,
 * where it cannot be stored again.
 */
export async function moveMemories(call: Call<MoveOptions>): Promise<void> {
  const { args: refs, options, context } = call;
  const { to } = options;
  if (to === undefined) {
    throw new CliError('Say where to move them: --to NAME.', 'See: svc memory spaces', 2);
  }
  if (!isSpace(to)) throw wrongSpace('--to');
  const missing: string[] = [];
  const moved = await withStore(context, async ({ memory }) => {
    let count = 0;
    const where = options.space === undefined ? {} : { space: options.space };
    for (const [at, ref] of (await wholeReferences(memory, refs)).entries()) {
      const held = await memory.list({ refs: [ref], limit: 1000, ...where }, deadline());
      if (held.length === 0) missing.push(refs[at] ?? ref);
      const record = held.find(({ space }) => space !== to);
      if (record === undefined) continue;
      if (memory.moveSome !== undefined) {
        const move = { from: record.space, to, refs: [ref] };
        const { memories } = await memory.moveSome(move, deadline());
        if (memories === 0) throw forgottenThere(to);
        count += memories;
        continue;
      }
      const { ref: _, ...kept } = record;
      const [state] = await memory.capture([{ ...kept, space: to }], deadline());
      if (state === 'forgotten') throw forgottenThere(to);
      if (!isKept(state)) throw refused();
      count += await memory.forget({ refs: [ref], space: record.space }, deadline());
    }
    return count;
  });
  if (options.json === true) context.terminal.json({ moved, to });
  else if (moved > 0) context.terminal.note(`Moved to ${nameOf(to, context)}: ${moved}.`);
  if (moved > 0 && missing.length === 0) return;
  if (moved > 0) {
    throw new CliError(
      `No memory has the reference ${missing.join(', ')}.`,
      'References are in: svc memory list',
    );
  }
  throw new CliError('No memory was found to move.', 'References are in: svc memory list');
}

function recordOf(text: string, space: string): MemoryRecord {
  if (text.length > TEXT_CHARS_MAX) {
    throw new CliError(
      `A memory has at most ${TEXT_CHARS_MAX} characters.`,
      'Shorten it: say what matters, and where the rest is.',
      2,
    );
  }
  // Store the text as the user typed it, except for secrets and private parts. Refuse one that says nothing, like "ok".
  const captured = isFiller(text) ? undefined : captureStored('user', text);
  if (captured === undefined) {
    throw new CliError('The text is empty.', 'For example: svc memory add "…"', 2);
  }
  const at = Date.now();
  // Memories that the user typed are unrelated to each other, so each gets its own conversation.
  const own = createHash('sha256').update(`${at} ${captured.digest}`).digest('base64url');
  const place = { conversation: `added_${own}`, fingerprint: own, exchange: 0 };
  return { ...captured, ...place, space, client: 'svc', at, isTimed: true };
}

function refused(): CliError {
  return new CliError('The memory refused the text.', 'Check with: svc doctor');
}

function forgottenThere(space: string): CliError {
  return new CliError(
    `This text was forgotten in ${space}, so svc does not store it there again.`,
    'Use other words, or store it in another space.',
  );
}
