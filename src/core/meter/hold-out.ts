import { hash } from 'node:crypto';
import type { Modes } from '../http/modes.ts';

/**
 * The hold-out experiment: about one in ten conversations gets no recall and no shortening, so that it can be compared
 * with the others. A hash of the conversation's key decides, so the choice is the same for all its requests.
 */
export type Trial = 'with' | 'without';

const ONE_IN = 10;

/** Returns the group of a conversation by its key. Sub-agents belong to the group of their session. */
export function trialOf(conversation: string): Trial {
  const [session = ''] = conversation.split('/', 1);
  return hash('sha256', `hold-out ${session}`, 'buffer').readUInt32BE(0) % ONE_IN === 0
    ? 'without'
    : 'with';
}

/**
 * Returns a held-out conversation's modes: no recall and no compression. Its texts are still stored if the given modes
 * store texts, because they may help other conversations.
 */
export function modesWithout(modes: Modes): Modes {
  const memory = modes.writes ? 'write' : 'off';
  return { memory, reads: false, writes: modes.writes, compression: 'passthrough' };
}

/**
 * Matches the words with which people begin to correct an agent. A match is only a hint, but it is equally vague in
 * both groups, so they can be compared.
 */
const CORRECTION =
  /^\W*(?:no\b|nope\b|wrong\b|undo\b|revert\b|stop\b|not (?:what|like) |that(?:'|’)?s (?:not|wrong)|that is (?:not|wrong)|you (?:forgot|missed)|i (?:said|told you)|nein\b|falsch\b)/i;

export function isCorrection(text: string): boolean {
  return CORRECTION.test(text.slice(0, 80));
}
