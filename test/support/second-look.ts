import type { Dialect } from '../../src/core/conversation/view.ts';
import { requestWith, said, toolRound, type WireItem } from './dialect-wire.ts';
import { recordOf } from './records.ts';
import type { Story } from './story.ts';

/** A session in which an agent opens a file about which an earlier one said something. */

export const LOOK_FACT =
  'The lock in harbour_lock.ts must never be held while the tide job writes, because both wait then.';
export const LOOK_FILE = '/home/ada/walrus/src/harbour_lock.ts';
export const LOOK_PROMPT = 'Make the tide job of the walrus shop write twice as fast, please.';

/** The memory has what was said about the file. */
export async function teachLook(story: Pick<Story, 'memory'>, space = 'default'): Promise<void> {
  const place = { space, conversation: 'earlier' };
  const records = [
    recordOf('Why does everything wait at night?', place),
    recordOf<'assistant'>(LOOK_FACT, { ...place, role: 'assistant' }),
  ];
  await story.memory.capture(records, AbortSignal.timeout(30_000));
}

/** Rounds `from` to `to`, counted from 1; each opens a file, the first one the file. */
export function lookRounds(
  dialect: Dialect,
  to: number,
  { from = 1, output = (round: number): unknown => `text of file ${round}` } = {},
): readonly WireItem[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at).flatMap((round) =>
    toolRound(dialect, `call_${round}`, output(round), {
      file_path: round === 1 ? LOOK_FILE : `/home/ada/walrus/src/part_${round}.ts`,
    }),
  );
}

/** The calls after which svc looks. */
export const LOOK_AT = 4;

export function lookBody(
  dialect: Dialect,
  items: readonly WireItem[],
  extra: WireItem = {},
): WireItem {
  const tools = [{ type: 'function', name: 'shell' }];
  return requestWith(dialect, [said('user', LOOK_PROMPT), ...items], { tools, ...extra });
}

export function looksIn(body: Buffer | string | undefined): string[] {
  const blocks = body?.toString().match(/<svc-memory [^]*?<\/svc-memory>/g) ?? [];
  return blocks.filter((block) => block.includes('harbour_lock.ts must never'));
}
