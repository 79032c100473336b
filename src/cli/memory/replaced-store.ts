import { replacedAt } from '../../adapters/files/marks.ts';
import { timeText } from '../listing.ts';

/** Longer ago than this, a person has seen it or does not miss anything. */
const TOLD_MS = 7 * 24 * 3600 * 1000;

/** Says that the database was replaced while svc ran; undefined when it was not, or long ago. */
export function replacedText(dataFolder: string, now: number): string | undefined {
  const at = replacedAt(dataFolder);
  if (at === 0 || now - at > TOLD_MS) return undefined;
  return `The memory's file was deleted or replaced while svc ran (${timeText(at)}): it does not contain the earlier memories.`;
}
